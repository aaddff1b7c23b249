// y[h] = softmax(scale * q[h] · K[h]) V[h] for one token, over the last `window` keys of the cache
//
// A workgroup takes HEADS query heads that share their keys and values, and a split of the keys. Each invocation walks a
// stretch of them, KEYS at a time, and keeps its own online softmax (Milakov & Gimelshein 2018) in registers; at the end the
// workgroup adds their parts. Few barriers, wide reads that serve all heads, and neighbouring keys one after another, as
// caches of a CPU like them: for software adapters.
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
    let n_own = (keys.end - keys.first + WORKGROUP - 1u) / WORKGROUP;
    let own_first = keys.first + lane * n_own;
    let own_end = min(own_first + n_own, keys.end);
    for (var base = 0u; base < n_own; base += KEYS) {
        var rows = array<u32, KEYS>();
        var score = array<array<f32, HEADS>, KEYS>();
        for (var j = 0u; j < KEYS; j++) {
            let key = min(own_first + base + j, last);
            rows[j] = row_of(kv_head, key);
        }
        var held = array<Held, KEYS>();
        for (var i = 0u; i < OCTETS; i++) {
            for (var j = 0u; j < KEYS; j++) {
                held[j] = held_key(rows[j], i, held[j]);
                let k = octet_of(KEY_BITS, held[j], i);
                for (var h = 0u; h < HEADS; h++) {
                    score[j][h] += dot(query[h][i][0], k[0]) + dot(query[h][i][1], k[1]);
                }
            }
        }
        var shrink = array<f32, HEADS>();
        for (var h = 0u; h < HEADS; h++) {
            var larger = largest[h];
            for (var j = 0u; j < KEYS; j++) {
                score[j][h] = select(MASKED, score[j][h], own_first + base + j < own_end);
                larger = max(larger, score[j][h]);
            }
            shrink[h] = exp(largest[h] - larger);
            largest[h] = larger;
            total[h] *= shrink[h];
            for (var j = 0u; j < KEYS; j++) {
                // From here on a score is its weight.
                score[j][h] = select(0.0, exp(score[j][h] - larger), own_first + base + j < own_end);
                total[h] += score[j][h];
            }
        }
        for (var i = 0u; i < OCTETS; i++) {
            for (var h = 0u; h < HEADS; h++) {
                sums[h][i][0] *= shrink[h];
                sums[h][i][1] *= shrink[h];
            }
            for (var j = 0u; j < KEYS; j++) {
                held[j] = held_value(rows[j], i, held[j]);
                let v = octet_of(VALUE_BITS, held[j], i);
                for (var h = 0u; h < HEADS; h++) {
                    sums[h][i][0] += score[j][h] * v[0];
                    sums[h][i][1] += score[j][h] * v[1];
                }
            }
        }
    }

    // Nothing of an invocation's own outlives the barrier: what does is kept in memory from the start.
    largest_of[lane] = largest;
    total_of[lane] = total;
    for (var h = 0u; h < HEADS; h++) {
        for (var i = 0u; i < OCTETS; i++) {
            sums_of[lane][h][2u * i] = sums[h][i][0];
            sums_of[lane][h][2u * i + 1u] = sums[h][i][1];
        }
    }
    workgroupBarrier();
    for (var i = lane; i < HEADS * QUADS; i += WORKGROUP) {
        let h = i / QUADS;
        var larger = MASKED;
        for (var j = 0u; j < WORKGROUP; j++) {
            larger = max(larger, largest_of[j][h]);
        }
        var all = 0.0;
        var sum = vec4<f32>();
        for (var j = 0u; j < WORKGROUP; j++) {
            // Of an invocation without keys this is 0.
            let weight = exp(largest_of[j][h] - larger);
            all += weight * total_of[j][h];
            sum += weight * sums_of[j][h][i % QUADS];
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
