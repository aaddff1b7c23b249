// dqkv from the gradient of rope(clip(norm(q))) | rope(clip(norm(k))) | clip(v)
//
// The gradient is turned back by the position's angle, stopped where the value was clipped, and taken through the norm:
// dx = inverse (w g - n mean(w g n)) with n = x inverse.
// Grid: three workgroups per token: q, k, v.

struct Params { n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, eps: f32, clip: f32 }

@group(0) @binding(0) var<storage, read> qkv: array<f32>;           // (T, (H + 2K) * C)
@group(0) @binding(1) var<storage, read> weight: array<f32>;        // (H * C + K * C), or (2 * C) per head: q | k
@group(0) @binding(2) var<storage, read> rope: array<f32>;          // (positions, C): cos | sin
@group(0) @binding(3) var<storage, read> positions: array<u32>;     // (T)
@group(0) @binding(4) var<storage, read> inverses: array<f32>;      // (T, H + K)
@group(0) @binding(5) var<storage, read> dy: array<f32>;            // (T, (H + 2K) * C)
@group(0) @binding(6) var<storage, read_write> dqkv: array<f32>;    // (T, (H + 2K) * C)
@group(0) @binding(7) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let token = index / 3u;
    let part = index % 3u;
    if token >= params.n_tokens {
        return;
    }
    let first_head = select(0u, params.n_heads, part > 0u) + select(0u, params.n_kv_heads, part == 2u);
    let start = (token * (params.n_heads + 2u * params.n_kv_heads) + first_head) * params.head_dim;
    let n_heads = select(params.n_heads, params.n_kv_heads, part > 0u);
    let width = n_heads * params.head_dim;

    if part == 2u {
        for (var i = lane; i < width; i += WORKGROUP) {
            dqkv[start + i] = select(0.0, dy[start + i], abs(qkv[start + i]) <= params.clip);
        }
        return;
    }

    // How many neighbouring values are normed together.
    let span = select(width, params.head_dim, NORM == 2u);
    for (var first = 0u; first < width; first += span) {
        let head = first_head + first / params.head_dim;
        let inverse = inverses[token * (params.n_heads + params.n_kv_heads) + head];
        var along = 0.0;
        if NORM > 0u {
            for (var i = first + lane; i < first + span; i += WORKGROUP) {
                along += scale(part, i) * turned(token, start, part, i, inverse) * (qkv[start + i] * inverse);
            }
            along = workgroup_sum(along, lane) / f32(span);
        }
        for (var i = first + lane; i < first + span; i += WORKGROUP) {
            let g = scale(part, i) * turned(token, start, part, i, inverse);
            dqkv[start + i] = inverse * (g - qkv[start + i] * inverse * along);
        }
    }
}
