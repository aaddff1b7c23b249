// Logits as keys: u32 in the order of the floats, so that integers compare, count and search them. Key 0 is no candidate.
//
// A kernel that names this declares Pack and PACK. A pack is spread to four components; a scalar fills only the first.

const NONE: u32 = 0xffffffffu;
const NEVER: u32 = 0xff800000u; // -inf
const SIGN: u32 = 0x80000000u;
const COMPONENTS: vec4<u32> = vec4<u32>(0u, 1u, 2u, 3u);

fn spread(pack: Pack) -> vec4<u32> {
    return select(vec4<u32>(NEVER), vec4<u32>(pack), COMPONENTS < vec4<u32>(PACK));
}

fn key_of(bits: vec4<u32>) -> vec4<u32> {
    return bits ^ select(vec4<u32>(SIGN), vec4<u32>(NONE), bits >= vec4<u32>(SIGN));
}

fn value_of(keys: vec4<u32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(keys ^ select(vec4<u32>(NONE), vec4<u32>(SIGN), keys >= vec4<u32>(SIGN)));
}

// The keys of pack `i`; 0 for a logit of -inf and for tokens from `limit` on.
fn candidates(pack: Pack, i: u32, limit: u32) -> vec4<u32> {
    let bits = spread(pack);
    let open = (bits != vec4<u32>(NEVER)) & (i * PACK + COMPONENTS < vec4<u32>(limit));
    return select(vec4<u32>(), key_of(bits), open);
}
