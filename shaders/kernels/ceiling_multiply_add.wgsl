// y[i] = sum_c z_c after n_steps of z_c <- factor z_c + summand, from z_c = x[i] + c for c in 0..8: the most multiply-adds
//
// Grid: one invocation per vector of four. Its eight chains wait for themselves alone, so arithmetic never stalls.

struct Params { n_quads: u32, n_steps: u32, factor: f32, summand: f32 }

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;           // (N / 4)
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;     // (N / 4)
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let quad = linear_group(group, groups) * WORKGROUP + lane;
    if quad >= params.n_quads {
        return;
    }
    let factor = vec4<f32>(params.factor);
    let summand = vec4<f32>(params.summand);
    // Eight names and no array: some drivers keep an array of the loop in memory.
    var z0 = x[quad];
    var z1 = x[quad] + 1.0;
    var z2 = x[quad] + 2.0;
    var z3 = x[quad] + 3.0;
    var z4 = x[quad] + 4.0;
    var z5 = x[quad] + 5.0;
    var z6 = x[quad] + 6.0;
    var z7 = x[quad] + 7.0;
    for (var step = 0u; step < params.n_steps; step++) {
        z0 = z0 * factor + summand;
        z1 = z1 * factor + summand;
        z2 = z2 * factor + summand;
        z3 = z3 * factor + summand;
        z4 = z4 * factor + summand;
        z5 = z5 * factor + summand;
        z6 = z6 * factor + summand;
        z7 = z7 * factor + summand;
    }
    y[quad] = z0 + z1 + z2 + z3 + z4 + z5 + z6 + z7;
}
