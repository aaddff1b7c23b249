// dw[i] = sum_r dy[r, i] (x[r, i] - mean[r]) inverse[r]
//
// Grid: one invocation per element of dw.

struct Params { n_rows: u32, width: u32, eps: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (R, D)
@group(0) @binding(1) var<storage, read> dy: array<f32>;            // (R, D)
@group(0) @binding(2) var<storage, read> moments: array<f32>;       // (R, 2): mean, inverse
@group(0) @binding(3) var<storage, read_write> dw: array<f32>;      // (D)
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.width {
        return;
    }
    var sum = 0.0;
    for (var row = 0u; row < params.n_rows; row++) {
        let at = row * params.width + i;
        sum += dy[at] * ((x[at] - moments[2u * row]) * moments[2u * row + 1u]);
    }
    dw[i] = sum;
}
