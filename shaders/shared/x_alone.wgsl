// The 32 activations of one block of a token
fn x_block(token: u32, block: u32, lane: u32) -> Block {
    var values = Block();
    for (var i = 0u; i < 8u; i++) {
        values[i] = x_quad(token, block * 8u + i);
    }
    return values;
}
