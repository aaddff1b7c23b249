// Weights that are floats, in blocks of 32: f32, or two f16 or bf16 to a word

@group(0) @binding(1) var<storage, read> quants: array<vec4<u32>>;  // (n_rows, K * MAIN_BITS / 128)
const NEXT_BINDING: u32 = 2u;

alias Block = array<vec4<f32>, 8>;

// The 32 weights of one block of a row.
fn weights(row: u32, block: u32) -> Block {
    let start = (row * (params.n_in / 32u) + block) * (MAIN_BITS / 4u);
    if MAIN_BITS == 32u {
        return Block(
            bitcast<vec4<f32>>(quants[start]), bitcast<vec4<f32>>(quants[start + 1u]),
            bitcast<vec4<f32>>(quants[start + 2u]), bitcast<vec4<f32>>(quants[start + 3u]),
            bitcast<vec4<f32>>(quants[start + 4u]), bitcast<vec4<f32>>(quants[start + 5u]),
            bitcast<vec4<f32>>(quants[start + 6u]), bitcast<vec4<f32>>(quants[start + 7u]),
        );
    }
    let a = quants[start];
    let b = quants[start + 1u];
    let c = quants[start + 2u];
    let d = quants[start + 3u];
    return Block(four(a.xy), four(a.zw), four(b.xy), four(b.zw), four(c.xy), four(c.zw), four(d.xy), four(d.zw));
}

fn four(words: vec2<u32>) -> vec4<f32> {
    if BFLOAT {
        // The upper half of an f32.
        return bitcast<vec4<f32>>(vec4<u32>(words.x << 16u, words.x & 0xffff0000u, words.y << 16u, words.y & 0xffff0000u));
    }
    return vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y));
}
