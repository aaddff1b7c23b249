// y[i] = x[i]: the most bytes that a device reads and writes in a second
//
// Grid: WORKGROUP * QUADS vectors of four per workgroup, of which neighbouring invocations take neighbouring ones.

struct Params { n_quads: u32 }

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;           // (N / 4)
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;     // (N / 4)
@group(0) @binding(2) var<uniform> params: Params;

const QUADS: u32 = 16u;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first = linear_group(group, groups) * WORKGROUP * QUADS + lane;
    for (var i = 0u; i < QUADS; i++) {
        let quad = first + i * WORKGROUP;
        if quad < params.n_quads {
            y[quad] = x[quad];
        }
    }
}
