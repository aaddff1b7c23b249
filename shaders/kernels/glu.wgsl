// y[t, f] = act(x[t, f]) * x[t, F + f] (Shazeer 2020): SiLU, or GELU in its tanh form
//
// Grid: one invocation per element of y.

struct Params { n_tokens: u32, d_ff: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (T, 2F): gate | up
@group(0) @binding(1) var<storage, read_write> y: array<f32>;       // (T, F)
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_tokens * params.d_ff {
        return;
    }
    let start = i / params.d_ff * 2u * params.d_ff + i % params.d_ff;
    y[i] = activation(x[start], GELU) * x[start + params.d_ff];
}
