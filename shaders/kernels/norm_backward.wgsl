// dx = inverse * (u - mean(u) - n mean(u n)) with u = w dy, n = (x - mean(x)) inverse; RMSNorm has no means of x and u
//
// `moments` gets mean and inverse of each row, for the gradient of w.
// Grid: one workgroup per row.

struct Params { n_rows: u32, width: u32, eps: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (R, D)
@group(0) @binding(1) var<storage, read> w: array<f32>;             // (D)
@group(0) @binding(2) var<storage, read> dy: array<f32>;            // (R, D)
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;      // (R, D)
@group(0) @binding(4) var<storage, read_write> moments: array<f32>; // (R, 2): mean, inverse
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
    let width = f32(params.width);

    var mean = 0.0;
    if CENTER {
        var sum = 0.0;
        for (var i = lane; i < params.width; i += WORKGROUP) {
            sum += x[start + i];
        }
        mean = workgroup_sum(sum, lane) / width;
    }
    var squares = 0.0;
    for (var i = lane; i < params.width; i += WORKGROUP) {
        let d = x[start + i] - mean;
        squares += d * d;
    }
    let inverse = inverseSqrt(workgroup_sum(squares, lane) / width + params.eps);

    var total = 0.0;
    var along = 0.0;
    for (var i = lane; i < params.width; i += WORKGROUP) {
        let u = w[i] * dy[start + i];
        total += u;
        along += u * ((x[start + i] - mean) * inverse);
    }
    along = workgroup_sum(along, lane) / width;
    if CENTER {
        total = workgroup_sum(total, lane) / width;
    } else {
        total = 0.0;
    }
    for (var i = lane; i < params.width; i += WORKGROUP) {
        let n = (x[start + i] - mean) * inverse;
        dx[start + i] = inverse * (w[i] * dy[start + i] - total - n * along);
    }
    if lane == 0u {
        moments[2u * row] = mean;
        moments[2u * row + 1u] = inverse;
    }
}
