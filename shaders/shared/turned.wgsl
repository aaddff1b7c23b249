// The gradient of a normed and clipped query or key, from that of the rotated one.
//
// A kernel that names this declares NORM, qkv, weight, rope, positions, dy and Params as `rope_rows_backward` does.

fn turned(token: u32, start: u32, part: u32, i: u32, inverse: f32) -> f32 {
    if abs(scale(part, i) * (qkv[start + i] * inverse)) > params.clip {
        return 0.0;
    }
    let half = params.head_dim / 2u;
    let at = i % params.head_dim;
    let angle = positions[token] * params.head_dim + at % half;
    let c = rope[angle];
    let s = rope[angle + half];
    if at < half {
        return dy[start + i] * c + dy[start + i + half] * s;
    }
    return dy[start + i] * c - dy[start + i - half] * s;
}

// The norm's weight of a value.
fn scale(part: u32, i: u32) -> f32 {
    if NORM == 1u {
        return weight[part * params.n_heads * params.head_dim + i];
    }
    if NORM == 2u {
        return weight[part * params.head_dim + i % params.head_dim];
    }
    return 1.0;
}
