// y[t, first_column + n] = sum_k x[t, k] w[n, k], for many rows of x
//
// Grid: one workgroup per 32 x 32 tile of y. 8 x 8 invocations keep 4 x 4 results each in registers and walk K in blocks
// of 32, which the workgroup has brought, unpacked and transposed, into its memory.

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

@group(0) @binding(NEXT_BINDING) var<storage, read_write> y: array<f32>;    // (T, N)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

const TILE: u32 = 32u;
var<workgroup> x_tile: array<vec4<f32>, 256>;                       // (32, TILE / 4)
var<workgroup> w_tile: array<vec4<f32>, 256>;                       // (32, TILE / 4)

@compute @workgroup_size(64)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tiles = (params.n_rows + TILE - 1u) / TILE;
    let index = linear_group(group, groups);
    let first_token = (index / tiles) * TILE;
    let first_row = (index % tiles) * TILE;
    let tx = lane % 8u;
    let ty = lane / 8u;

    var sum = array<vec4<f32>, 4>();
    for (var block = 0u; block < (params.n_in + 31u) / 32u; block++) {
        // Rows and tokens past the end read the last one and are dropped below.
        let line = lane % TILE;
        if lane < TILE {
            let w = weights(min(first_row + line, params.n_rows - 1u), block);
            for (var i = 0u; i < 8u; i++) {
                for (var c = 0u; c < 4u; c++) {
                    w_tile[(4u * i + c) * 8u + line / 4u][line % 4u] = w[i][c];
                }
            }
        } else {
            for (var i = 0u; i < 8u; i++) {
                let v = x_quad(min(first_token + line, params.n_tokens - 1u), block * 8u + i);
                for (var c = 0u; c < 4u; c++) {
                    x_tile[(4u * i + c) * 8u + line / 4u][line % 4u] = v[c];
                }
            }
        }
        workgroupBarrier();
        for (var k = 0u; k < 32u; k++) {
            let a = x_tile[k * 8u + ty];
            let b = w_tile[k * 8u + tx];
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
            let row = first_row + tx * 4u + j;
            if token < params.n_tokens && row < params.n_rows {
                y[token * params.n_out + params.first_column + row] = sum[i][j];
            }
        }
    }
}
