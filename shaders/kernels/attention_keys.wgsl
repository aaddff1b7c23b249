// y[t, h] = softmax(scale * q[t, h] · K[h]) V[h], causal, over the last `window` keys of the cache
//
// A workgroup takes HEADS query heads that share their keys and values. Each invocation takes every WORKGROUP-th key and
// keeps its own online softmax (Milakov & Gimelshein 2018) in registers; at the end the workgroup adds their parts. Few
// barriers, and each wide read serves all heads: for software adapters, which pay for both. CHANNELS is the width of a head.
// Grid: one workgroup per token and HEADS heads.

struct Params {
    n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, n_slots: u32,
    window: u32, scale: f32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;       // (T, H * C / 4)
@group(0) @binding(1) var<storage, read> k_cache: array<vec4<f32>>; // (slots, K * C / 4)
@group(0) @binding(2) var<storage, read> v_cache: array<vec4<f32>>; // (slots, K * C / 4)
@group(0) @binding(3) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>; // (T, H * C / 4)
@group(0) @binding(5) var<uniform> params: Params;

const QUADS: u32 = CHANNELS / 4u;
const MASKED: f32 = -3.0e38;
var<workgroup> largest_of: array<array<f32, HEADS>, WORKGROUP>;
var<workgroup> total_of: array<array<f32, HEADS>, WORKGROUP>;
var<workgroup> parts: array<array<array<vec4<f32>, QUADS>, HEADS>, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let first_head = linear_group(group, groups) * HEADS;
    let token = first_head / params.n_heads;
    if token >= params.n_tokens {
        return;
    }
    let kv_head = first_head % params.n_heads / (params.n_heads / params.n_kv_heads);
    let last = step[0] + token;
    let first = last + 1u - min(params.window, last + 1u);

    var query = array<array<vec4<f32>, QUADS>, HEADS>();
    var largest = array<f32, HEADS>();
    for (var h = 0u; h < HEADS; h++) {
        largest[h] = MASKED;
        for (var i = 0u; i < QUADS; i++) {
            query[h][i] = q[(first_head + h) * QUADS + i] * params.scale;
        }
    }
    var total = array<f32, HEADS>();
    var sums = array<array<vec4<f32>, QUADS>, HEADS>();
    for (var key = first + lane; key <= last; key += WORKGROUP) {
        let start = (key % params.n_slots * params.n_kv_heads + kv_head) * QUADS;
        var products = array<vec4<f32>, HEADS>();
        for (var i = 0u; i < QUADS; i++) {
            let k = k_cache[start + i];
            for (var h = 0u; h < HEADS; h++) {
                products[h] += query[h][i] * k;
            }
        }
        var shrink = array<f32, HEADS>();
        var weight = array<f32, HEADS>();
        for (var h = 0u; h < HEADS; h++) {
            let score = dot(products[h], vec4<f32>(1.0));
            let larger = max(largest[h], score);
            shrink[h] = exp(largest[h] - larger);
            weight[h] = exp(score - larger);
            largest[h] = larger;
            total[h] = total[h] * shrink[h] + weight[h];
        }
        for (var i = 0u; i < QUADS; i++) {
            let v = v_cache[start + i];
            for (var h = 0u; h < HEADS; h++) {
                sums[h][i] = sums[h][i] * shrink[h] + weight[h] * v;
            }
        }
    }

    largest_of[lane] = largest;
    workgroupBarrier();
    for (var h = 0u; h < HEADS; h++) {
        var larger = largest_of[0][h];
        for (var j = 1u; j < WORKGROUP; j++) {
            larger = max(larger, largest_of[j][h]);
        }
        // An invocation without keys has a weight of 0 and counts for nothing.
        let weight = select(0.0, exp(largest[h] - larger), total[h] > 0.0);
        total_of[lane][h] = weight * total[h];
        for (var i = 0u; i < QUADS; i++) {
            parts[lane][h][i] = weight * sums[h][i];
        }
    }
    workgroupBarrier();
    for (var i = lane; i < HEADS * QUADS; i += WORKGROUP) {
        var sum = vec4<f32>();
        var all = 0.0;
        for (var j = 0u; j < WORKGROUP; j++) {
            sum += parts[j][i / QUADS][i % QUADS];
            all += total_of[j][i / QUADS];
        }
        y[first_head * QUADS + i] = sum / all;
    }
}
