// s = residual + x; y = w * (s - mean) / sqrt(variance + eps): the residual and the pre-norm that follows it
//
// Grid: one workgroup per row.

struct Params { n_rows: u32, width: u32, eps: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (R, D)
@group(0) @binding(1) var<storage, read> w: array<f32>;             // (D)
@group(0) @binding(2) var<storage, read> residual: array<f32>;      // (R, D)
@group(0) @binding(3) var<storage, read_write> s: array<f32>;       // (R, D)
@group(0) @binding(4) var<storage, read_write> y: array<f32>;       // (R, D)
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = linear_group(group, groups);
    if row >= params.n_rows {
        return;
    }
    let start = row * params.width;

    // An invocation reads back only what it wrote itself: every loop takes the same elements.
    var sum = 0.0;
    for (var i = lane; i < params.width; i += WORKGROUP) {
        let added = residual[start + i] + x[start + i];
        s[start + i] = added;
        sum += added;
    }
    var mean = 0.0;
    if CENTER {
        mean = workgroup_sum(sum, lane) / f32(params.width);
    }
    var squares = 0.0;
    for (var i = lane; i < params.width; i += WORKGROUP) {
        let d = s[start + i] - mean;
        squares += d * d;
    }
    let inverse = inverseSqrt(workgroup_sum(squares, lane) / f32(params.width) + params.eps);
    for (var i = lane; i < params.width; i += WORKGROUP) {
        y[start + i] = w[i] * ((s[start + i] - mean) * inverse);
    }
}
