// dx[t, k] = weights[t, k] dy[t], dweights[t, k] = x[t, k] dy[t]
//
// Grid: one workgroup per pick.

struct Params { n_tokens: u32, d_model: u32, top_k: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (T * k, D)
@group(0) @binding(1) var<storage, read> weights: array<f32>;       // (T, k)
@group(0) @binding(2) var<storage, read> dy: array<f32>;            // (T, D)
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;      // (T * k, D)
@group(0) @binding(4) var<storage, read_write> dweights: array<f32>;    // (T, k)
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let pick = linear_group(group, groups);
    if pick >= params.n_tokens * params.top_k {
        return;
    }
    let token = pick / params.top_k;
    var along = 0.0;
    for (var i = lane; i < params.d_model; i += WORKGROUP) {
        let g = dy[token * params.d_model + i];
        dx[pick * params.d_model + i] = weights[pick] * g;
        along += x[pick * params.d_model + i] * g;
    }
    along = workgroup_sum(along, lane);
    if lane == 0u {
        dweights[pick] = along;
    }
}
