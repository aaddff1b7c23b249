// y[t, h] = softmax(scale * q[t, h] · K[h]) V[h], causal, over the last `window` keys of the cache
//
// Online softmax (Milakov & Gimelshein 2018) over tiles of WORKGROUP keys, so no score row is kept.
// Position p lies in slot p % n_slots; query heads share key heads in groups (GQA). Grid: one workgroup per
// (token, head); an invocation scores one key of a tile and owns up to 4 of at most 256 output channels.

struct Params {
    n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, n_slots: u32,
    window: u32, scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<f32>;             // (T, H * C)
@group(0) @binding(1) var<storage, read> k_cache: array<f32>;       // (slots, K * C)
@group(0) @binding(2) var<storage, read> v_cache: array<f32>;       // (slots, K * C)
@group(0) @binding(3) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(4) var<storage, read_write> y: array<f32>;       // (T, H * C)
@group(0) @binding(5) var<uniform> params: Params;

const CHANNELS: u32 = 256u / WORKGROUP;
const MASKED: f32 = -3.0e38;
var<workgroup> query: array<f32, 256>;
var<workgroup> weights: array<f32, WORKGROUP>;
var<workgroup> position: u32;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let token = index / params.n_heads;
    let head = index % params.n_heads;
    if token >= params.n_tokens {
        return;
    }
    let row = token * params.n_heads * params.head_dim + head * params.head_dim;
    let kv_width = params.n_kv_heads * params.head_dim;
    let kv_offset = head / (params.n_heads / params.n_kv_heads) * params.head_dim;

    if lane == 0u {
        position = step[0] + token;
    }
    for (var c = lane; c < params.head_dim; c += WORKGROUP) {
        query[c] = q[row + c] * params.scale;
    }
    let last = workgroupUniformLoad(&position);
    let first = last + 1u - min(params.window, last + 1u);

    var largest = MASKED;
    var total = 0.0;
    var sums = array<f32, CHANNELS>();
    for (var tile = first; tile <= last; tile += WORKGROUP) {
        let key = tile + lane;
        var score = MASKED;
        if key <= last {
            score = 0.0;
            let start = (key % params.n_slots) * kv_width + kv_offset;
            for (var c = 0u; c < params.head_dim; c++) {
                score += query[c] * k_cache[start + c];
            }
        }
        let tile_largest = max(largest, workgroup_max(score, lane));
        let shrink = exp(largest - tile_largest);
        let weight = select(0.0, exp(score - tile_largest), key <= last);
        weights[lane] = weight;
        total = total * shrink + workgroup_sum(weight, lane);
        largest = tile_largest;

        let n_keys = min(WORKGROUP, last + 1u - tile);
        for (var i = 0u; i < CHANNELS; i++) {
            sums[i] *= shrink;
            let c = lane + i * WORKGROUP;
            if c < params.head_dim {
                for (var j = 0u; j < n_keys; j++) {
                    sums[i] += weights[j] * v_cache[((tile + j) % params.n_slots) * kv_width + kv_offset + c];
                }
            }
        }
    }
    for (var i = 0u; i < CHANNELS; i++) {
        let c = lane + i * WORKGROUP;
        if c < params.head_dim {
            y[row + c] = sums[i] / total;
        }
    }
}
