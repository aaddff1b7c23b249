// dw[n, k] = sum_t dy[t, first_column + n] x[t, k]: the gradient of a dense weight
//
// Grid: one invocation per EDGE x EDGE tile of dw, neighbours along k.

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

@group(0) @binding(0) var<storage, read> dy: array<f32>;            // (T, N)
@group(0) @binding(1) var<storage, read> x: array<f32>;             // (T, K)
@group(0) @binding(2) var<storage, read_write> dw: array<f32>;      // (n_rows, K)
@group(0) @binding(3) var<uniform> params: Params;

const EDGE: u32 = 4u;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let tiles = (params.n_in + EDGE - 1u) / EDGE;
    let index = linear_group(group, groups) * WORKGROUP + lane;
    let first_row = index / tiles * EDGE;
    let first_k = index % tiles * EDGE;
    if first_row >= params.n_rows {
        return;
    }

    // Rows and columns past the end read the last one and are dropped below.
    var sums = array<vec4<f32>, EDGE>();
    let last = params.n_in - 1u;
    let columns = min(vec4<u32>(first_k) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last));
    for (var t = 0u; t < params.n_tokens; t++) {
        let row = t * params.n_in;
        let v = vec4<f32>(x[row + columns.x], x[row + columns.y], x[row + columns.z], x[row + columns.w]);
        for (var r = 0u; r < EDGE; r++) {
            let n = min(first_row + r, params.n_rows - 1u);
            sums[r] += dy[t * params.n_out + params.first_column + n] * v;
        }
    }

    for (var r = 0u; r < EDGE; r++) {
        for (var i = 0u; i < EDGE; i++) {
            if first_row + r < params.n_rows && first_k + i < params.n_in {
                dw[(first_row + r) * params.n_in + first_k + i] = sums[r][i];
            }
        }
    }
}
