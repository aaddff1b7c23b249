// dweight of the norm of queries and keys: sum over tokens (and heads, where each is normed by itself) of g x inverse
//
// Grid: one invocation per element of the weight.

struct Params { n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, eps: f32, clip: f32 }

@group(0) @binding(0) var<storage, read> qkv: array<f32>;           // (T, (H + 2K) * C)
@group(0) @binding(1) var<storage, read> weight: array<f32>;        // (H * C + K * C), or (2 * C) per head: q | k
@group(0) @binding(2) var<storage, read> rope: array<f32>;          // (positions, C): cos | sin
@group(0) @binding(3) var<storage, read> positions: array<u32>;     // (T)
@group(0) @binding(4) var<storage, read> inverses: array<f32>;      // (T, H + K)
@group(0) @binding(5) var<storage, read> dy: array<f32>;            // (T, (H + 2K) * C)
@group(0) @binding(6) var<storage, read_write> dweight: array<f32>; // as weight
@group(0) @binding(7) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups) * WORKGROUP + lane;
    let n_weights = select(params.n_heads + params.n_kv_heads, 2u, NORM == 2u) * params.head_dim;
    if index >= n_weights {
        return;
    }
    let q_weights = select(params.n_heads, 1u, NORM == 2u) * params.head_dim;
    let part = select(0u, 1u, index >= q_weights);
    let first = index - part * q_weights;
    let first_head = part * params.n_heads;
    let width = select(params.n_heads, params.n_kv_heads, part == 1u) * params.head_dim;
    let stride = select(width, params.head_dim, NORM == 2u);
    var sum = 0.0;
    for (var token = 0u; token < params.n_tokens; token++) {
        let start = (token * (params.n_heads + 2u * params.n_kv_heads) + first_head) * params.head_dim;
        for (var i = first; i < width; i += stride) {
            let head = first_head + i / params.head_dim;
            let inverse = inverses[token * (params.n_heads + params.n_kv_heads) + head];
            sum += turned(token, start, part, i, inverse) * (qkv[start + i] * inverse);
        }
    }
    dweight[index] = sum;
}
