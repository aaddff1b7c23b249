// dh[t, j] = scale * sum_n dy[t, first_column + n] b[n, j]
//
// Grid: one invocation per element of dh.

struct Params { n_tokens: u32, rank: u32, n_rows: u32, n_out: u32, first_column: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> dy: array<f32>;            // (T, N)
@group(0) @binding(1) var<storage, read> b: array<f32>;             // (n_rows, r)
@group(0) @binding(2) var<storage, read_write> dh: array<f32>;      // (T, r)
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_tokens * params.rank {
        return;
    }
    let start = i / params.rank * params.n_out + params.first_column;
    var sum = 0.0;
    for (var row = 0u; row < params.n_rows; row++) {
        sum += dy[start + row] * b[row * params.rank + i % params.rank];
    }
    dh[i] = params.scale * sum;
}
