// y[t] = sum_k weights[t, k] x[t, k]
//
// Grid: one invocation per element of y.

struct Params { n_tokens: u32, d_model: u32, top_k: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (T * k, D)
@group(0) @binding(1) var<storage, read> weights: array<f32>;       // (T, k)
@group(0) @binding(2) var<storage, read_write> y: array<f32>;       // (T, D)
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_tokens * params.d_model {
        return;
    }
    let token = i / params.d_model;
    var sum = 0.0;
    for (var k = 0u; k < params.top_k; k++) {
        let pick = token * params.top_k + k;
        sum += weights[pick] * x[pick * params.d_model + i % params.d_model];
    }
    y[i] = sum;
}
