// y[t, first_column + n] = sum_k x[t, k] w[n, k], for many rows of x
//
// Grid: one workgroup per TILE x TILE tile of y. 8 x 8 invocations keep EDGE x EDGE results each in registers and walk K in
// blocks of 32, which the workgroup has brought, unpacked and transposed, into its memory.

@group(0) @binding(NEXT_BINDING) var<storage, read_write> y: array<f32>;    // (T, N)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

const TILE: u32 = 8u * EDGE;
const TILE_QUADS: u32 = TILE / 4u;
const EDGE_QUADS: u32 = EDGE / 4u;
var<workgroup> x_tile: array<vec4<f32>, 32u * TILE_QUADS>;          // (32, TILE / 4)
var<workgroup> w_tile: array<vec4<f32>, 32u * TILE_QUADS>;          // (32, TILE / 4)

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

    var sum = array<array<vec4<f32>, EDGE_QUADS>, EDGE>();
    for (var block = 0u; block < (params.n_in + 31u) / 32u; block++) {
        // Rows and tokens past the end read the last one and are dropped below.
        for (var brought = lane; brought < 2u * TILE; brought += 64u) {
            let line = brought % TILE;
            if brought < TILE {
                let w = weights(min(first_row + line, params.n_rows - 1u), block);
                for (var i = 0u; i < 8u; i++) {
                    for (var c = 0u; c < 4u; c++) {
                        w_tile[(4u * i + c) * TILE_QUADS + line / 4u][line % 4u] = w[i][c];
                    }
                }
            } else {
                for (var i = 0u; i < 8u; i++) {
                    let v = x_quad(min(first_token + line, params.n_tokens - 1u), block * 8u + i);
                    for (var c = 0u; c < 4u; c++) {
                        x_tile[(4u * i + c) * TILE_QUADS + line / 4u][line % 4u] = v[c];
                    }
                }
            }
        }
        workgroupBarrier();
        // Neighbours read neighbouring quads: the quads of an invocation are eight apart.
        for (var k = 0u; k < 32u; k++) {
            var b = array<vec4<f32>, EDGE_QUADS>();
            for (var q = 0u; q < EDGE_QUADS; q++) {
                b[q] = w_tile[k * TILE_QUADS + 8u * q + tx];
            }
            for (var p = 0u; p < EDGE_QUADS; p++) {
                let a = x_tile[k * TILE_QUADS + 8u * p + ty];
                for (var q = 0u; q < EDGE_QUADS; q++) {
                    sum[4u * p][q] += a.x * b[q];
                    sum[4u * p + 1u][q] += a.y * b[q];
                    sum[4u * p + 2u][q] += a.z * b[q];
                    sum[4u * p + 3u][q] += a.w * b[q];
                }
            }
        }
        workgroupBarrier();
    }

    for (var i = 0u; i < EDGE; i++) {
        let token = first_token + (8u * (i / 4u) + ty) * 4u + i % 4u;
        for (var j = 0u; j < EDGE; j++) {
            let row = first_row + (8u * (j / 4u) + tx) * 4u + j % 4u;
            if token < params.n_tokens && row < params.n_rows {
                y[token * params.n_out + params.first_column + row] = sum[i][j / 4u][j % 4u];
            }
        }
    }
}
