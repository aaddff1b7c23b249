// The 32 activations of one block of a token: each lane brings four
fn x_block(token: u32, block: u32, lane: u32) -> Block {
    return of_all(x_quad(token, block * 8u + lane));
}
