// Rows of activations whose width is a multiple of 4

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;       // (rows, K / 4)

fn x_quad(row: u32, quad: u32) -> vec4<f32> {
    return x[row * (params.n_in / 4u) + quad];
}
