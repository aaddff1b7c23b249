// dm[n] = sum_t dy[t, first_column + n] before[t, n] / lengths[n]
//
// Grid: one invocation per element of dm.

struct Params { n_tokens: u32, n_columns: u32, n_out: u32, first_column: u32 }

@group(0) @binding(0) var<storage, read> dy: array<f32>;            // (T, N)
@group(0) @binding(1) var<storage, read> before: array<f32>;        // (T, n)
@group(0) @binding(2) var<storage, read> lengths: array<f32>;       // (n)
@group(0) @binding(3) var<storage, read_write> dm: array<f32>;      // (n)
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let column = linear_group(group, groups) * WORKGROUP + lane;
    if column >= params.n_columns {
        return;
    }
    var sum = 0.0;
    for (var t = 0u; t < params.n_tokens; t++) {
        sum += dy[t * params.n_out + params.first_column + column] * before[t * params.n_columns + column];
    }
    dm[column] = sum / select(lengths[column], 1.0, lengths[column] == 0.0);
}
