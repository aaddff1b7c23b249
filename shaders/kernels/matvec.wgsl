// y[t, first_column + n] = sum_k x[t, k] w[n, k], for few rows of x
//
// Grid: WORKGROUP / LANES rows of w per workgroup, for each t. LANES neighbouring invocations share one row
// and read it in neighbouring packs, then add their parts through workgroup memory.

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

@group(0) @binding(0) var<storage, read> x: array<Pack>;            // (T, K / PACK)
@group(0) @binding(1) var<storage, read> w: array<Pack>;            // (n_rows, K / PACK)
@group(0) @binding(2) var<storage, read_write> y: array<f32>;       // (T, N)
@group(0) @binding(3) var<uniform> params: Params;

const ROWS: u32 = WORKGROUP / LANES;
var<workgroup> parts: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let blocks = (params.n_rows + ROWS - 1u) / ROWS;
    let index = linear_group(group, groups);
    let token = index / blocks;
    let row = (index % blocks) * ROWS + lane / LANES;
    let packs = params.n_in / PACK;

    // Rows past the end read the last one and are dropped below, so that the loop is uniform but for its tail.
    let x_start = min(token, params.n_tokens - 1u) * packs + lane % LANES;
    let w_start = min(row, params.n_rows - 1u) * packs + lane % LANES;
    let whole = packs / LANES;
    var sum = Pack();
    for (var i = 0u; i < whole; i++) {
        sum += x[x_start + i * LANES] * w[w_start + i * LANES];
    }
    if whole * LANES + lane % LANES < packs {
        sum += x[x_start + whole * LANES] * w[w_start + whole * LANES];
    }
    // The sum of a pack's components; a scalar is spread over four first, hence the quarter.
    parts[lane] = dot(vec4<f32>(sum), vec4<f32>(0.25 * f32(PACK)));
    workgroupBarrier();

    if lane % LANES == 0u && row < params.n_rows && token < params.n_tokens {
        var total = 0.0;
        for (var i = 0u; i < LANES; i++) {
            total += parts[lane + i];
        }
        y[token * params.n_out + params.first_column + row] = total;
    }
}
