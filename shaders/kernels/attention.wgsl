// y[t, h] = softmax(scale * q[t, h] · K[h]) V[h], causal, over the last `window` keys of the cache
//
// Query rows of the tokens and heads that share a key head are counted through; a workgroup takes ROWS of them, and of one
// token's keys perhaps only a split. It walks tiles of WORKGROUP keys with an online softmax (Milakov & Gimelshein 2018):
// an invocation scores one key for all rows, then adds an octet of channels of every n-th value to all rows' sums.
// Position p lies in slot p % n_slots. Grid: one workgroup per key head, ROWS rows and split.

struct Params {
    n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, n_slots: u32,
    window: u32, scale: f32, n_splits: u32,
}

@group(0) @binding(0) var<storage, read> q: array<f32>;             // (T, H * C)
@group(0) @binding(3) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(5) var<storage, read_write> y: array<f32>;       // (T, H * C)
@group(0) @binding(6) var<uniform> params: Params;

// Quads of the widest head.
const QUADS: u32 = 64u;
// Invocations that look after the softmax of one row.
const PER_ROW: u32 = WORKGROUP / ROWS;
const MASKED: f32 = -3.0e38;
var<workgroup> query: array<array<vec4<f32>, QUADS>, ROWS>;
var<workgroup> scores: array<array<f32, WORKGROUP>, ROWS>;
var<workgroup> of_rows: array<array<f32, PER_ROW>, ROWS>;
var<workgroup> gathered: array<Octet, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let tile_of_rows = index / params.n_splits;
    let kv_head = tile_of_rows % params.n_kv_heads;
    let sharing = params.n_heads / params.n_kv_heads;
    let n_rows = params.n_tokens * sharing;
    let first_row = tile_of_rows / params.n_kv_heads * ROWS;
    if first_row >= n_rows {
        return;
    }
    let oldest = seen_from(step[0] + first_row / sharing);
    let newest = step[0] + (min(first_row + ROWS, n_rows) - 1u) / sharing;
    let keys = range_of(index % params.n_splits, oldest, newest);
    if index % params.n_splits >= keys.n_active {
        return;
    }

    // Channels past the end of a head are zeros, and rows past the end do as the last one.
    let octets = (params.head_dim + 7u) / 8u;
    for (var i = lane; i < ROWS * octets * 2u; i += WORKGROUP) {
        let start = start_of(min(first_row + i / (octets * 2u), n_rows - 1u), kv_head);
        let quad = i % (octets * 2u);
        var four = vec4<f32>();
        for (var c = 4u * quad; c < min(4u * quad + 4u, params.head_dim); c++) {
            four[c % 4u] = q[start + c] * params.scale;
        }
        query[i / (octets * 2u)][quad] = four;
    }
    let own_row = lane / PER_ROW;
    let own_newest = step[0] + min(first_row + own_row, n_rows - 1u) / sharing;
    let own_oldest = seen_from(own_newest);
    let octet = lane % octets;
    let stride = WORKGROUP / octets;
    var largest = array<f32, ROWS>();
    for (var r = 0u; r < ROWS; r++) {
        largest[r] = MASKED;
    }
    var own_total = 0.0;
    var sums = array<Octet, ROWS>();
    for (var base = keys.first; base < keys.end; base += WORKGROUP) {
        workgroupBarrier();
        let key = min(base + lane, keys.end - 1u);
        let start = (key % params.n_slots * params.n_kv_heads + kv_head) * octets;
        var score = array<f32, ROWS>();
        for (var i = 0u; i < octets; i++) {
            let k = key_octet(start + i);
            for (var r = 0u; r < ROWS; r++) {
                score[r] += dot(query[r][2u * i], k[0]) + dot(query[r][2u * i + 1u], k[1]);
            }
        }
        for (var r = 0u; r < ROWS; r++) {
            scores[r][lane] = score[r];
        }
        workgroupBarrier();

        // The largest score of each row, then weights in place of scores.
        var own_largest = MASKED;
        for (var j = lane % PER_ROW; j < WORKGROUP; j += PER_ROW) {
            let is_seen = base + j < keys.end && base + j >= own_oldest && base + j <= own_newest;
            scores[own_row][j] = select(MASKED, scores[own_row][j], is_seen);
            own_largest = max(own_largest, scores[own_row][j]);
        }
        of_rows[own_row][lane % PER_ROW] = own_largest;
        workgroupBarrier();
        var shrink = array<f32, ROWS>();
        for (var r = 0u; r < ROWS; r++) {
            var larger = largest[r];
            for (var j = 0u; j < PER_ROW; j++) {
                larger = max(larger, of_rows[r][j]);
            }
            shrink[r] = exp(largest[r] - larger);
            largest[r] = larger;
            if r == own_row {
                own_total *= shrink[r];
                own_largest = larger;
            }
        }
        for (var j = lane % PER_ROW; j < WORKGROUP; j += PER_ROW) {
            let is_seen = scores[own_row][j] != MASKED;
            let weight = select(0.0, exp(scores[own_row][j] - own_largest), is_seen);
            scores[own_row][j] = weight;
            own_total += weight;
        }
        workgroupBarrier();

        for (var r = 0u; r < ROWS; r++) {
            sums[r][0] *= shrink[r];
            sums[r][1] *= shrink[r];
        }
        for (var j = lane / octets; j < min(WORKGROUP, keys.end - base) && lane < stride * octets; j += stride) {
            let v = value_octet(((base + j) % params.n_slots * params.n_kv_heads + kv_head) * octets + octet);
            for (var r = 0u; r < ROWS; r++) {
                sums[r][0] += scores[r][j] * v[0];
                sums[r][1] += scores[r][j] * v[1];
            }
        }
    }

    // Sums of every n-th value become sums of all, row by row.
    workgroupBarrier();
    of_rows[own_row][lane % PER_ROW] = own_total;
    for (var r = 0u; r < ROWS; r++) {
        gathered[lane] = sums[r];
        workgroupBarrier();
        var total = 0.0;
        for (var j = 0u; j < PER_ROW; j++) {
            total += of_rows[r][j];
        }
        if lane < octets && first_row + r < n_rows {
            var sum = gathered[lane];
            for (var j = 1u; j < stride; j++) {
                sum[0] += gathered[j * octets + lane][0];
                sum[1] += gathered[j * octets + lane][1];
            }
            let start = start_of(first_row + r, kv_head);
            if keys.n_active == 1u {
                for (var c = 8u * lane; c < min(8u * lane + 8u, params.head_dim); c++) {
                    y[start + c] = sum[c % 8u / 4u][c % 4u] / total;
                }
            } else {
                let at = part_of(start / params.head_dim, index % params.n_splits);
                put_part(at, largest[r]);
                put_part(at + 1u, total);
                for (var c = 0u; c < 8u; c++) {
                    put_part(at + 2u + 8u * lane + c, sum[c / 4u][c % 4u]);
                }
            }
        }
        workgroupBarrier();
    }
    if keys.n_active == 1u || !is_last_of(tile_of_rows, keys.n_active, lane) {
        return;
    }
    for (var i = lane; i < min(ROWS, n_rows - first_row) * octets * 2u; i += WORKGROUP) {
        let start = start_of(first_row + i / (octets * 2u), kv_head);
        let quad = i % (octets * 2u);
        let four = joined(start / params.head_dim, quad, keys.n_active);
        for (var c = 4u * quad; c < min(4u * quad + 4u, params.head_dim); c++) {
            y[start + c] = four[c % 4u];
        }
    }
}

// The oldest key that the token at `position` sees.
fn seen_from(position: u32) -> u32 {
    return position + 1u - min(params.window, position + 1u);
}

// Where a query row begins in q and y.
fn start_of(row: u32, kv_head: u32) -> u32 {
    let sharing = params.n_heads / params.n_kv_heads;
    return (row / sharing * params.n_heads + kv_head * sharing + row % sharing) * params.head_dim;
}
