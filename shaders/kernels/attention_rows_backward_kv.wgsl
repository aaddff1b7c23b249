// dv[s] = sum_t p[t] dy[t], dk[s] = scale sum_t p[t] (dy[t] v[s] - delta[t]) q[t], over the queries that see s
//
// Those are the tokens of the same document from s on, inside the window, of every head that shares the key.
// Grid: one invocation per token and key-value head, neighbours along the tokens.

struct Params { n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, window: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;     // (T, (H + 2K) * C / 4)
@group(0) @binding(1) var<storage, read> positions: array<u32>;     // (T)
@group(0) @binding(2) var<storage, read> log_sums: array<f32>;      // (T, H)
@group(0) @binding(3) var<storage, read> dy: array<vec4<f32>>;      // (T, H * C / 4)
@group(0) @binding(4) var<storage, read> deltas: array<f32>;        // (T, H)
@group(0) @binding(5) var<storage, read_write> dqkv: array<vec4<f32>>;  // (T, (H + 2K) * C / 4), of which k and v
@group(0) @binding(6) var<uniform> params: Params;

const QUADS: u32 = CHANNELS / 4u;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * WORKGROUP + lane;
    let token = index % params.n_tokens;
    let kv_head = index / params.n_tokens;
    if kv_head >= params.n_kv_heads {
        return;
    }
    let quads = head_quads();
    let row = (params.n_heads + 2u * params.n_kv_heads) * quads;
    let key = token * row + (params.n_heads + kv_head) * quads;
    let value = key + params.n_kv_heads * quads;
    let sharing = params.n_heads / params.n_kv_heads;

    var k = array<vec4<f32>, QUADS>();
    var v = array<vec4<f32>, QUADS>();
    for (var i = 0u; i < quads; i++) {
        k[i] = params.scale * qkv[key + i];
        v[i] = qkv[value + i];
    }
    var dk = array<vec4<f32>, QUADS>();
    var dv = array<vec4<f32>, QUADS>();
    let reach = min(params.n_tokens - token, params.window);
    for (var ahead = 0u; ahead < reach; ahead++) {
        let t = token + ahead;
        // A later document has begun.
        if positions[t] != positions[token] + ahead {
            break;
        }
        for (var head = kv_head * sharing; head < (kv_head + 1u) * sharing; head++) {
            let query = t * row + head * quads;
            let result = (t * params.n_heads + head) * quads;
            var scores = vec4<f32>();
            var along = vec4<f32>();
            for (var i = 0u; i < quads; i++) {
                scores += k[i] * qkv[query + i];
                along += v[i] * dy[result + i];
            }
            let at = t * params.n_heads + head;
            let weight = exp(dot(scores, vec4<f32>(1.0)) - log_sums[at]);
            let slope = params.scale * weight * (dot(along, vec4<f32>(1.0)) - deltas[at]);
            for (var i = 0u; i < quads; i++) {
                dk[i] += slope * qkv[query + i];
                dv[i] += weight * dy[result + i];
            }
        }
    }

    for (var i = 0u; i < quads; i++) {
        dqkv[key + i] = dk[i];
        dqkv[value + i] = dv[i];
    }
}

// A number that is known when the pipeline is made lets the compiler keep the arrays in registers.
fn head_quads() -> u32 {
    if EXACT {
        return QUADS;
    }
    return params.head_dim / 4u;
}
