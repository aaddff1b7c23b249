// y[h] = softmax(scale * q[h] · K[h]) V[h] for one token, over the last `window` keys of the cache
//
// A workgroup takes HEADS query heads that share their keys and values, and a split of the keys. Each invocation takes
// KEYS of them at a time and keeps its own online softmax (Milakov & Gimelshein 2018) in registers; at the end the
// workgroup adds their parts. Few barriers, and each wide read serves all heads: for software adapters, which pay for both.
// Grid: one workgroup per HEADS heads and split.

struct Params {
    n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, n_slots: u32,
    window: u32, scale: f32, n_splits: u32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;       // (H * C / 4)
@group(0) @binding(3) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(5) var<storage, read_write> y: array<vec4<f32>>; // (H * C / 4)
@group(0) @binding(6) var<uniform> params: Params;

const OCTETS: u32 = CHANNELS / 8u;
const QUADS: u32 = CHANNELS / 4u;
const MASKED: f32 = -3.0e38;
var<workgroup> largest_of: array<array<f32, HEADS>, WORKGROUP>;
var<workgroup> total_of: array<array<f32, HEADS>, WORKGROUP>;
var<workgroup> sums_of: array<array<array<vec4<f32>, QUADS>, HEADS>, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let split = index % params.n_splits;
    let first_head = index / params.n_splits * HEADS;
    if first_head >= params.n_heads {
        return;
    }
    let last = step[0];
    let keys = range_of(split, last + 1u - min(params.window, last + 1u), last);
    if split >= keys.n_active {
        return;
    }
    let kv_head = first_head / (params.n_heads / params.n_kv_heads);

    // Arrays are as long as the loops over them: compilers then write the loops out and keep the arrays in registers.
    var query = array<array<Octet, OCTETS>, HEADS>();
    var largest = array<f32, HEADS>();
    for (var h = 0u; h < HEADS; h++) {
        largest[h] = MASKED;
        for (var i = 0u; i < OCTETS; i++) {
            let quad = (first_head + h) * QUADS + 2u * i;
            query[h][i] = Octet(q[quad] * params.scale, q[quad + 1u] * params.scale);
        }
    }
    var total = array<f32, HEADS>();
    var sums = array<array<Octet, OCTETS>, HEADS>();
    for (var base = keys.first; base < keys.end; base += WORKGROUP * KEYS) {
        var octet = array<u32, KEYS>();
        var score = array<array<f32, HEADS>, KEYS>();
        for (var j = 0u; j < KEYS; j++) {
            let key = min(base + j * WORKGROUP + lane, last);
            octet[j] = (key % params.n_slots * params.n_kv_heads + kv_head) * OCTETS;
        }
        for (var i = 0u; i < OCTETS; i++) {
            for (var j = 0u; j < KEYS; j++) {
                let k = key_octet(octet[j] + i);
                for (var h = 0u; h < HEADS; h++) {
                    score[j][h] += dot(query[h][i][0], k[0]) + dot(query[h][i][1], k[1]);
                }
            }
        }
        var shrink = array<f32, HEADS>();
        for (var h = 0u; h < HEADS; h++) {
            var larger = largest[h];
            for (var j = 0u; j < KEYS; j++) {
                score[j][h] = select(MASKED, score[j][h], base + j * WORKGROUP + lane < keys.end);
                larger = max(larger, score[j][h]);
            }
            shrink[h] = exp(largest[h] - larger);
            largest[h] = larger;
            total[h] *= shrink[h];
            for (var j = 0u; j < KEYS; j++) {
                // From here on a score is its weight.
                score[j][h] = select(0.0, exp(score[j][h] - larger), base + j * WORKGROUP + lane < keys.end);
                total[h] += score[j][h];
            }
        }
        for (var i = 0u; i < OCTETS; i++) {
            for (var h = 0u; h < HEADS; h++) {
                sums[h][i][0] *= shrink[h];
                sums[h][i][1] *= shrink[h];
            }
            for (var j = 0u; j < KEYS; j++) {
                let v = value_octet(octet[j] + i);
                for (var h = 0u; h < HEADS; h++) {
                    sums[h][i][0] += score[j][h] * v[0];
                    sums[h][i][1] += score[j][h] * v[1];
                }
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
        for (var i = 0u; i < OCTETS; i++) {
            sums_of[lane][h][2u * i] = weight * sums[h][i][0];
            sums_of[lane][h][2u * i + 1u] = weight * sums[h][i][1];
        }
    }
    workgroupBarrier();
    for (var i = lane; i < HEADS * QUADS; i += WORKGROUP) {
        let h = i / QUADS;
        var sum = vec4<f32>();
        var all = 0.0;
        var larger = MASKED;
        for (var j = 0u; j < WORKGROUP; j++) {
            sum += sums_of[j][h][i % QUADS];
            all += total_of[j][h];
            larger = max(larger, largest_of[j][h]);
        }
        if keys.n_active == 1u {
            y[first_head * QUADS + i] = sum / all;
        } else {
            put_part(first_head + h, split, larger, all);
            put_part_of_sums(first_head + h, split, i % QUADS, sum);
        }
    }
    if keys.n_active == 1u || !is_last_of(first_head / HEADS, keys.n_active, lane) {
        return;
    }
    for (var i = lane; i < HEADS * QUADS; i += WORKGROUP) {
        y[first_head * QUADS + i] = joined(first_head + i / QUADS, i % QUADS, keys.n_active);
    }
}
