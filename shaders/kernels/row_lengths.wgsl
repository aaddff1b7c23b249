// lengths[first_length + n] = |w[first_row + n] + scale * sum_j b[first_length + n, j] a[j]|, for a given as x
//
// Grid: WORKGROUP / LANES rows per workgroup. LANES neighbouring invocations share a row: each takes every LANES-th
// block of 32, and workgroup memory adds their parts.

struct Params { n_in: u32, rank: u32, n_rows: u32, first_row: u32, first_length: u32, scale: f32 }

@group(0) @binding(NEXT_BINDING) var<storage, read> b: array<f32>;              // (n, r)
@group(0) @binding(NEXT_BINDING + 1u) var<storage, read_write> lengths: array<f32>; // (n)
@group(0) @binding(NEXT_BINDING + 2u) var<uniform> params: Params;

const ROWS: u32 = WORKGROUP / LANES;
var<workgroup> parts: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * ROWS + lane / LANES;
    let held = index < params.n_rows;
    let length = params.first_length + index;
    var sum = vec4<f32>();
    if held {
        for (var block = lane % LANES; block < (params.n_in + 31u) / 32u; block += LANES) {
            var row = weights(params.first_row + index, block);
            for (var j = 0u; j < params.rank; j++) {
                let factor = params.scale * b[length * params.rank + j];
                for (var i = 0u; i < 8u; i++) {
                    row[i] += factor * x_quad(j, block * 8u + i);
                }
            }
            for (var i = 0u; i < 8u; i++) {
                sum += row[i] * row[i];
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
        lengths[length] = sqrt(total);
    }
}
