// Keys and values in f32. A head is filled up with zeros to whole octets of channels

@group(0) @binding(1) var<storage, read> k_cache: array<vec4<u32>>; // (K, slots, octets * 2)
@group(0) @binding(2) var<storage, read> v_cache: array<vec4<u32>>; // (K, slots, octets * 2)

alias Octet = array<vec4<f32>, 2>;

// Octets are counted through all slots of all heads.
fn key_octet(octet: u32) -> Octet {
    return Octet(bitcast<vec4<f32>>(k_cache[2u * octet]), bitcast<vec4<f32>>(k_cache[2u * octet + 1u]));
}

fn value_octet(octet: u32) -> Octet {
    return Octet(bitcast<vec4<f32>>(v_cache[2u * octet]), bitcast<vec4<f32>>(v_cache[2u * octet + 1u]));
}
