// y[t, first_column + n] = sum_k x[t, k] w[n, k], or act(gate) * up of two such sums, without barriers
//
// An invocation keeps TOKENS x ROWS results in registers and walks K in blocks of 32. Software adapters run this several
// times faster than kernels whose invocations wait for each other.
// Grid: one invocation per tile, neighbours along the rows of w; ABREAST of them take the same tokens.

@group(0) @binding(NEXT_BINDING) var<storage, read_write> y: array<f32>;    // (T, N)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

// Results for which an invocation keeps ROWS sums.
const KEPT: u32 = ROWS / GATES;

@compute @workgroup_size(WORKGROUP)
fn main(here: Here) {
    let n_results = params.n_rows / GATES;
    let row_tiles = (n_results + ABREAST * KEPT - 1u) / (ABREAST * KEPT) * ABREAST;
    let index = linear_group(here.group, here.groups) * WORKGROUP + here.lane;
    let first_token = index / row_tiles * TOKENS;
    let first_row = index % row_tiles * KEPT;
    if first_token >= params.n_tokens {
        return;
    }

    // Rows and tokens past the end read the last one and are dropped below.
    var sums = array<array<f32, ROWS>, TOKENS>();
    for (var block = 0u; block < (params.n_in + 31u) / 32u; block++) {
        var w = array<Block, ROWS>();
        for (var r = 0u; r < ROWS; r++) {
            w[r] = weights(min(first_row + r % KEPT, n_results - 1u) + r / KEPT * n_results, block);
        }
        for (var t = 0u; t < TOKENS; t++) {
            let token = min(first_token + t, params.n_tokens - 1u);
            var v = x_block(token, block, here.lane);
            for (var i = 0u; i < 8u; i++) {
                for (var r = 0u; r < ROWS; r++) {
                    sums[t][r] += dot(v[i], w[r][i]);
                }
            }
        }
    }

    for (var t = 0u; t < TOKENS; t++) {
        for (var r = 0u; r < KEPT; r++) {
            if first_token + t < params.n_tokens && first_row + r < n_results {
                let value = result(sums[t][r], sums[t][ROWS - KEPT + r]);
                y[(first_token + t) * params.n_out + params.first_column + first_row + r] = value;
            }
        }
    }
}
