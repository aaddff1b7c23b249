// Writes keys and values in f32

@group(0) @binding(5) var<storage, read_write> k_cache: array<vec4<u32>>;   // (K, slots, octets * 2)
@group(0) @binding(6) var<storage, read_write> v_cache: array<vec4<u32>>;   // (K, slots, octets * 2)

alias Octet = array<vec4<f32>, 2>;

// Octets are counted through all slots of all heads.
fn put_key_octet(octet: u32, values: Octet) {
    k_cache[2u * octet] = bitcast<vec4<u32>>(values[0]);
    k_cache[2u * octet + 1u] = bitcast<vec4<u32>>(values[1]);
}

fn put_value_octet(octet: u32, values: Octet) {
    v_cache[2u * octet] = bitcast<vec4<u32>>(values[0]);
    v_cache[2u * octet + 1u] = bitcast<vec4<u32>>(values[1]);
}
