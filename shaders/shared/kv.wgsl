// Reads keys and values, an octet of channels at a time; `kv_layout` says how they lie
//
// Octets of a block share a scale, which those who read them in order read once. What is constant here is decided when the
// pipeline is made.

@group(0) @binding(1) var<storage, read> k_cache: array<vec4<u32>>; // (words / 4)
@group(0) @binding(2) var<storage, read> v_cache: array<vec4<u32>>; // (words / 4)

// A value is step * code + start; floats have none.
struct Scale { step: f32, start: f32 }

// The scale of the i-th octet, where `last` is that of the octet before it.
fn key_scale(row: u32, i: u32, last: Scale) -> Scale {
    if KEY_BITS >= 16u || i % BLOCK > 0u {
        return last;
    }
    let word = record_of(KEY_BITS, row, i / BLOCK);
    return scale_of(KEY_BITS, k_cache[word / 4u][word % 4u]);
}

fn key_octet(row: u32, i: u32, scale: Scale) -> Octet {
    let octet = row * n_octets() + i;
    return octet_of(KEY_BITS, keys_around(octet, scale), octet);
}

fn value_scale(row: u32, i: u32, last: Scale) -> Scale {
    if VALUE_BITS >= 16u || i % BLOCK > 0u {
        return last;
    }
    let word = record_of(VALUE_BITS, row, i / BLOCK);
    return scale_of(VALUE_BITS, v_cache[word / 4u][word % 4u]);
}

fn value_octet(row: u32, i: u32, scale: Scale) -> Octet {
    let octet = row * n_octets() + i;
    return octet_of(VALUE_BITS, values_around(octet, scale), octet);
}

// An octet by itself.
fn lone_key_octet(row: u32, i: u32) -> Octet {
    return key_octet(row, i, key_scale(row, i - i % BLOCK, Scale()));
}

fn lone_value_octet(row: u32, i: u32) -> Octet {
    return value_octet(row, i, value_scale(row, i - i % BLOCK, Scale()));
}

// What an octet is made from, which its neighbours may share, so that every read is sixteen bytes.
struct Held { words: vec4<u32>, more: vec4<u32>, scale: Scale }

// Octets in sixteen bytes.
const KEYS_HELD: u32 = max(16u / KEY_BITS, 1u);
const VALUES_HELD: u32 = max(16u / VALUE_BITS, 1u);

fn keys_around(octet: u32, scale: Scale) -> Held {
    if KEY_BITS == 32u {
        return Held(k_cache[2u * octet], k_cache[2u * octet + 1u], scale);
    }
    return Held(k_cache[octet / KEYS_HELD], vec4<u32>(), scale);
}

fn values_around(octet: u32, scale: Scale) -> Held {
    if VALUE_BITS == 32u {
        return Held(v_cache[2u * octet], v_cache[2u * octet + 1u], scale);
    }
    return Held(v_cache[octet / VALUES_HELD], vec4<u32>(), scale);
}

// What the i-th octet of a head of whole blocks is made from, where `last` is that of the octet before it.
fn held_key(row: u32, i: u32, last: Held) -> Held {
    let scale = key_scale(row, i, last.scale);
    if i % KEYS_HELD > 0u {
        return Held(last.words, last.more, scale);
    }
    return keys_around(row * n_octets() + i, scale);
}

fn held_value(row: u32, i: u32, last: Held) -> Held {
    let scale = value_scale(row, i, last.scale);
    if i % VALUES_HELD > 0u {
        return Held(last.words, last.more, scale);
    }
    return values_around(row * n_octets() + i, scale);
}

fn octet_of(bits: u32, held: Held, i: u32) -> Octet {
    if bits == 32u {
        return Octet(bitcast<vec4<f32>>(held.words), bitcast<vec4<f32>>(held.more));
    }
    if bits == 16u {
        return halves(held.words);
    }
    if bits == 8u {
        let two = select(held.words.xy, held.words.zw, i % 2u == 1u);
        return Octet(bytes(two.x, held.scale), bytes(two.y, held.scale));
    }
    return nibbles(held.words[i % 4u], held.scale);
}

fn scale_of(bits: u32, record: u32) -> Scale {
    if bits == 8u {
        return Scale(bitcast<f32>(record) * (1.0 / 127.0), 0.0);
    }
    let a = bitcast<f32>(record << 16u);
    let b = bitcast<f32>(record & 0xffff0000u);
    return Scale((b - a) * (1.0 / 15.0), a);
}

fn halves(words: vec4<u32>) -> Octet {
    return Octet(
        vec4<f32>(unpack2x16float(words.x), unpack2x16float(words.y)),
        vec4<f32>(unpack2x16float(words.z), unpack2x16float(words.w)),
    );
}

fn bytes(word: u32, scale: Scale) -> vec4<f32> {
    return scale.step * vec4<f32>((vec4<i32>(i32(word)) << (24u - 8u * EACH)) >> vec4<u32>(24u));
}

fn nibbles(word: u32, scale: Scale) -> Octet {
    let low = vec4<f32>((vec4<u32>(word) >> (4u * EACH)) & vec4<u32>(15u));
    let high = vec4<f32>((vec4<u32>(word) >> (4u * EACH + 16u)) & vec4<u32>(15u));
    return Octet(scale.step * low + scale.start, scale.step * high + scale.start);
}
