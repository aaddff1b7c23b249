// dx[t, f] = dy act'(gate) up, dx[t, F + f] = dy act(gate)
//
// Grid: one invocation per element of dy.

struct Params { n_tokens: u32, d_ff: u32 }

@group(0) @binding(0) var<storage, read> x: array<f32>;             // (T, 2F): gate | up
@group(0) @binding(1) var<storage, read> dy: array<f32>;            // (T, F)
@group(0) @binding(2) var<storage, read_write> dx: array<f32>;      // (T, 2F)
@group(0) @binding(3) var<uniform> params: Params;

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
    let both = activation(x[start]);
    dx[start] = dy[i] * both.y * x[start + params.d_ff];
    dx[start + params.d_ff] = dy[i] * both.x;
}

// The activation and its derivative. Arguments of tanh and exp are kept where both are saturated already.
fn activation(x: f32) -> vec2<f32> {
    if GELU {
        let inner = 0.7978845608 * (x + 0.044715 * x * x * x);
        let t = tanh(clamp(inner, -20.0, 20.0));
        let slope = 0.7978845608 * (1.0 + 3.0 * 0.044715 * x * x);
        // Where tanh is saturated its slope is 0, however steep `inner` is.
        let bend = select(0.5 * x * (1.0 - t * t) * slope, 0.0, abs(t) == 1.0);
        return vec2<f32>(0.5 * x * (1.0 + t), 0.5 * (1.0 + t) + bend);
    }
    let sigmoid = 1.0 / (1.0 + exp(min(-x, 80.0)));
    return vec2<f32>(x * sigmoid, sigmoid * (1.0 + x * (1.0 - sigmoid)));
}
