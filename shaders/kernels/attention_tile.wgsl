// y[t, h] = softmax(scale * q[t, h] · K[h]) V[h], causal, over the last `window` keys of the cache, for many tokens
//
// Query rows of the tokens and heads that share a key head are counted through. Each invocation keeps ROWS of them and an
// online softmax (Milakov & Gimelshein 2018) in registers and walks all keys, KEYS at a time, so that a read serves all its
// rows. It shares nothing, so there are no barriers: for software adapters.
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
const QUADS: u32 = CHANNELS / 4u;
const MASKED: f32 = -3.0e38;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let kv_head = index % params.n_kv_heads;
    let n_rows = params.n_tokens * n_sharing();
    let first_of_group = index / params.n_kv_heads * WORKGROUP * ROWS;
    let first_row = first_of_group + lane * ROWS;
    if first_row >= n_rows {
        return;
    }

    // Rows past the end do as the last one and are dropped below.
    // Arrays are as long as the loops over them: compilers then write the loops out and keep the arrays in registers.
    var query = array<array<Octet, OCTETS>, ROWS>();
    var largest = array<f32, ROWS>();
    var oldest = array<u32, ROWS>();
    var newest = array<u32, ROWS>();
    for (var r = 0u; r < ROWS; r++) {
        let row = min(first_row + r, n_rows - 1u);
        newest[r] = step[0] + row / n_sharing();
        oldest[r] = seen_from(newest[r]);
        largest[r] = MASKED;
        let start = head_of(row, kv_head) * QUADS;
        for (var i = 0u; i < OCTETS; i++) {
            query[r][i] = Octet(q[start + 2u * i] * params.scale, q[start + 2u * i + 1u] * params.scale);
        }
    }
    var total = array<f32, ROWS>();
    var sums = array<array<Octet, OCTETS>, ROWS>();
    for (var base = oldest[0]; base <= newest[ROWS - 1u]; base += KEYS) {
        var row_of = array<u32, KEYS>();
        var score = array<array<f32, ROWS>, KEYS>();
        for (var j = 0u; j < KEYS; j++) {
            row_of[j] = kv_head * params.n_slots + min(base + j, newest[ROWS - 1u]) % params.n_slots;
        }
        var scale = array<Scale, KEYS>();
        for (var i = 0u; i < OCTETS; i++) {
            for (var j = 0u; j < KEYS; j++) {
                if i % BLOCK == 0u {
                    scale[j] = key_scale(row_of[j], i / BLOCK);
                }
                let k = key_octet(row_of[j], i, scale[j]);
                for (var r = 0u; r < ROWS; r++) {
                    score[j][r] += dot(query[r][i][0], k[0]) + dot(query[r][i][1], k[1]);
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
        for (var i = 0u; i < OCTETS; i++) {
            for (var r = 0u; r < ROWS; r++) {
                sums[r][i][0] *= shrink[r];
                sums[r][i][1] *= shrink[r];
            }
            for (var j = 0u; j < KEYS; j++) {
                if i % BLOCK == 0u {
                    scale[j] = value_scale(row_of[j], i / BLOCK);
                }
                let v = value_octet(row_of[j], i, scale[j]);
                for (var r = 0u; r < ROWS; r++) {
                    sums[r][i][0] += score[j][r] * v[0];
                    sums[r][i][1] += score[j][r] * v[1];
                }
            }
        }
    }

    for (var r = 0u; r < ROWS; r++) {
        let row = first_row + r;
        let start = head_of(row, kv_head) * QUADS;
        for (var i = 0u; i < OCTETS; i++) {
            if row < n_rows {
                y[start + 2u * i] = sums[r][i][0] / total[r];
                y[start + 2u * i + 1u] = sums[r][i][1] / total[r];
            }
        }
    }
}
