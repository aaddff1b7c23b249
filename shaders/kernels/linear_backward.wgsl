// dx[t, k] = sum_n dy[t, first_column + n] w[n, k]: the gradient of the input of a product, straight from stored rows
//
// An invocation keeps TOKENS x 32 sums in registers and walks the rows of w, so every stored block is unpacked once for
// TOKENS tokens and no dense copy of w is made.
// Grid: one invocation per tile, neighbours along the blocks of a row.

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

@group(0) @binding(0) var<storage, read> dy: array<f32>;                    // (T, N)
@group(0) @binding(NEXT_BINDING) var<storage, read_write> dx: array<f32>;   // (T, K)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let blocks = (params.n_in + 31u) / 32u;
    let index = linear_group(group, groups) * WORKGROUP + lane;
    let first_token = index / blocks * TOKENS;
    let block = index % blocks;
    if first_token >= params.n_tokens {
        return;
    }

    // Tokens past the end read the last one and are dropped below.
    var sums = array<Block, TOKENS>();
    for (var row = 0u; row < params.n_rows; row++) {
        var w = weights(row, block);
        for (var t = 0u; t < TOKENS; t++) {
            let token = min(first_token + t, params.n_tokens - 1u);
            let g = dy[token * params.n_out + params.first_column + row];
            for (var i = 0u; i < 8u; i++) {
                sums[t][i] += g * w[i];
            }
        }
    }

    for (var t = 0u; t < TOKENS; t++) {
        for (var i = 0u; i < 32u; i++) {
            let k = block * 32u + i;
            if first_token + t < params.n_tokens && k < params.n_in {
                dx[(first_token + t) * params.n_in + k] = sums[t][i / 4u][i % 4u];
            }
        }
    }
}
