// Keys and values in f16, two to a word. A head is filled up with zeros to whole octets of channels

@group(0) @binding(1) var<storage, read> k_cache: array<vec4<u32>>; // (K, slots, octets)
@group(0) @binding(2) var<storage, read> v_cache: array<vec4<u32>>; // (K, slots, octets)

alias Octet = array<vec4<f32>, 2>;

// Octets are counted through all slots of all heads.
fn key_octet(octet: u32) -> Octet {
    return unpacked(k_cache[octet]);
}

fn value_octet(octet: u32) -> Octet {
    return unpacked(v_cache[octet]);
}

fn unpacked(words: vec4<u32>) -> Octet {
    return Octet(
        vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)),
        vec4<f32>(unpack2x16float(words.z), unpack2x16float(words.w)),
    );
}
