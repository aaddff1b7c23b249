// y[t, first_column + n] *= magnitudes[n] / lengths[n], in place; before[t, n] is what stood there
//
// Grid: one invocation per element of the columns that it scales.

struct Params { n_tokens: u32, n_columns: u32, n_out: u32, first_column: u32 }

@group(0) @binding(0) var<storage, read> magnitudes: array<f32>;    // (n)
@group(0) @binding(1) var<storage, read> lengths: array<f32>;       // (n)
@group(0) @binding(2) var<storage, read_write> y: array<f32>;       // (T, N)
@group(0) @binding(3) var<storage, read_write> before: array<f32>;  // (T, n)
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_tokens * params.n_columns {
        return;
    }
    let column = i % params.n_columns;
    let at = i / params.n_columns * params.n_out + params.first_column + column;
    // A row of zeros has no direction: its products are zeros whatever they are multiplied with.
    let length = select(lengths[column], 1.0, lengths[column] == 0.0);
    before[i] = y[at];
    y[at] *= magnitudes[column] / length;
}
