// From one fused projection qkv: q = rope(clip(norm(q))) out, k = rope(clip(norm(k))) and v = clip(v) into the cache
//
// NORM: 0 none, 1 over the full projected width (OLMo 2, 3, OLMoE), 2 per head (Gemma 3). RoPE rotates the two
// halves of a head (Su et al. 2021, the rotate-half layout); its table holds cos | sin per position.
// Grid: three workgroups per token: q, k, v.

struct Params {
    n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, n_slots: u32,
    eps: f32, clip: f32,
}

@group(0) @binding(0) var<storage, read> qkv: array<f32>;           // (T, (H + 2K) * C)
@group(0) @binding(1) var<storage, read> weight: array<f32>;        // (H * C + K * C), or (2 * C) per head: q | k
@group(0) @binding(2) var<storage, read> rope: array<f32>;          // (positions, C): cos | sin
@group(0) @binding(3) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(4) var<storage, read_write> q: array<f32>;       // (T, H * C)
@group(0) @binding(5) var<storage, read_write> k_cache: array<f32>; // (slots, K * C)
@group(0) @binding(6) var<storage, read_write> v_cache: array<f32>; // (slots, K * C)
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
    let q_width = params.n_heads * params.head_dim;
    let kv_width = params.n_kv_heads * params.head_dim;
    let start = token * (q_width + 2u * kv_width) + select(0u, q_width, part > 0u) + select(0u, kv_width, part == 2u);
    let position = step[0] + token;
    let slot = (position % params.n_slots) * kv_width;

    if part == 2u {
        for (var i = lane; i < kv_width; i += WORKGROUP) {
            v_cache[slot + i] = clipped(qkv[start + i]);
        }
        return;
    }

    let n_heads = select(params.n_heads, params.n_kv_heads, part == 1u);
    let width = n_heads * params.head_dim;
    var inverse = 1.0;
    if NORM == 1u {
        inverse = inverse_norm(start, width, lane);
    }
    for (var head = 0u; head < n_heads; head++) {
        let offset = head * params.head_dim;
        if NORM == 2u {
            inverse = inverse_norm(start + offset, params.head_dim, lane);
        }
        let half = params.head_dim / 2u;
        for (var i = lane; i < half; i += WORKGROUP) {
            let a = clipped(normed(start, offset + i, part, inverse));
            let b = clipped(normed(start, offset + i + half, part, inverse));
            let c = rope[position * params.head_dim + i];
            let s = rope[position * params.head_dim + half + i];
            if part == 0u {
                q[token * q_width + offset + i] = a * c - b * s;
                q[token * q_width + offset + i + half] = b * c + a * s;
            } else {
                k_cache[slot + offset + i] = a * c - b * s;
                k_cache[slot + offset + i + half] = b * c + a * s;
            }
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

fn normed(start: u32, i: u32, part: u32, inverse: f32) -> f32 {
    var w = 1.0;
    if NORM == 1u {
        w = weight[part * params.n_heads * params.head_dim + i];
    } else if NORM == 2u {
        w = weight[part * params.head_dim + i % params.head_dim];
    }
    return w * (qkv[start + i] * inverse);
}

fn clipped(x: f32) -> f32 {
    return clamp(x, -params.clip, params.clip);
}
