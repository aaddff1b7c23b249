// db[n, j] = scale * sum_t dy[t, first_column + n] h[t, j]
//
// Grid: one invocation per element of db.

struct Params { n_tokens: u32, rank: u32, n_rows: u32, n_out: u32, first_column: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> dy: array<f32>;            // (T, N)
@group(0) @binding(1) var<storage, read> h: array<f32>;             // (T, r)
@group(0) @binding(2) var<storage, read_write> db: array<f32>;      // (n_rows, r)
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_rows * params.rank {
        return;
    }
    let column = params.first_column + i / params.rank;
    var sum = 0.0;
    for (var token = 0u; token < params.n_tokens; token++) {
        sum += dy[token * params.n_out + column] * h[token * params.rank + i % params.rank];
    }
    db[i] = params.scale * sum;
}
