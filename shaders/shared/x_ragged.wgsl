// Rows of activations of any width; past the end of a row there are zeros

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (rows, K)

fn x_quad(row: u32, quad: u32) -> vec4<f32> {
    let k = 4u * quad;
    return vec4<f32>(x_at(row, k), x_at(row, k + 1u), x_at(row, k + 2u), x_at(row, k + 3u));
}

fn x_at(row: u32, k: u32) -> f32 {
    if k >= params.n_in {
        return 0.0;
    }
    return x[row * params.n_in + k];
}
