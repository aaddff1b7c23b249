// dtable[v] = scale * sum over the tokens t with ids[t] = v of dy[t]
//
// Every row looks through all ids, so each sum has one order and no atomics; most find none of theirs.
// Grid: one invocation per block of 32 values of dtable.

struct Params { n_tokens: u32, n_in: u32, first_row: u32, n_rows: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(1) var<storage, read> dy: array<f32>;            // (T, D)
@group(0) @binding(2) var<storage, read_write> dtable: array<f32>;  // (n_rows, D)
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let blocks = (params.n_in + 31u) / 32u;
    let index = linear_group(group, groups) * WORKGROUP + lane;
    let row = index / blocks;
    if row >= params.n_rows {
        return;
    }
    let first = index % blocks * 32u;
    let n = min(32u, params.n_in - first);
    var sums = array<f32, 32>();
    for (var t = 0u; t < params.n_tokens; t++) {
        if step[4u + t] == params.first_row + row {
            for (var i = 0u; i < n; i++) {
                sums[i] += dy[t * params.n_in + first + i];
            }
        }
    }
    for (var i = 0u; i < n; i++) {
        dtable[row * params.n_in + first + i] = params.scale * sums[i];
    }
}
