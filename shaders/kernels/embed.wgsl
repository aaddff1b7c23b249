// y[t] = scale * table[ids[t]]
//
// Grid: one invocation per block of 32 elements of y. A large table comes in row parts, one launch each; a launch
// writes only the tokens whose row it holds.

struct Params { n_tokens: u32, n_in: u32, first_row: u32, n_rows: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(NEXT_BINDING) var<storage, read_write> y: array<f32>;    // (T, D)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let n_blocks = (params.n_in + 31u) / 32u;
    let index = linear_group(group, groups) * WORKGROUP + lane;
    let token = index / n_blocks;
    let block = index % n_blocks;
    if token >= params.n_tokens {
        return;
    }
    let row = step[4u + token] - params.first_row;
    if row < params.n_rows {
        let values = weights(row, block);
        for (var i = 0u; i < 8u; i++) {
            for (var c = 0u; c < 4u; c++) {
                let k = block * 32u + 4u * i + c;
                if k < params.n_in {
                    y[token * params.n_in + k] = params.scale * values[i][c];
                }
            }
        }
    }
}
