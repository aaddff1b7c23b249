// y[t, first_column + n] = sum_k x[t, k] w[n, k], without barriers
//
// An invocation keeps TOKENS x ROWS results in registers and walks K in blocks of 32. Software adapters run this several
// times faster than kernels whose invocations wait for each other.
// Grid: one invocation per tile, neighbours along the rows of w; ABREAST of them take the same tokens.

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

@group(0) @binding(NEXT_BINDING) var<storage, read_write> y: array<f32>;    // (T, N)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(here: Here) {
    let row_tiles = (params.n_rows + ABREAST * ROWS - 1u) / (ABREAST * ROWS) * ABREAST;
    let index = linear_group(here.group, here.groups) * WORKGROUP + here.lane;
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
            var v = x_block(token, block, here.lane);
            for (var i = 0u; i < 8u; i++) {
                for (var r = 0u; r < ROWS; r++) {
                    sums[t][r] += dot(v[i], w[r][i]);
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
