// dx[t, k] = sum_n dy[t, first_column + n] w[n, k]: the gradient of the input of a product, straight from stored rows
//
// Grid: one workgroup per tile of TILE tokens and one block of 32 columns. 8 x 8 invocations keep 4 x 4 results each in
// registers and walk the rows of w, 32 at a time, which the workgroup has brought, unpacked, into its memory.

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

@group(0) @binding(0) var<storage, read> dy: array<f32>;                    // (T, N)
@group(0) @binding(NEXT_BINDING) var<storage, read_write> dx: array<f32>;   // (T, K)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

const TILE: u32 = 32u;
var<workgroup> dy_tile: array<vec4<f32>, 256>;                      // (32 rows, TILE / 4)
var<workgroup> w_tile: array<vec4<f32>, 256>;                       // (32 rows, 32 / 4)

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let blocks = (params.n_in + 31u) / 32u;
    let index = linear_group(group, groups);
    let first_token = index / blocks * TILE;
    let block = index % blocks;
    let tx = lane % 8u;
    let ty = lane / 8u;

    var sum = array<vec4<f32>, 4>();
    for (var first = 0u; first < params.n_rows; first += 32u) {
        if lane < 32u {
            let w = weights(min(first + lane, params.n_rows - 1u), block);
            for (var i = 0u; i < 8u; i++) {
                w_tile[lane * 8u + i] = w[i];
            }
        }
        // Neighbours read neighbouring rows; those past the end count for nothing, tokens past the end are dropped below.
        for (var i = lane; i < 32u * TILE; i += 64u) {
            let row = first + i % 32u;
            let line = i / 32u;
            let at = min(first_token + line, params.n_tokens - 1u) * params.n_out + params.first_column;
            dy_tile[i % 32u * 8u + line / 4u][line % 4u] = select(0.0, dy[at + min(row, params.n_rows - 1u)], row < params.n_rows);
        }
        workgroupBarrier();
        for (var n = 0u; n < 32u; n++) {
            let a = dy_tile[n * 8u + ty];
            let b = w_tile[n * 8u + tx];
            sum[0] += a.x * b;
            sum[1] += a.y * b;
            sum[2] += a.z * b;
            sum[3] += a.w * b;
        }
        workgroupBarrier();
    }

    for (var i = 0u; i < 4u; i++) {
        let token = first_token + ty * 4u + i;
        for (var j = 0u; j < 4u; j++) {
            let k = block * 32u + tx * 4u + j;
            if token < params.n_tokens && k < params.n_in {
                dx[token * params.n_in + k] = sum[i][j];
            }
        }
    }
}
