// y[t, h] = softmax(scale * q[t, h] · K[h]) V[h], causal, over the last `window` keys of the cache
//
// Each invocation takes every WORKGROUP-th key and keeps its own online softmax (Milakov & Gimelshein 2018) in registers;
// at the end the workgroup adds their parts. Few barriers and wide reads: for software adapters, which pay for both. Grid: one workgroup per (token, head). CHANNELS is the width of a head.

struct Params {
    n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, n_slots: u32,
    window: u32, scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;       // (T, H * C / 4)
@group(0) @binding(1) var<storage, read> k_cache: array<vec4<f32>>; // (slots, K * C / 4)
@group(0) @binding(2) var<storage, read> v_cache: array<vec4<f32>>; // (slots, K * C / 4)
@group(0) @binding(3) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, 0, 0, ids
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>; // (T, H * C / 4)
@group(0) @binding(5) var<uniform> params: Params;

const QUADS: u32 = CHANNELS / 4u;
const MASKED: f32 = -3.0e38;
var<workgroup> largest_of: array<f32, WORKGROUP>;
var<workgroup> parts: array<array<vec4<f32>, QUADS>, WORKGROUP>;

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
    let kv_quads = params.n_kv_heads * QUADS;
    let kv_offset = head / (params.n_heads / params.n_kv_heads) * QUADS;
    let last = step[0] + token;
    let first = last + 1u - min(params.window, last + 1u);

    var query = array<vec4<f32>, QUADS>();
    for (var i = 0u; i < QUADS; i++) {
        query[i] = q[index * QUADS + i] * params.scale;
    }
    var largest = MASKED;
    var total = 0.0;
    var sums = array<vec4<f32>, QUADS>();
    for (var key = first + lane; key <= last; key += WORKGROUP) {
        let start = key % params.n_slots * kv_quads + kv_offset;
        var products = vec4<f32>();
        for (var i = 0u; i < QUADS; i++) {
            products += query[i] * k_cache[start + i];
        }
        let score = dot(products, vec4<f32>(1.0));
        let larger = max(largest, score);
        let shrink = exp(largest - larger);
        let weight = exp(score - larger);
        largest = larger;
        total = total * shrink + weight;
        for (var i = 0u; i < QUADS; i++) {
            sums[i] = sums[i] * shrink + weight * v_cache[start + i];
        }
    }

    largest_of[lane] = largest;
    workgroupBarrier();
    var larger = largest_of[0];
    for (var i = 1u; i < WORKGROUP; i++) {
        larger = max(larger, largest_of[i]);
    }
    // An invocation without keys has a weight of 0 and counts for nothing.
    let weight = select(0.0, exp(largest - larger), total > 0.0);
    total = workgroup_sum(total * weight, lane);
    for (var i = 0u; i < QUADS; i++) {
        parts[lane][i] = weight * sums[i];
    }
    workgroupBarrier();
    for (var i = lane; i < QUADS; i += WORKGROUP) {
        var sum = vec4<f32>();
        for (var j = 0u; j < WORKGROUP; j++) {
            sum += parts[j][i];
        }
        y[index * QUADS + i] = sum / total;
    }
}
