// From qkv of documents laid end to end: rope(clip(norm(q))) | rope(clip(norm(k))) | clip(v)
//
// What `qk_norm_rope` does without a cache: each token has its own position. `inverses` gets what the norms multiply by.
// Grid: three workgroups per token: q, k, v.

struct Params { n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, eps: f32, clip: f32 }

@group(0) @binding(0) var<storage, read> qkv: array<f32>;           // (T, (H + 2K) * C)
@group(0) @binding(1) var<storage, read> weight: array<f32>;        // (H * C + K * C), or (2 * C) per head: q | k
@group(0) @binding(2) var<storage, read> rope: array<f32>;          // (positions, C): cos | sin
@group(0) @binding(3) var<storage, read> positions: array<u32>;     // (T)
@group(0) @binding(4) var<storage, read_write> rotated: array<f32>; // (T, (H + 2K) * C)
@group(0) @binding(5) var<storage, read_write> inverses: array<f32>;    // (T, H + K)
@group(0) @binding(6) var<uniform> params: Params;

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
    let n_all = params.n_heads + 2u * params.n_kv_heads;
    let start = (token * n_all + first_head) * params.head_dim;
    let n_heads = select(params.n_heads, params.n_kv_heads, part > 0u);
    let width = n_heads * params.head_dim;

    if part == 2u {
        for (var i = lane; i < width; i += WORKGROUP) {
            rotated[start + i] = clamp(qkv[start + i], -params.clip, params.clip);
        }
        return;
    }

    var inverse = 1.0;
    if NORM == 1u {
        inverse = inverse_norm(start, width, lane);
    }
    let half = params.head_dim / 2u;
    for (var head = 0u; head < n_heads; head++) {
        let offset = head * params.head_dim;
        if NORM == 2u {
            inverse = inverse_norm(start + offset, params.head_dim, lane);
        }
        if lane == 0u {
            inverses[token * (params.n_heads + params.n_kv_heads) + first_head + head] = inverse;
        }
        for (var i = lane; i < half; i += WORKGROUP) {
            let a = clipped(start, part, offset + i, inverse);
            let b = clipped(start, part, offset + i + half, inverse);
            let c = rope[positions[token] * params.head_dim + i];
            let s = rope[positions[token] * params.head_dim + half + i];
            rotated[start + offset + i] = a * c - b * s;
            rotated[start + offset + i + half] = b * c + a * s;
        }
    }
}

fn inverse_norm(start: u32, width: u32, lane: u32) -> f32 {
    var squares = 0.0;
    for (var i = lane; i < width; i += WORKGROUP) {
        squares += qkv[start + i] * qkv[start + i];
    }
    return inverseSqrt(workgroup_sum(squares, lane) / f32(width) + params.eps);
}

fn clipped(start: u32, part: u32, i: u32, inverse: f32) -> f32 {
    var w = 1.0;
    if NORM == 1u {
        w = weight[part * params.n_heads * params.head_dim + i];
    } else if NORM == 2u {
        w = weight[part * params.head_dim + i % params.head_dim];
    }
    return clamp(w * (qkv[start + i] * inverse), -params.clip, params.clip);
}
