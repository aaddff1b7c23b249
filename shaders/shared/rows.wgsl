// Query rows of the tokens and heads that share a key head, counted through; a kernel that names this declares Params

fn n_sharing() -> u32 {
    return params.n_heads / params.n_kv_heads;
}

// The head that a row belongs to, counted through all tokens.
fn head_of(row: u32, kv_head: u32) -> u32 {
    return row / n_sharing() * params.n_heads + kv_head * n_sharing() + row % n_sharing();
}

// The oldest key that the token at `position` sees.
fn seen_from(position: u32) -> u32 {
    return position + 1u - min(params.window, position + 1u);
}
