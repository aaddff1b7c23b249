// sums[slot] = sum_i x[i]^2, not finite where a value is not
//
// Grid: one workgroup.

struct Params { n: u32, slot: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (n)
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;    // (slots)
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var i = lane; i < params.n; i += WORKGROUP) {
        sum += x[i] * x[i];
    }
    sum = workgroup_sum(sum, lane);
    if lane == 0u {
        sums[params.slot] = sum;
    }
}
