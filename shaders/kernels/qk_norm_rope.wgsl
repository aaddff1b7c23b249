// From one fused projection qkv: q = rope(clip(norm(q))) out, k = rope(clip(norm(k))) and v = clip(v) into the cache
//
// NORM: 0 none, 1 over the full projected width (OLMo 2, 3, OLMoE), 2 per head (Gemma 3). RoPE rotates the two
// halves of a head (Su et al. 2021, the rotate-half layout); its table holds cos | sin per position.
// Grid: three workgroups per token: q, k, v. An invocation writes pairs of q, or as many octets of the cache as it puts at once.

struct Params {
    n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, n_slots: u32,
    eps: f32, clip: f32,
}

@group(0) @binding(0) var<storage, read> qkv: array<f32>;           // (T, (H + 2K) * C)
@group(0) @binding(1) var<storage, read> weight: array<f32>;        // (H * C + K * C), or (2 * C) per head: q | k
@group(0) @binding(2) var<storage, read> rope: array<f32>;          // (positions, C): cos | sin
@group(0) @binding(3) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(4) var<storage, read_write> q: array<f32>;       // (T, H * C)
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
    let slot = position % params.n_slots;

    if part == 2u {
        let n_puts = (n_octets() + VALUE_OCTETS - 1u) / VALUE_OCTETS;
        for (var i = lane; i < params.n_kv_heads * n_puts; i += WORKGROUP) {
            let octet = i % n_puts * VALUE_OCTETS;
            var values = Block();
            for (var c = octet * 8u; c < min((octet + VALUE_OCTETS) * 8u, params.head_dim); c++) {
                values[c / 4u % (VALUE_OCTETS * 2u)][c % 4u] = clipped(qkv[start + i / n_puts * params.head_dim + c]);
            }
            put_values(i / n_puts * params.n_slots + slot, octet, values);
        }
        return;
    }

    let n_heads = select(params.n_heads, params.n_kv_heads, part == 1u);
    // A norm of each head goes from head to head; otherwise all are done at once.
    let n_rounds = select(1u, n_heads, NORM == 2u);
    let heads_per_round = n_heads / n_rounds;
    var inverse = 1.0;
    for (var round = 0u; round < n_rounds; round++) {
        let first = start + round * heads_per_round * params.head_dim;
        if NORM > 0u {
            inverse = inverse_norm(first, heads_per_round * params.head_dim, lane);
        }
        if part == 0u {
            let half = params.head_dim / 2u;
            for (var i = lane; i < heads_per_round * half; i += WORKGROUP) {
                let head = round * heads_per_round + i / half;
                let c = i % half;
                let row = token * q_width + head * params.head_dim;
                let a = normed(start, head, c, part, inverse);
                let b = normed(start, head, c + half, part, inverse);
                let cosine = rope[position * params.head_dim + c];
                let sine = rope[position * params.head_dim + half + c];
                q[row + c] = a * cosine - b * sine;
                q[row + c + half] = b * cosine + a * sine;
            }
        } else {
            let n_puts = (n_octets() + KEY_OCTETS - 1u) / KEY_OCTETS;
            for (var i = lane; i < heads_per_round * n_puts; i += WORKGROUP) {
                let head = round * heads_per_round + i / n_puts;
                let octet = i % n_puts * KEY_OCTETS;
                var values = Block();
                for (var c = octet * 8u; c < min((octet + KEY_OCTETS) * 8u, params.head_dim); c++) {
                    values[c / 4u % (KEY_OCTETS * 2u)][c % 4u] = rotated_key(start, head, c, position, inverse);
                }
                put_keys(head * params.n_slots + slot, octet, values);
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

fn rotated_key(start: u32, head: u32, c: u32, position: u32, inverse: f32) -> f32 {
    let half = params.head_dim / 2u;
    let is_second = c >= half;
    let own = normed(start, head, c, 1u, inverse);
    let other = normed(start, head, select(c + half, c - half, is_second), 1u, inverse);
    let cosine = rope[position * params.head_dim + c % half];
    let sine = rope[position * params.head_dim + half + c % half];
    return own * cosine + select(-other, other, is_second) * sine;
}

fn normed(start: u32, head: u32, c: u32, part: u32, inverse: f32) -> f32 {
    var w = 1.0;
    if NORM == 1u {
        w = weight[(part * params.n_heads + head) * params.head_dim + c];
    } else if NORM == 2u {
        w = weight[part * params.head_dim + c];
    }
    return clipped(w * (qkv[start + head * params.head_dim + c] * inverse));
}

fn clipped(x: f32) -> f32 {
    return clamp(x, -params.clip, params.clip);
}
