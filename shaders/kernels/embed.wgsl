// y[t] = scale * table[ids[t]]
//
// Grid: one invocation per element of y. A large table comes in row parts, one launch each; a launch
// writes only the tokens whose row it holds.

struct Params { n_tokens: u32, d_model: u32, first_row: u32, n_rows: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, 0, 0, ids
@group(0) @binding(1) var<storage, read> table: array<f32>;         // (n_rows, D)
@group(0) @binding(2) var<storage, read_write> y: array<f32>;       // (T, D)
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_tokens * params.d_model {
        return;
    }
    let row = step[4u + i / params.d_model] - params.first_row;
    if row < params.n_rows {
        y[i] = params.scale * table[row * params.d_model + i % params.d_model];
    }
}
