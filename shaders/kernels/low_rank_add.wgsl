// y[t, first_column + n] += scale * sum_j h[t, j] b[n, j]: the second half of a low-rank adapter (Hu et al. 2021)
//
// Grid: one invocation per element of the columns that it adds to.

struct Params { n_tokens: u32, rank: u32, n_rows: u32, n_out: u32, first_column: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> h: array<f32>;             // (T, r)
@group(0) @binding(1) var<storage, read> b: array<f32>;             // (n_rows, r)
@group(0) @binding(2) var<storage, read_write> y: array<f32>;       // (T, N)
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_tokens * params.n_rows {
        return;
    }
    let token = i / params.n_rows;
    let row = i % params.n_rows;
    var sum = 0.0;
    for (var j = 0u; j < params.rank; j++) {
        sum += h[token * params.rank + j] * b[row * params.rank + j];
    }
    y[token * params.n_out + params.first_column + row] += params.scale * sum;
}
