// adjusted = logits, but for the tokens of a list: x + bias, then / repetition where above 0 and * repetition elsewhere
// (CTRL, Keskar et al. 2019), then - penalty
//
// Each invocation takes RUN logits in a row and merges them with the list, which is in order of tokens. Sums and products
// stay finite, so no setting makes a logit NaN or +inf; -inf, in the row or as a bias, rules a token out for good. Logits
// are taken as bits because WGSL lets a compiler assume that no float is NaN or infinite.
// Grid: one invocation per RUN logits.

struct Params { n_logits: u32, n_entries: u32 }

@group(0) @binding(0) var<storage, read> logits: array<u32>;         // (V), bits of f32
@group(0) @binding(1) var<storage, read> entries: array<vec4<u32>>;  // (n): token; bits of bias, repetition, penalty
@group(0) @binding(2) var<storage, read_write> adjusted: array<u32>; // (V), bits of f32
@group(0) @binding(3) var<uniform> params: Params;

const RUN: u32 = 16u;
const NEVER: u32 = 0xff800000u; // -inf
const LARGEST: f32 = 0x1.fffffep+127f;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let first = id.x * RUN;
    if first >= params.n_logits {
        return;
    }
    var next = first_entry_from(first);
    for (var token = first; token < min(first + RUN, params.n_logits); token++) {
        var bits = logits[token];
        if next < params.n_entries && entries[next].x == token {
            bits = adjust(bits, entries[next]);
            next++;
        }
        adjusted[token] = bits;
    }
}

// The first entry whose token is not below `token`.
fn first_entry_from(token: u32) -> u32 {
    var low = 0u;
    var high = params.n_entries;
    while low < high {
        let middle = (low + high) / 2u;
        if entries[middle].x < token {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    return low;
}

fn adjust(bits: u32, entry: vec4<u32>) -> u32 {
    if bits == NEVER || entry.y == NEVER {
        return NEVER;
    }
    let repetition = bitcast<f32>(entry.z);
    let biased = finite(bitcast<f32>(bits) + bitcast<f32>(entry.y));
    let repeated = finite(select(biased * repetition, biased / repetition, biased > 0.0));
    return bitcast<u32>(finite(repeated - bitcast<f32>(entry.w)));
}

fn finite(x: f32) -> f32 {
    return clamp(x, -LARGEST, LARGEST);
}
