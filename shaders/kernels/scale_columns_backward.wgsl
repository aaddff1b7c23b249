// dx[t, c] = dy[t, c], times magnitudes[n] / lengths[n] where c is first_column + n
//
// Grid: one invocation per element of dx.

struct Params { n_tokens: u32, n_columns: u32, n_out: u32, first_column: u32 }

@group(0) @binding(0) var<storage, read> dy: array<f32>;            // (T, N)
@group(0) @binding(1) var<storage, read> magnitudes: array<f32>;    // (n)
@group(0) @binding(2) var<storage, read> lengths: array<f32>;       // (n)
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;      // (T, N)
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_tokens * params.n_out {
        return;
    }
    let column = i % params.n_out - params.first_column;
    var factor = 1.0;
    if column < params.n_columns {
        factor = magnitudes[column] / select(lengths[column], 1.0, lengths[column] == 0.0);
    }
    dx[i] = factor * dy[i];
}
