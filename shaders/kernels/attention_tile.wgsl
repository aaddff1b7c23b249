// y[t, h] = softmax(scale * q[t, h] · K[h]) V[h], causal, over the last `window` keys of the cache, for many tokens
//
// Query rows of the tokens and heads that share a key head are counted through. Each invocation keeps ROWS of them and an
// online softmax (Milakov & Gimelshein 2018) in registers and walks all keys of its workgroup, KEYS at a time, so that a
// read serves all its rows. There are no barriers: for software adapters.
// Grid: one workgroup per WORKGROUP * ROWS rows of a key head.

struct Params {
    n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, n_slots: u32,
    window: u32, scale: f32, n_splits: u32,
}

@group(0) @binding(0) var<storage, read> q: array<vec4<f32>>;       // (T, H * C / 4)
@group(0) @binding(3) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(4) var<storage, read_write> y: array<vec4<f32>>; // (T, H * C / 4)
@group(0) @binding(5) var<uniform> params: Params;

const OCTETS: u32 = CHANNELS / 8u;
const BATCHES: u32 = OCTETS / 8u;
const QUADS: u32 = CHANNELS / 4u;
const MASKED: f32 = -3.0e38;

@compute @workgroup_size(WORKGROUP)
fn main(here: Here) {
    let index = linear_group(here.group, here.groups);
    let kv_head = index % params.n_kv_heads;
    let n_rows = params.n_tokens * n_sharing();
    let first_of_group = index / params.n_kv_heads * WORKGROUP * ROWS;
    if first_of_group >= n_rows {
        return;
    }
    let first_row = first_of_group + here.lane * ROWS;
    let last_of_group = min(first_of_group + WORKGROUP * ROWS, n_rows) - 1u;
    let first_key = seen_from(step[0] + first_of_group / n_sharing());
    let last_key = step[0] + last_of_group / n_sharing();

    // Rows past the end do as the last one and are dropped below.
    // Arrays are as long as the loops over them: compilers then write the loops out and keep the arrays in registers.
    var query = array<array<Octets, BATCHES>, ROWS>();
    var largest = array<f32, ROWS>();
    var oldest = array<u32, ROWS>();
    var newest = array<u32, ROWS>();
    for (var r = 0u; r < ROWS; r++) {
        let row = min(first_row + r, n_rows - 1u);
        newest[r] = step[0] + row / n_sharing();
        oldest[r] = seen_from(newest[r]);
        largest[r] = MASKED;
        let start = head_of(row, kv_head) * QUADS;
        for (var b = 0u; b < BATCHES; b++) {
            for (var i = 0u; i < 8u; i++) {
                let quad = start + 2u * (8u * b + i);
                query[r][b][i] = Octet(q[quad] * params.scale, q[quad + 1u] * params.scale);
            }
        }
    }
    var total = array<f32, ROWS>();
    var sums = array<array<Octets, BATCHES>, ROWS>();
    for (var base = first_key; base <= last_key; base += KEYS) {
        var row_of = array<u32, KEYS>();
        var score = array<array<f32, ROWS>, KEYS>();
        for (var j = 0u; j < KEYS; j++) {
            row_of[j] = kv_head * params.n_slots + min(base + j, last_key) % params.n_slots;
        }
        for (var b = 0u; b < BATCHES; b++) {
            for (var j = 0u; j < KEYS; j++) {
                var k = key_octets(row_of[j], 8u * b, here.lane);
                for (var i = 0u; i < 8u; i++) {
                    for (var r = 0u; r < ROWS; r++) {
                        score[j][r] += dot(query[r][b][i][0], k[i][0]) + dot(query[r][b][i][1], k[i][1]);
                    }
                }
            }
        }
        var shrink = array<f32, ROWS>();
        for (var r = 0u; r < ROWS; r++) {
            var larger = largest[r];
            for (var j = 0u; j < KEYS; j++) {
                let is_seen = base + j >= oldest[r] && base + j <= newest[r];
                score[j][r] = select(MASKED, score[j][r], is_seen);
                larger = max(larger, score[j][r]);
            }
            shrink[r] = exp(largest[r] - larger);
            largest[r] = larger;
            total[r] *= shrink[r];
            for (var j = 0u; j < KEYS; j++) {
                let is_seen = base + j >= oldest[r] && base + j <= newest[r];
                // From here on a score is its weight.
                score[j][r] = select(0.0, exp(score[j][r] - larger), is_seen);
                total[r] += score[j][r];
            }
        }
        for (var r = 0u; r < ROWS; r++) {
            for (var b = 0u; b < BATCHES; b++) {
                for (var i = 0u; i < 8u; i++) {
                    sums[r][b][i][0] *= shrink[r];
                    sums[r][b][i][1] *= shrink[r];
                }
            }
        }
        for (var b = 0u; b < BATCHES; b++) {
            for (var j = 0u; j < KEYS; j++) {
                var v = value_octets(row_of[j], 8u * b, here.lane);
                for (var i = 0u; i < 8u; i++) {
                    for (var r = 0u; r < ROWS; r++) {
                        sums[r][b][i][0] += score[j][r] * v[i][0];
                        sums[r][b][i][1] += score[j][r] * v[i][1];
                    }
                }
            }
        }
    }

    for (var r = 0u; r < ROWS; r++) {
        let row = first_row + r;
        let start = head_of(row, kv_head) * QUADS;
        for (var b = 0u; b < BATCHES; b++) {
            for (var i = 0u; i < 8u; i++) {
                let quad = start + 2u * (8u * b + i);
                if row < n_rows {
                    y[quad] = sums[r][b][i][0] / total[r];
                    y[quad + 1u] = sums[r][b][i][1] / total[r];
                }
            }
        }
    }
}
