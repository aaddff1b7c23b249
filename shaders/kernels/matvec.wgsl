// y[t, first_column + n] = sum_k x[t, k] w[n, k], or act(gate) * up of two such sums, for few rows of x
//
// Grid: ROWS * WORKGROUP / LANES rows of w per workgroup, for each t. LANES neighbouring invocations share ROWS rows: each
// takes every LANES-th block of 32 and keeps the block of x for all its rows; workgroup memory adds their parts.

@group(0) @binding(NEXT_BINDING) var<storage, read_write> y: array<f32>;    // (T, N)
@group(0) @binding(NEXT_BINDING + 1u) var<uniform> params: Params;

// Results for which LANES invocations share ROWS rows.
const KEPT: u32 = ROWS / GATES;
var<workgroup> parts: array<array<f32, ROWS>, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let n_results = params.n_rows / GATES;
    let results_per_group = WORKGROUP / LANES * KEPT;
    let row_groups = (n_results + results_per_group - 1u) / results_per_group;
    let index = linear_group(group, groups);
    let token = index / row_groups;
    let first_row = index % row_groups * results_per_group + lane / LANES * KEPT;

    // Rows and tokens past the end read the last one and are dropped below.
    var sums = array<f32, ROWS>();
    for (var block = lane % LANES; block < (params.n_in + 31u) / 32u; block += LANES) {
        var values = Block();
        for (var i = 0u; i < 8u; i++) {
            values[i] = x_quad(min(token, params.n_tokens - 1u), block * 8u + i);
        }
        for (var r = 0u; r < ROWS; r++) {
            let w = weights(min(first_row + r % KEPT, n_results - 1u) + r / KEPT * n_results, block);
            var sum = values[0] * w[0];
            for (var i = 1u; i < 8u; i++) {
                sum += values[i] * w[i];
            }
            sums[r] += dot(sum, vec4<f32>(1.0));
        }
    }
    parts[lane] = sums;
    workgroupBarrier();

    let row = first_row + lane % LANES;
    if lane % LANES < KEPT && row < n_results && token < params.n_tokens {
        var total = 0.0;
        var other = 0.0;
        for (var i = 0u; i < LANES; i++) {
            total += parts[lane / LANES * LANES + i][lane % LANES];
            other += parts[lane / LANES * LANES + i][ROWS - KEPT + lane % LANES];
        }
        y[token * params.n_out + params.first_column + row] = result(total, other);
    }
}
