// dw[e, n, k] = sum over the picks p of expert e of dy[p, n] x[p / picks_per_row, k]
//
// Grid: one invocation per element of dw.

struct Params {
    n_picks: u32, picks_per_row: u32, n_in: u32, n_out: u32, first_row: u32, n_rows: u32,
}

@group(0) @binding(0) var<storage, read> dy: array<f32>;            // (T * k, N)
@group(0) @binding(1) var<storage, read> x: array<f32>;             // (rows, K)
@group(0) @binding(2) var<storage, read> experts: array<u32>;       // (T, k)
@group(0) @binding(3) var<storage, read_write> dw: array<f32>;      // (E * N, K)
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_rows * params.n_in {
        return;
    }
    let row = params.first_row + i / params.n_in;
    let k = i % params.n_in;
    var sum = 0.0;
    for (var p = 0u; p < params.n_picks; p++) {
        if experts[p] == row / params.n_out {
            sum += dy[p * params.n_out + row % params.n_out] * x[p / params.picks_per_row * params.n_in + k];
        }
    }
    dw[i] = sum;
}
