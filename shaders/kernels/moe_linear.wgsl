// y[p, n] = sum_k x[p / picks_per_row, k] w[experts[p], n, k]: a matvec per pick with the pick's own matrix
//
// Expert matrices are rows of one large weight, which may come in parts; a launch writes only the rows it holds.
// Grid: WORKGROUP / LANES rows of an expert's matrix per workgroup, for each pick.

struct Params {
    n_picks: u32, picks_per_row: u32, n_in: u32, n_out: u32, first_row: u32, n_rows: u32,
}

@group(0) @binding(NEXT_BINDING) var<storage, read> experts: array<u32>;    // (T, k)
@group(0) @binding(NEXT_BINDING + 1u) var<storage, read_write> y: array<f32>;   // (T * k, N)
@group(0) @binding(NEXT_BINDING + 2u) var<uniform> params: Params;

const ROWS: u32 = WORKGROUP / LANES;
var<workgroup> parts: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row_groups = (params.n_out + ROWS - 1u) / ROWS;
    let index = linear_group(group, groups);
    let pick = index / row_groups;
    let column = index % row_groups * ROWS + lane / LANES;

    var row = params.n_rows;
    var sum = vec4<f32>();
    if pick < params.n_picks && column < params.n_out {
        row = experts[pick] * params.n_out + column - params.first_row;
    }
    let held = row < params.n_rows;
    if held {
        for (var block = lane % LANES; block < (params.n_in + 31u) / 32u; block += LANES) {
            let w = weights(row, block);
            for (var i = 0u; i < 8u; i++) {
                sum += x_quad(pick / params.picks_per_row, block * 8u + i) * w[i];
            }
        }
    }
    parts[lane] = dot(sum, vec4<f32>(1.0));
    workgroupBarrier();

    if lane % LANES == 0u && held {
        var total = 0.0;
        for (var i = 0u; i < LANES; i++) {
            total += parts[lane + i];
        }
        y[pick * params.n_out + column] = total;
    }
}
