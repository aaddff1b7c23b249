// dx[r, k] = sum over the picks p of row r, and over n, of dy[p, n] w[experts[p], n, k]
//
// Expert matrices are rows of one large weight, which may come in parts; a launch adds up only the rows it holds.
// Grid: one invocation per block of 32 values of dx.

struct Params {
    n_picks: u32, picks_per_row: u32, n_in: u32, n_out: u32, first_row: u32, n_rows: u32,
}

@group(0) @binding(0) var<storage, read> dy: array<f32>;                    // (T * k, N)
@group(0) @binding(NEXT_BINDING) var<storage, read> experts: array<u32>;    // (T, k)
@group(0) @binding(NEXT_BINDING + 1u) var<storage, read_write> dx: array<f32>;  // (rows, K)
@group(0) @binding(NEXT_BINDING + 2u) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let blocks = (params.n_in + 31u) / 32u;
    let index = linear_group(group, groups) * WORKGROUP + lane;
    let row = index / blocks;
    let block = index % blocks;
    if row >= params.n_picks / params.picks_per_row {
        return;
    }
    var sums = Block();
    for (var p = row * params.picks_per_row; p < (row + 1u) * params.picks_per_row; p++) {
        for (var n = 0u; n < params.n_out; n++) {
            let held = experts[p] * params.n_out + n - params.first_row;
            if held < params.n_rows {
                let g = dy[p * params.n_out + n];
                var w = weights(held, block);
                for (var i = 0u; i < 8u; i++) {
                    sums[i] += g * w[i];
                }
            }
        }
    }
    for (var i = 0u; i < 32u; i++) {
        if block * 32u + i < params.n_in {
            dx[row * params.n_in + block * 32u + i] = sums[i / 4u][i % 4u];
        }
    }
}
