// Writes keys and values, an octet of channels at a time, or a block where octets share a scale; `kv_layout` says how
//
// All in integers, so that every device stores the same bits: WGSL leaves the rounding of `pack2x16float` open, and lets a
// division be a little off. Finite numbers stay finite, infinities and NaN stay what they are, and a block with one of them
// is NaN and infinities when it is read.

@group(0) @binding(5) var<storage, read_write> k_cache: array<u32>;
@group(0) @binding(6) var<storage, read_write> v_cache: array<u32>;

alias Block = array<vec4<f32>, 8>;

// Octets that are put at once.
const KEY_OCTETS: u32 = select(BLOCK, 1u, KEY_BITS >= 16u);
const VALUE_OCTETS: u32 = select(BLOCK, 1u, VALUE_BITS >= 16u);

struct Packed { words: array<u32, 8>, record: u32 }

// Puts the octets of a row from the i-th on: KEY_OCTETS of them, or as many as there are.
fn put_keys(row: u32, i: u32, values: Block) {
    let packed = packed(KEY_BITS, values);
    let first = (row * n_octets() + i) * KEY_BITS / 4u;
    for (var w = 0u; w < 8u; w++) {
        if w < min(KEY_OCTETS, n_octets() - i) * KEY_BITS / 4u {
            k_cache[first + w] = packed.words[w];
        }
    }
    if KEY_BITS < 16u {
        k_cache[record_of(KEY_BITS, row, i / BLOCK)] = packed.record;
    }
}

fn put_values(row: u32, i: u32, values: Block) {
    let packed = packed(VALUE_BITS, values);
    let first = (row * n_octets() + i) * VALUE_BITS / 4u;
    for (var w = 0u; w < 8u; w++) {
        if w < min(VALUE_OCTETS, n_octets() - i) * VALUE_BITS / 4u {
            v_cache[first + w] = packed.words[w];
        }
    }
    if VALUE_BITS < 16u {
        v_cache[record_of(VALUE_BITS, row, i / BLOCK)] = packed.record;
    }
}

fn packed(bits: u32, values: Block) -> Packed {
    if bits == 32u {
        return floats(values);
    }
    if bits == 16u {
        return halves(values);
    }
    if bits == 8u {
        return bytes(values);
    }
    return nibbles(values);
}

fn floats(values: Block) -> Packed {
    var packed = Packed();
    for (var w = 0u; w < 8u; w++) {
        packed.words[w] = bitcast<u32>(values[w / 4u][w % 4u]);
    }
    return packed;
}

// Rounded to the nearest, ties to even.
fn halves(values: Block) -> Packed {
    var packed = Packed();
    for (var quad = 0u; quad < 2u; quad++) {
        let four = half_bits(bitcast<vec4<u32>>(values[quad]));
        packed.words[2u * quad] = four.x | (four.y << 16u);
        packed.words[2u * quad + 1u] = four.z | (four.w << 16u);
    }
    return packed;
}

// The bits of f16 from those of f32.
fn half_bits(bits: vec4<u32>) -> vec4<u32> {
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

// The nearest 127ths of the largest magnitude, ties away from zero.
fn bytes(values: Block) -> Packed {
    var packed = Packed();
    for (var quad = 0u; quad < 8u; quad++) {
        let four = bitcast<vec4<u32>>(values[quad]) & vec4<u32>(0x7fffffffu);
        packed.record = max(packed.record, max(max(four.x, four.y), max(four.z, four.w)));
    }
    let most = fixed(vec4<u32>(packed.record), packed.record);
    for (var quad = 0u; quad < 8u; quad++) {
        let four = fixed(bitcast<vec4<u32>>(values[quad]), packed.record);
        let codes = (127 * four + sign(four) * (most / 2)) / max(most, vec4<i32>(1));
        packed.words[quad] = joined_codes(bitcast<vec4<u32>>(codes) & vec4<u32>(0xffu), 8u);
    }
    return packed;
}

// The nearest 15ths of the way from the least to the largest value, both rounded outwards to bf16; ties up.
fn nibbles(values: Block) -> Packed {
    var least = vec4<i32>(0x7fff0000);
    var largest = -least;
    for (var quad = 0u; quad < 8u; quad++) {
        // Whole numbers in the order of the floats, NaN outside.
        let bits = bitcast<vec4<i32>>(values[quad]);
        let four = select(bits, -(bits & vec4<i32>(0x7fffffff)), bits < vec4<i32>());
        least = min(least, four);
        largest = max(largest, four);
    }
    let a = max(min(min(least.x, least.y), min(least.z, least.w)), -0x7fff0000) >> 16u;
    let b = (min(max(max(largest.x, largest.y), max(largest.z, largest.w)), 0x7fff0000) + 0xffff) >> 16u;
    let ends = vec2<u32>(abs(vec2<i32>(a, b))) | select(vec2<u32>(), vec2<u32>(0x8000u), vec2<i32>(a, b) < vec2<i32>());
    let most = u32(max(abs(a), abs(b))) << 16u;
    let fixed_ends = fixed((ends << vec2<u32>(16u)).xyxy, most);
    let way = fixed_ends.yyyy - fixed_ends.xxxx;
    var packed = Packed();
    packed.record = ends.x | (ends.y << 16u);
    for (var quad = 0u; quad < 8u; quad++) {
        let done = fixed(bitcast<vec4<u32>>(values[quad]), most) - fixed_ends.xxxx;
        let codes = (15 * done + way / 2) / max(way, vec4<i32>(1));
        packed.words[quad / 2u] |= joined_codes(bitcast<vec4<u32>>(codes), 4u) << (quad % 2u * 16u);
    }
    return packed;
}

// The numbers of some bits, in fixed point such that `most`, the largest magnitude, takes 24 bits.
fn fixed(bits: vec4<u32>, most: u32) -> vec4<i32> {
    let magnitude = bits & vec4<u32>(0x7fffffffu);
    let mantissa = (magnitude & vec4<u32>(0x7fffffu)) | select(vec4<u32>(), vec4<u32>(0x800000u), magnitude >= vec4<u32>(0x800000u));
    let exponent = max(magnitude >> vec4<u32>(23u), vec4<u32>(1u));
    let shift = max(most >> 23u, 1u) - exponent;
    let number = vec4<i32>(mantissa >> min(shift, vec4<u32>(31u)));
    return select(number, -number, bits > vec4<u32>(0x7fffffffu));
}

fn joined_codes(codes: vec4<u32>, bits: u32) -> u32 {
    let placed = codes << (bits * EACH);
    return placed.x | placed.y | placed.z | placed.w;
}
