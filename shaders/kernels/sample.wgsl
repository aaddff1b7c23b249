// picked = a token drawn from softmax(adjusted / temperature) after top-k, top-p and min-p, and its log-probability
//
// The filters raise one border, a key. Top-k and top-p (Holtzman et al. 2020) ask for the fewest highest candidates whose
// counts, or weights as multiples of 2^-31, reach a goal: four passes find the bytes of the border, the first one first,
// each from a histogram. Integers make that exact and independent of order. What equals the border stays.
// The draw then falls into one of WORKGROUP spans of tokens, laid end to end by weight, and the span is cut again until
// one token is left. `likeliest` comes from greedy.wgsl; where it names no token, neither does `picked`. The token is also
// left where the next step looks for its id.
// Grid: one workgroup of 256, one invocation for each value of a byte.

struct Params {
    n_packs: u32,
    limit: u32,
    top_k: u32,               // 0 keeps all
    top_p: f32,               // 1 keeps all
    min_p_gap: f32,           // logits further below the highest are dropped
    inverse_temperature: f32,
}

@group(0) @binding(0) var<storage, read> logits: array<Pack>;       // (V / PACK), bits of f32
@group(0) @binding(1) var<storage, read> adjusted: array<Pack>;     // (V / PACK), bits of f32: what is chosen from
@group(0) @binding(2) var<storage, read> likeliest: array<u32>;     // (2): token, bits of its log-probability
@group(0) @binding(3) var<storage, read_write> picked: array<u32>;  // (2): the same of the token drawn
@group(0) @binding(4) var<storage, read_write> step: array<u32>;    // (4 + T): position, n_tokens, bits of the draw, 0, ids
@group(0) @binding(5) var<uniform> params: Params;

var<workgroup> start: vec2<u32>;
var<workgroup> byte_found: u32;
// The highest candidate, and the lowest key that may still be drawn; the same in every invocation.
var<private> best: f32;
var<private> border: u32 = 1u;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        start = vec2<u32>(likeliest[0], likeliest[1]);
    }
    let highest = workgroupUniformLoad(&start);
    if highest.x >= NONE - 1u {
        if lane == 0u {
            picked[0] = highest.x;
            picked[1] = highest.y;
        }
        return;
    }
    best = component(adjusted[highest.x / PACK], highest.x);
    raise_border(lane);
    let token = drawn(lane);
    if lane == 0u {
        let below = component(logits[highest.x / PACK], highest.x) - component(logits[token / PACK], token);
        picked[0] = token;
        picked[1] = bitcast<u32>(bitcast<f32>(highest.y) - below);
        step[4] = token;
    }
}

fn component(pack: Pack, token: u32) -> f32 {
    return bitcast<f32>(spread(pack)[token % PACK]);
}

fn keys_at(i: u32) -> vec4<u32> {
    return candidates(adjusted[i], i, params.limit);
}

// exp((x - best) / temperature) of the candidates that the border leaves.
fn weights(keys: vec4<u32>) -> vec4<f32> {
    return select(vec4<f32>(), exp((value_of(keys) - best) * params.inverse_temperature), keys >= vec4<u32>(border));
}

fn raise_border(lane: u32) {
    if params.top_k > 0u {
        border = search(lane, false);
    }
    if params.top_p < 1.0 {
        border = search(lane, true);
    }
    border = max(border, key_of(vec4<u32>(bitcast<u32>(best - params.min_p_gap))).x);
}

// The border that leaves the fewest highest candidates which reach top_k in number, or top_p of the weight.
fn search(lane: u32, by_weight: bool) -> u32 {
    var prefix = 0u;
    var above = 0.0;
    var goal = f32(params.top_k);
    for (var byte = 0u; byte < 4u; byte++) {
        count(lane, by_weight, 24u - 8u * byte, prefix);
        if lane == 0u {
            if by_weight && byte == 0u {
                goal = params.top_p * sum_of_bins();
            }
            byte_found = 255u;
            while byte_found > 0u && above + bin_sum(byte_found) < goal {
                above += bin_sum(byte_found);
                byte_found--;
            }
        }
        prefix = (prefix << 8u) | workgroupUniformLoad(&byte_found);
    }
    return max(border, prefix);
}

// The histogram over the byte at `shift` of the keys that begin with `prefix`.
fn count(lane: u32, by_weight: bool, shift: u32, prefix: u32) {
    clear_bins(lane);
    for (var i = lane; i < params.n_packs; i += WORKGROUP) {
        let keys = keys_at(i);
        var amounts = select(vec4<u32>(), vec4<u32>(1u), keys >= vec4<u32>(border));
        if by_weight {
            amounts = vec4<u32>(weights(keys) * 0x1p+31f);
        }
        for (var c = 0u; c < PACK; c++) {
            let head = keys[c] >> shift;
            if amounts[c] > 0u && (head >> 8u) == prefix {
                add_to_bin(head & 255u, amounts[c]);
            }
        }
    }
    workgroupBarrier();
}

// The token in whose share the draw falls: cuts the row in WORKGROUP spans, then the span that holds the draw.
fn drawn(lane: u32) -> u32 {
    draw = bitcast<f32>(step[2]);
    var first = 0u;
    var end = params.n_packs;
    while first + 1u < end {
        let width = (end - first + WORKGROUP - 1u) / WORKGROUP;
        let begin = first + lane * width;
        var sum = vec4<f32>();
        for (var i = begin; i < min(begin + width, end); i++) {
            sum += weights(keys_at(i));
        }
        first += width * share_of_draw(lane, dot(sum, vec4<f32>(1.0)));
        end = min(first + width, end);
    }
    let last = weights(keys_at(first));
    return first * PACK + share_of_draw(lane, select(0.0, last[lane % 4u], lane < 4u));
}
