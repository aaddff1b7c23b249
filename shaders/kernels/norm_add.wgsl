// y = residual + w * (x - mean) / sqrt(variance + eps): the post-norm of OLMo 2 and 3, with its residual
//
// Grid: one workgroup per row.

struct Params { n_rows: u32, width: u32, eps: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (R, D)
@group(0) @binding(1) var<storage, read> w: array<f32>;             // (D)
@group(0) @binding(2) var<storage, read> residual: array<f32>;      // (R, D)
@group(0) @binding(3) var<storage, read_write> y: array<f32>;       // (R, D)
@group(0) @binding(4) var<uniform> params: Params;

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

    var mean = 0.0;
    if CENTER {
        var sum = 0.0;
        for (var i = lane; i < params.width; i += WORKGROUP) {
            sum += x[start + i];
        }
        mean = workgroup_sum(sum, lane) / f32(params.width);
    }
    var squares = 0.0;
    for (var i = lane; i < params.width; i += WORKGROUP) {
        let d = x[start + i] - mean;
        squares += d * d;
    }
    let inverse = inverseSqrt(workgroup_sum(squares, lane) / f32(params.width) + params.eps);
    for (var i = lane; i < params.width; i += WORKGROUP) {
        y[start + i] = residual[start + i] + w[i] * ((x[start + i] - mean) * inverse);
    }
}
