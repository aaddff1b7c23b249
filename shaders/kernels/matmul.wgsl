// y[t, first_column + n] = sum_k x[t, k] w[n, k], for many rows of x
//
// Grid: one workgroup per 32 x 32 tile of y. 8 x 8 invocations keep 4 x 4 results each in registers and walk
// K in slices of 16 that the workgroup has brought, transposed, into its memory.

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (T, K)
@group(0) @binding(1) var<storage, read> w: array<f32>;             // (n_rows, K)
@group(0) @binding(2) var<storage, read_write> y: array<f32>;       // (T, N)
@group(0) @binding(3) var<uniform> params: Params;

const TILE: u32 = 32u;
const SLICE: u32 = 16u;
var<workgroup> x_tile: array<vec4<f32>, 128>;                       // (SLICE, TILE / 4)
var<workgroup> w_tile: array<vec4<f32>, 128>;                       // (SLICE, TILE / 4)

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
    for (var k0 = 0u; k0 < params.n_in; k0 += SLICE) {
        for (var i = lane; i < SLICE * TILE / 4u; i += 64u) {
            let k = k0 + i % SLICE;
            let quad = i / SLICE * 4u;
            x_tile[(i % SLICE) * 8u + i / SLICE] = x_quad(first_token + quad, k);
            w_tile[(i % SLICE) * 8u + i / SLICE] = w_quad(first_row + quad, k);
        }
        workgroupBarrier();
        for (var k = 0u; k < SLICE; k++) {
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

fn x_quad(token: u32, k: u32) -> vec4<f32> {
    return vec4<f32>(x_at(token, k), x_at(token + 1u, k), x_at(token + 2u, k), x_at(token + 3u, k));
}

fn w_quad(row: u32, k: u32) -> vec4<f32> {
    return vec4<f32>(w_at(row, k), w_at(row + 1u, k), w_at(row + 2u, k), w_at(row + 3u, k));
}

fn x_at(token: u32, k: u32) -> f32 {
    if token >= params.n_tokens || k >= params.n_in {
        return 0.0;
    }
    return x[token * params.n_in + k];
}

fn w_at(row: u32, k: u32) -> f32 {
    if row >= params.n_rows || k >= params.n_in {
        return 0.0;
    }
    return w[row * params.n_in + k];
}
