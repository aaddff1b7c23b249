// picked = the token of the highest candidate, the lower of equals, and its log-probability under the softmax of `logits`
//
// One pass: the largest logit and the sum of exponentials together (Milakov & Gimelshein 2018), the highest candidate
// beside them. Where logit i is the first that is NaN or +inf, picked = (NONE, i); without a candidate, (NONE - 1, 0).
// Logits are taken as bits because WGSL lets a compiler assume that no float is NaN or infinite.
// The token is also left where the next step looks for its id; where there is none, token 0.
// Grid: one workgroup.

struct Params { n_packs: u32, limit: u32 }

@group(0) @binding(0) var<storage, read> logits: array<Pack>;       // (V / PACK), bits of f32
@group(0) @binding(1) var<storage, read> adjusted: array<Pack>;     // (V / PACK), bits of f32: what is chosen from
@group(0) @binding(2) var<storage, read_write> picked: array<u32>;  // (2): token, bits of its log-probability
@group(0) @binding(3) var<storage, read_write> step: array<u32>;    // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(4) var<uniform> params: Params;

const INFINITY: u32 = 0x7f800000u;
const LOWEST: f32 = -0x1.fffffep+127f;

// What a part of the row comes to.
struct Summary { largest: f32, sum: f32, key: u32, token: u32, broken: u32 }

var<workgroup> summaries: array<Summary, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) lane: u32) {
    summaries[lane] = summarise(lane);
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            summaries[lane] = join(summaries[lane], summaries[lane + half]);
        }
    }
    if lane > 0u {
        return;
    }
    let row = summaries[0];
    if row.broken != NONE {
        picked[0] = NONE;
        picked[1] = row.broken;
        step[4] = 0u;
    } else if row.key == 0u {
        picked[0] = NONE - 1u;
        picked[1] = 0u;
        step[4] = 0u;
    } else {
        let logit = bitcast<f32>(spread(logits[row.token / PACK])[row.token % PACK]);
        picked[0] = row.token;
        picked[1] = bitcast<u32>(logit - row.largest - log(row.sum));
        step[4] = row.token;
    }
}

// Every WORKGROUP-th pack from `lane` on.
fn summarise(lane: u32) -> Summary {
    var all = Summary(LOWEST, 0.0, 0u, NONE, NONE);
    var sums = vec4<f32>();
    for (var i = lane; i < params.n_packs; i += WORKGROUP) {
        let tokens = i * PACK + COMPONENTS;
        let bits = spread(logits[i]);
        let x = bitcast<vec4<f32>>(bits);
        let largest = max(all.largest, max(max(x.x, x.y), max(x.z, x.w)));
        sums = sums * exp(all.largest - largest) + exp(x - largest);
        all.largest = largest;
        let broken = ((bits & vec4<u32>(~SIGN)) >= vec4<u32>(INFINITY)) & (bits != vec4<u32>(NEVER));
        all.broken = min(all.broken, first_where(broken, tokens));
        let keys = candidates(adjusted[i], i, params.limit);
        let key = max(max(keys.x, keys.y), max(keys.z, keys.w));
        if key > all.key {
            all.key = key;
            all.token = first_where(keys == vec4<u32>(key), tokens);
        }
    }
    all.sum = dot(sums, vec4<f32>(1.0));
    return all;
}

fn first_where(wanted: vec4<bool>, tokens: vec4<u32>) -> u32 {
    let found = select(vec4<u32>(NONE), tokens, wanted);
    return min(min(found.x, found.y), min(found.z, found.w));
}

fn join(a: Summary, b: Summary) -> Summary {
    let largest = max(a.largest, b.largest);
    let sum = a.sum * exp(a.largest - largest) + b.sum * exp(b.largest - largest);
    let b_leads = b.key > a.key || (b.key == a.key && b.token < a.token);
    let token = select(a.token, b.token, b_leads);
    return Summary(largest, sum, max(a.key, b.key), token, min(a.broken, b.broken));
}
