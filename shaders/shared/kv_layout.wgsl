// How a side of the cache lies in memory: keys take KEY_BITS a channel, values VALUE_BITS
//
// The octets of all slots of all heads, each head filled up with zeros to whole octets of channels. 32 bits are f32 and 16
// are f16. Codes of 8 and 4 bits come in blocks of 32 channels of a head, and after all of them stands a word for each
// block, its scale record:
//   8 bits: m, the largest magnitude, as f32. A code counts 127ths of m, with a sign.
//   4 bits: a and b, as bf16, between which all values lie. A code counts 15ths of the way from a to b.
// A row is a slot of a head, slots counted through all heads. A kernel that names this declares Params with n_kv_heads,
// n_slots and head_dim.

alias Octet = array<vec4<f32>, 2>;

const EACH: vec4<u32> = vec4<u32>(0u, 1u, 2u, 3u);
// Octets of a block.
const BLOCK: u32 = 4u;

fn n_octets() -> u32 {
    return (params.head_dim + 7u) / 8u;
}

// The word with the scale record of a block.
fn record_of(bits: u32, row: u32, block: u32) -> u32 {
    let n_code_words = params.n_kv_heads * params.n_slots * n_octets() * bits / 4u;
    return n_code_words + row * ((n_octets() + BLOCK - 1u) / BLOCK) + block;
}
