// Weights in blocks of 32 codes with scales apart: w = scale * step(code) + minimum
//
// A row has its codes in `quants`, MAIN_BITS each, and in `scales` first the codes' EXTRA_BITS, then one record per block
// of 32 or 256; `Format` in Rust describes both. What is constant here is decided when the pipeline is made.

@group(0) @binding(1) var<storage, read> quants: array<vec4<u32>>;  // (n_rows, K * MAIN_BITS / 128)
@group(0) @binding(2) var<storage, read> scales: array<u32>;        // (n_rows, extra bits | records)
const NEXT_BINDING: u32 = 3u;

alias Block = array<vec4<f32>, 8>;

const EACH: vec4<u32> = vec4<u32>(0u, 1u, 2u, 3u);
const CODE_MASK: u32 = (1u << MAIN_BITS) - 1u;
const EXTRA_MASK: u32 = (1u << EXTRA_BITS) - 1u;
// Signed bytes, four to a word: the steps of IQ4_NL, and those of MXFP4 doubled.
const NON_LINEAR_STEPS: vec4<u32> = vec4<u32>(0xbfad9881u, 0xf6eaddcfu, 0x26190d01u, 0x71594535u);
const E2M1_STEPS: vec4<u32> = vec4<u32>(0x03020100u, 0x0c080604u, 0xfdfeff00u, 0xf4f8fafcu);

// The 32 weights of one block of a row.
fn weights(row: u32, block: u32) -> Block {
    let n_blocks = params.n_in / 32u;
    let row_words = n_blocks * EXTRA_BITS + (n_blocks * 32u / RECORD_VALUES * RECORD_BYTES + 3u) / 4u;
    let start = row * row_words;
    let records = start + n_blocks * EXTRA_BITS;
    let first = scale_and_minimum(records, block, 0u);
    var second = first;
    if SCALES == SIGNED_16 || SCALES == NIBBLES_16 {
        second = scale_and_minimum(records, block, 1u);
    }
    var words = codes_of(row * n_blocks + block);
    var extra = vec2<u32>();
    if EXTRA_BITS > 0u {
        extra = vec2<u32>(scales[start + EXTRA_BITS * block], scales[start + EXTRA_BITS * block + EXTRA_BITS - 1u]);
    }
    return Block(
        first.x * steps(&words, extra, 0u) + first.y,
        first.x * steps(&words, extra, 1u) + first.y,
        first.x * steps(&words, extra, 2u) + first.y,
        first.x * steps(&words, extra, 3u) + first.y,
        second.x * steps(&words, extra, 4u) + second.y,
        second.x * steps(&words, extra, 5u) + second.y,
        second.x * steps(&words, extra, 6u) + second.y,
        second.x * steps(&words, extra, 7u) + second.y,
    );
}

// The words that hold a block's codes.
fn codes_of(index: u32) -> array<vec4<u32>, 2> {
    if MAIN_BITS == 8u {
        return array<vec4<u32>, 2>(quants[2u * index], quants[2u * index + 1u]);
    }
    if MAIN_BITS == 4u {
        return array<vec4<u32>, 2>(quants[index], vec4<u32>());
    }
    let both = quants[index / 2u];
    return array<vec4<u32>, 2>(select(both, both.zwxy, index % 2u == 1u), vec4<u32>());
}

// Four neighbouring codes of a block as the numbers they stand for.
fn steps(words: ptr<function, array<vec4<u32>, 2>>, extra: vec2<u32>, quad: u32) -> vec4<f32> {
    let bit = quad * 4u * MAIN_BITS;
    let word = (*words)[bit / 128u][bit / 32u % 4u];
    if BOOK == SIGNED {
        return vec4<f32>((vec4<i32>(i32(word)) << (24u - 8u * EACH)) >> vec4<u32>(24u));
    }
    var codes = (vec4<u32>(word) >> (bit % 32u + MAIN_BITS * EACH)) & vec4<u32>(CODE_MASK);
    if EXTRA_BITS > 0u {
        let extra_bit = quad * 4u * EXTRA_BITS;
        let higher = (vec4<u32>(extra[extra_bit / 32u]) >> (extra_bit % 32u + EXTRA_BITS * EACH)) & vec4<u32>(EXTRA_MASK);
        codes |= higher << vec4<u32>(MAIN_BITS);
    }
    if BOOK == NON_LINEAR {
        return vec4<f32>(step_of(NON_LINEAR_STEPS, codes.x), step_of(NON_LINEAR_STEPS, codes.y), step_of(NON_LINEAR_STEPS, codes.z), step_of(NON_LINEAR_STEPS, codes.w));
    }
    if BOOK == E2M1 {
        return vec4<f32>(step_of(E2M1_STEPS, codes.x), step_of(E2M1_STEPS, codes.y), step_of(E2M1_STEPS, codes.z), step_of(E2M1_STEPS, codes.w));
    }
    return vec4<f32>(vec4<i32>(codes) - vec4<i32>(i32(OFFSET)));
}

fn step_of(book: vec4<u32>, code: u32) -> f32 {
    return signed_byte(book[code / 4u], code);
}

// Scale and minimum of a block, or of its first or second half.
fn scale_and_minimum(records: u32, block: u32, half: u32) -> vec2<f32> {
    if SCALES == HALF {
        let pair = unpack2x16float(scales[records + block / 2u]);
        return vec2<f32>(select(pair.x, pair.y, block % 2u == 1u), 0.0);
    }
    if SCALES == POWER {
        let exponent = (scales[records + block / 2u] >> (block % 2u * 16u)) & 0xffu;
        // 2^(exponent - 128), of which the two smallest are subnormal.
        let bits = select((exponent - 1u) << 23u, 0x00200000u << exponent, exponent < 2u);
        return vec2<f32>(bitcast<f32>(bits), 0.0);
    }
    if SCALES == PAIR {
        return unpack2x16float(scales[records + block]);
    }
    let record = records + block / 8u * (RECORD_BYTES / 4u);
    let d = unpack2x16float(scales[record]);
    let part = block % 8u;
    if SCALES == BYTES_32 {
        return vec2<f32>(d.x * byte(record + 1u, part), -(d.y * byte(record + 3u, part)));
    }
    if SCALES == SIGNED_32 {
        return vec2<f32>(d.x * signed_byte(scales[record + 1u + part / 4u], part), 0.0);
    }
    let sixteenth = 2u * part + half;
    if SCALES == SIGNED_16 {
        return vec2<f32>(d.x * signed_byte(scales[record + 1u + sixteenth / 4u], sixteenth), 0.0);
    }
    let nibbles = u32(byte(record + 1u, sixteenth));
    return vec2<f32>(d.x * f32(nibbles & 15u), -(d.y * f32(nibbles >> 4u)));
}

fn byte(first_word: u32, index: u32) -> f32 {
    return f32((scales[first_word + index / 4u] >> (index % 4u * 8u)) & 0xffu);
}

fn signed_byte(word: u32, index: u32) -> f32 {
    return f32(i32(word << (24u - index % 4u * 8u)) >> 24u);
}
