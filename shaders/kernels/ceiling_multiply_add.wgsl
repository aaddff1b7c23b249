// y[i] = sum_c z_c after 4 n_rounds of z_c <- factor z_c + summand, from z_c = x[i] + c for c in 0..8: the most multiply-adds
//
// Grid: one invocation per value. Eight chains hide each other's latency, and fit the registers of a software adapter.

struct Params { n_values: u32, n_rounds: u32, factor: f32, summand: f32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (N)
@group(0) @binding(1) var<storage, read_write> y: array<f32>;       // (N)
@group(0) @binding(2) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let i = linear_group(group, groups) * WORKGROUP + lane;
    if i >= params.n_values {
        return;
    }
    let a = params.factor;
    let b = params.summand;
    // Eight names and no array: some drivers keep an array of the loop in memory.
    var z0 = x[i];
    var z1 = x[i] + 1.0;
    var z2 = x[i] + 2.0;
    var z3 = x[i] + 3.0;
    var z4 = x[i] + 4.0;
    var z5 = x[i] + 5.0;
    var z6 = x[i] + 6.0;
    var z7 = x[i] + 7.0;
    for (var round = 0u; round < params.n_rounds; round++) {
        z0 = four_steps(z0, a, b);
        z1 = four_steps(z1, a, b);
        z2 = four_steps(z2, a, b);
        z3 = four_steps(z3, a, b);
        z4 = four_steps(z4, a, b);
        z5 = four_steps(z5, a, b);
        z6 = four_steps(z6, a, b);
        z7 = four_steps(z7, a, b);
    }
    y[i] = z0 + z1 + z2 + z3 + z4 + z5 + z6 + z7;
}

// Four at once, so that counting rounds costs little.
fn four_steps(z: f32, a: f32, b: f32) -> f32 {
    return (((z * a + b) * a + b) * a + b) * a + b;
}
