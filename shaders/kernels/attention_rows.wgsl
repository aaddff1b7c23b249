// y[t, h] = softmax(scale q[t, h] K^T) V over the keys of the same document, up to t and inside the window
//
// Documents lie end to end; a token's position says where its own begins. One pass with an online softmax (Milakov &
// Gimelshein 2018); `log_sums` keeps the logarithm of each row's sum for the gradient, never a matrix of scores.
// Grid: one invocation per token and head, neighbours along the tokens, so that they read the same keys.

struct Params { n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, window: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> qkv: array<vec4<f32>>;     // (T, (H + 2K) * C / 4)
@group(0) @binding(1) var<storage, read> positions: array<u32>;     // (T)
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>; // (T, H * C / 4)
@group(0) @binding(3) var<storage, read_write> log_sums: array<f32>;    // (T, H)
@group(0) @binding(4) var<uniform> params: Params;

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

    var q = array<vec4<f32>, QUADS>();
    for (var i = 0u; i < quads; i++) {
        q[i] = params.scale * qkv[token * row + head * quads + i];
    }
    var sums = array<vec4<f32>, QUADS>();
    var largest = -3.0e38;
    var total = 0.0;
    for (var s = token - min(positions[token], params.window - 1u); s <= token; s++) {
        var products = vec4<f32>();
        for (var i = 0u; i < quads; i++) {
            products += q[i] * qkv[s * row + key + i];
        }
        let score = dot(products, vec4<f32>(1.0));
        let larger = max(largest, score);
        let fade = exp(largest - larger);
        let weight = exp(score - larger);
        total = total * fade + weight;
        largest = larger;
        for (var i = 0u; i < quads; i++) {
            sums[i] = sums[i] * fade + weight * qkv[s * row + value + i];
        }
    }

    for (var i = 0u; i < quads; i++) {
        y[(token * params.n_heads + head) * quads + i] = sums[i] / total;
    }
    log_sums[token * params.n_heads + head] = largest + log(total);
}

// A number that is known when the pipeline is made lets the compiler keep the arrays in registers.
fn head_quads() -> u32 {
    if EXACT {
        return QUADS;
    }
    return params.head_dim / 4u;
}
