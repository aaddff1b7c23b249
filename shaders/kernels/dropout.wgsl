// y[i] = x[i] / (1 - rate) where a hash of (seed, i) falls above the rate, else 0: the same values for the same seed
//
// The hash is PCG's output permutation (O'Neill 2014), of a counter: nothing is stored, and the gradient drops the same.
// Grid: one invocation per element.

struct Params { n: u32, seed: u32, threshold: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (n)
@group(0) @binding(1) var<storage, read_write> y: array<f32>;       // (n)
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n {
        return;
    }
    y[i] = select(0.0, params.scale * x[i], hash(hash(i) ^ params.seed) >= params.threshold);
}
