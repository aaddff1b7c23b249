// y[t, first_column + n] = sum_k x[t, k] w[n, k], each invocation by itself
//
// An invocation keeps TOKENS x ROWS results in registers and walks K in blocks of 32. It shares nothing, so there are no
// barriers: software adapters run this several times faster than kernels that wait for each other.
// Grid: one invocation per tile, neighbours along the rows of w.

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

@group(0) @binding(NEXT_BINDING) var<storage, read_write> y: array<f32>;    // (T, N)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row_tiles = (params.n_rows + ROWS - 1u) / ROWS;
    let index = linear_group(group, groups) * WORKGROUP + lane;
    let first_token = index / row_tiles * TOKENS;
    let first_row = index % row_tiles * ROWS;
    if first_token >= params.n_tokens {
        return;
    }

    // Rows and tokens past the end read the last one and are dropped below.
    var sums = array<array<f32, ROWS>, TOKENS>();
    for (var block = 0u; block < (params.n_in + 31u) / 32u; block++) {
        var w = array<Block, ROWS>();
        for (var r = 0u; r < ROWS; r++) {
            w[r] = weights(min(first_row + r, params.n_rows - 1u), block);
        }
        for (var t = 0u; t < TOKENS; t++) {
            let token = min(first_token + t, params.n_tokens - 1u);
            for (var i = 0u; i < 8u; i++) {
                let v = x_quad(token, block * 8u + i);
                for (var r = 0u; r < ROWS; r++) {
                    sums[t][r] += dot(v, w[r][i]);
                }
            }
        }
    }

    for (var t = 0u; t < TOKENS; t++) {
        for (var r = 0u; r < ROWS; r++) {
            if first_token + t < params.n_tokens && first_row + r < params.n_rows {
                y[(first_token + t) * params.n_out + params.first_column + first_row + r] = sums[t][r];
            }
        }
    }
}
