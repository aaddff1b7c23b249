// Weights that are f32 in rows of any width; past the end of a row there are zeros

@group(0) @binding(1) var<storage, read> values: array<f32>;        // (n_rows, K)
const NEXT_BINDING: u32 = 2u;

alias Block = array<vec4<f32>, 8>;

// The 32 weights of one block of a row.
fn weights(row: u32, block: u32) -> Block {
    var four = Block();
    for (var i = 0u; i < 8u; i++) {
        let k = block * 32u + i * 4u;
        four[i] = vec4<f32>(value(row, k), value(row, k + 1u), value(row, k + 2u), value(row, k + 3u));
    }
    return four;
}

fn value(row: u32, k: u32) -> f32 {
    if k >= params.n_in {
        return 0.0;
    }
    return values[row * params.n_in + k];
}
