// dx[t, k] = sum_n dy[t, first_column + n] w[n, k]: the gradient of the input of a product, straight from stored rows
//
// An invocation keeps TOKENS x 32 sums in registers and walks the rows of w, eight at a time, so every stored block is
// unpacked once for TOKENS tokens and no dense copy of w is made.
// Grid: one invocation per tile, neighbours along the blocks of a row; ABREAST of them take the same tokens.

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

@group(0) @binding(0) var<storage, read> dy: array<f32>;                    // (T, N)
@group(0) @binding(NEXT_BINDING) var<storage, read_write> dx: array<f32>;   // (T, K)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

const TOKEN_QUADS: u32 = TOKENS / 4u;

@compute @workgroup_size(WORKGROUP)
fn main(here: Here) {
    let blocks = (params.n_in + 31u) / 32u;
    let tiles = (blocks + ABREAST - 1u) / ABREAST * ABREAST;
    let index = linear_group(here.group, here.groups) * WORKGROUP + here.lane;
    let first_token = index / tiles * TOKENS;
    if first_token >= params.n_tokens {
        return;
    }

    // Blocks and tokens past the end do as the last one and are dropped below.
    let block = min(index % tiles, blocks - 1u);
    var sums = array<Block, TOKENS>();
    for (var first = 0u; first < params.n_rows; first += 8u) {
        var dy_of = array<array<vec4<f32>, 8>, TOKEN_QUADS>();
        for (var q = 0u; q < TOKEN_QUADS; q++) {
            dy_of[q] = dy_of_eight_rows(first_token + 4u * q, first, here.lane);
        }
        for (var r = 0u; r < 8u; r++) {
            var w = weights(min(first + r, params.n_rows - 1u), block);
            for (var t = 0u; t < TOKENS; t++) {
                for (var i = 0u; i < 8u; i++) {
                    sums[t][i] += dy_of[t / 4u][r][t % 4u] * w[i];
                }
            }
        }
    }

    for (var t = 0u; t < TOKENS; t++) {
        for (var i = 0u; i < 32u; i++) {
            let k = block * 32u + i;
            if first_token + t < params.n_tokens && k < params.n_in && index % tiles < blocks {
                dx[(first_token + t) * params.n_in + k] = sums[t][i / 4u][i % 4u];
            }
        }
    }
}

// What four tokens have of one row; rows past the end count for nothing.
fn dy_of_row(first_token: u32, row: u32) -> vec4<f32> {
    let tokens = min(first_token + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.n_tokens - 1u));
    let at = tokens * params.n_out + params.first_column + min(row, params.n_rows - 1u);
    let four = vec4<f32>(dy[at.x], dy[at.y], dy[at.z], dy[at.w]);
    return select(vec4<f32>(), four, row < params.n_rows);
}
