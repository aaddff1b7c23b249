// Writes keys and values in f16, two to a word, rounded to the nearest, ties to even
//
// WGSL leaves the rounding of `pack2x16float` open, and what it makes of numbers beyond 65504. Here every device does the
// same: finite numbers stay finite, infinities and NaN stay what they are.

@group(0) @binding(5) var<storage, read_write> k_cache: array<vec4<u32>>;   // (K, slots, octets)
@group(0) @binding(6) var<storage, read_write> v_cache: array<vec4<u32>>;   // (K, slots, octets)

alias Octet = array<vec4<f32>, 2>;

// Octets are counted through all slots of all heads.
fn put_key_octet(octet: u32, values: Octet) {
    k_cache[octet] = packed(values);
}

fn put_value_octet(octet: u32, values: Octet) {
    v_cache[octet] = packed(values);
}

fn packed(values: Octet) -> vec4<u32> {
    let low = halves(bitcast<vec4<u32>>(values[0]));
    let high = halves(bitcast<vec4<u32>>(values[1]));
    return vec4<u32>(low.x | (low.y << 16u), low.z | (low.w << 16u), high.x | (high.y << 16u), high.z | (high.w << 16u));
}

// The bits of f16 from those of f32.
fn halves(bits: vec4<u32>) -> vec4<u32> {
    let sign = (bits >> vec4<u32>(16u)) & vec4<u32>(0x8000u);
    let magnitude = bits & vec4<u32>(0x7fffffffu);
    // 65504 is the largest finite f16.
    let finite = min(magnitude, vec4<u32>(0x477fe000u));
    let odd = (finite >> vec4<u32>(13u)) & vec4<u32>(1u);
    let normal = (finite - 0x38000000u + 0xfffu + odd) >> vec4<u32>(13u);
    // Below 2^-14 the steps are those that f32 has between a half and one.
    let small = bitcast<vec4<u32>>(bitcast<vec4<f32>>(finite) + 0.5) - 0x3f000000u;
    let number = select(normal, small, finite < vec4<u32>(0x38800000u));
    let broken = select(vec4<u32>(0x7c00u), vec4<u32>(0x7e00u), magnitude > vec4<u32>(0x7f800000u));
    return sign | select(number, broken, magnitude >= vec4<u32>(0x7f800000u));
}
