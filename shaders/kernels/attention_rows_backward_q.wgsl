// dq[t, h] = scale sum_s p[s] (dy v[s] - delta) k[s], with p[s] = exp(score - log_sum) and delta = dy y
//
// Scores are computed again from q and k; `deltas` keeps delta for the gradients of keys and values (Dao et al. 2022).
// Grid: one invocation per token and head, neighbours along the tokens.

struct Params { n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, window: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;     // (T, (H + 2K) * C / 4)
@group(0) @binding(1) var<storage, read> positions: array<u32>;     // (T)
@group(0) @binding(2) var<storage, read> y: array<vec4<f32>>;       // (T, H * C / 4)
@group(0) @binding(3) var<storage, read> log_sums: array<f32>;      // (T, H)
@group(0) @binding(4) var<storage, read> dy: array<vec4<f32>>;      // (T, H * C / 4)
@group(0) @binding(5) var<storage, read_write> dqkv: array<vec4<f32>>;  // (T, (H + 2K) * C / 4), of which q
@group(0) @binding(6) var<storage, read_write> deltas: array<f32>;  // (T, H)
@group(0) @binding(7) var<uniform> params: Params;

const QUADS: u32 = CHANNELS / 4u;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * WORKGROUP + lane;
    let token = index % params.n_tokens;
    let head = index / params.n_tokens;
    if head >= params.n_heads {
        return;
    }
    let quads = head_quads();
    let row = (params.n_heads + 2u * params.n_kv_heads) * quads;
    let key = (params.n_heads + head / (params.n_heads / params.n_kv_heads)) * quads;
    let value = key + params.n_kv_heads * quads;
    let own = (token * params.n_heads + head) * quads;

    var q = array<vec4<f32>, QUADS>();
    var g = array<vec4<f32>, QUADS>();
    var products = vec4<f32>();
    for (var i = 0u; i < quads; i++) {
        q[i] = params.scale * qkv[token * row + head * quads + i];
        g[i] = dy[own + i];
        products += g[i] * y[own + i];
    }
    let delta = dot(products, vec4<f32>(1.0));
    let log_sum = log_sums[token * params.n_heads + head];

    var sums = array<vec4<f32>, QUADS>();
    for (var s = token - min(positions[token], params.window - 1u); s <= token; s++) {
        var scores = vec4<f32>();
        var along = vec4<f32>();
        for (var i = 0u; i < quads; i++) {
            scores += q[i] * qkv[s * row + key + i];
            along += g[i] * qkv[s * row + value + i];
        }
        let weight = exp(dot(scores, vec4<f32>(1.0)) - log_sum);
        let slope = params.scale * weight * (dot(along, vec4<f32>(1.0)) - delta);
        for (var i = 0u; i < quads; i++) {
            sums[i] += slope * qkv[s * row + key + i];
        }
    }

    for (var i = 0u; i < quads; i++) {
        dqkv[token * row + head * quads + i] = sums[i];
    }
    deltas[token * params.n_heads + head] = delta;
}

// A number that is known when the pipeline is made lets the compiler keep the arrays in registers.
fn head_quads() -> u32 {
    if EXACT {
        return QUADS;
    }
    return params.head_dim / 4u;
}
