// y[t, h] = softmax(scale * q[t, h] · K[h]) V[h], causal, over the last `window` keys of the cache
//
// A workgroup takes ROWS query rows that share a key head, and of one token's keys perhaps only a split. It walks tiles of
// WORKGROUP keys with an online softmax (Milakov & Gimelshein 2018): an invocation scores one key for all rows, then adds
// an octet of channels of every n-th value to all rows' sums. Position p lies in slot p % n_slots.
// Grid: one workgroup per key head, ROWS rows and split.

struct Params {
    n_tokens: u32, n_heads: u32, n_kv_heads: u32, head_dim: u32, n_slots: u32,
    window: u32, scale: f32, n_splits: u32,
}

@group(0) @binding(0) var<storage, read> q: array<f32>;             // (T, H * C)
@group(0) @binding(3) var<storage, read> step: array<u32>;          // (4 + T): position, n_tokens, draw, 0, ids
@group(0) @binding(5) var<storage, read_write> y: array<f32>;       // (T, H * C)
@group(0) @binding(6) var<uniform> params: Params;

const QUADS: u32 = 64u; // of the widest head
const PER_ROW: u32 = WORKGROUP / ROWS; // invocations that look after the softmax of one row
const MASKED: f32 = -3.0e38;
var<workgroup> query: array<array<vec4<f32>, QUADS>, ROWS>;
var<workgroup> weights: array<array<f32, WORKGROUP>, ROWS>;
var<workgroup> of_rows: array<array<f32, PER_ROW>, ROWS>;
var<workgroup> of_row: array<f32, ROWS>;
var<workgroup> gathered: array<Octet, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let index = linear_group(group, groups);
    let split = index % params.n_splits;
    let kv_head = index / params.n_splits % params.n_kv_heads;
    let first_row = index / params.n_splits / params.n_kv_heads * ROWS;
    let n_rows = params.n_tokens * n_sharing();
    let newest = step[0] + (min(first_row + ROWS, n_rows) - 1u) / n_sharing();
    let keys = range_of(split, seen_from(step[0] + first_row / n_sharing()), newest);
    if first_row >= n_rows || split >= keys.n_active {
        return;
    }
    // Channels past the end of a head are zeros, and rows past the end do as the last one.
    let octets = n_octets();
    for (var i = lane; i < ROWS * octets * 2u; i += WORKGROUP) {
        let start = head_of(min(first_row + i / (octets * 2u), n_rows - 1u), kv_head) * params.head_dim;
        let quad = i % (octets * 2u);
        query[i / (octets * 2u)][quad] = vec4<f32>();
        for (var c = 4u * quad; c < min(4u * quad + 4u, params.head_dim); c++) {
            query[i / (octets * 2u)][quad][c % 4u] = q[start + c] * params.scale;
        }
    }
    let own_row = lane / PER_ROW;
    let own_newest = step[0] + min(first_row + own_row, n_rows - 1u) / n_sharing();
    let stride = WORKGROUP / octets;
    var own_largest = MASKED;
    var own_total = 0.0;
    var sums = array<Octet, ROWS>();
    for (var base = keys.first; base < keys.end; base += WORKGROUP) {
        workgroupBarrier();
        let row = kv_head * params.n_slots + min(base + lane, keys.end - 1u) % params.n_slots;
        var scale = Scale();
        var score = array<f32, ROWS>();
        for (var i = 0u; i < octets; i++) {
            if i % BLOCK == 0u {
                scale = key_scale(row, i / BLOCK);
            }
            let k = key_octet(row, i, scale);
            for (var r = 0u; r < ROWS; r++) {
                score[r] += dot(query[r][2u * i], k[0]) + dot(query[r][2u * i + 1u], k[1]);
            }
        }
        for (var r = 0u; r < ROWS; r++) {
            weights[r][lane] = score[r];
        }
        workgroupBarrier();
        // Scores become weights.
        var larger = own_largest;
        for (var j = lane % PER_ROW; j < WORKGROUP; j += PER_ROW) {
            let is_seen = base + j < keys.end && base + j >= seen_from(own_newest) && base + j <= own_newest;
            weights[own_row][j] = select(MASKED, weights[own_row][j], is_seen);
            larger = max(larger, weights[own_row][j]);
        }
        of_rows[own_row][lane % PER_ROW] = larger;
        workgroupBarrier();
        for (var j = 0u; j < PER_ROW; j++) {
            larger = max(larger, of_rows[own_row][j]);
        }
        own_total *= exp(own_largest - larger);
        for (var j = lane % PER_ROW; j < WORKGROUP; j += PER_ROW) {
            let score_of_key = weights[own_row][j];
            weights[own_row][j] = select(exp(score_of_key - larger), 0.0, score_of_key == MASKED);
            own_total += weights[own_row][j];
        }
        if lane % PER_ROW == 0u {
            of_row[own_row] = exp(own_largest - larger);
        }
        own_largest = larger;
        workgroupBarrier();
        for (var r = 0u; r < ROWS; r++) {
            sums[r] = Octet(of_row[r] * sums[r][0], of_row[r] * sums[r][1]);
        }
        for (var j = lane / octets; j < min(WORKGROUP, keys.end - base) && lane < stride * octets; j += stride) {
            let row = kv_head * params.n_slots + (base + j) % params.n_slots;
            let v = value_octet(row, lane % octets, value_scale(row, lane % octets / BLOCK));
            for (var r = 0u; r < ROWS; r++) {
                sums[r] = Octet(sums[r][0] + weights[r][j] * v[0], sums[r][1] + weights[r][j] * v[1]);
            }
        }
    }

    // Sums of every n-th value become sums of all, row by row.
    workgroupBarrier();
    of_rows[own_row][lane % PER_ROW] = own_total;
    if lane % PER_ROW == 0u {
        of_row[own_row] = own_largest;
    }
    for (var r = 0u; r < ROWS; r++) {
        gathered[lane] = sums[r];
        workgroupBarrier();
        if lane < octets && first_row + r < n_rows {
            var all = gathered[lane];
            for (var j = lane + octets; j < stride * octets; j += octets) {
                all = Octet(all[0] + gathered[j][0], all[1] + gathered[j][1]);
            }
            var total = of_rows[r][0];
            for (var j = 1u; j < PER_ROW; j++) {
                total += of_rows[r][j];
            }
            let head = head_of(first_row + r, kv_head);
            if keys.n_active == 1u {
                put(head, 2u * lane, all[0] / total);
                put(head, 2u * lane + 1u, all[1] / total);
            } else {
                put_part(head, split, of_row[r], total);
                put_part_of_sums(head, split, 2u * lane, all[0]);
                put_part_of_sums(head, split, 2u * lane + 1u, all[1]);
            }
        }
        workgroupBarrier();
    }
    if keys.n_active == 1u || !is_last_of(index / params.n_splits, keys.n_active, lane) {
        return;
    }
    for (var i = lane; i < min(ROWS, n_rows - first_row) * octets * 2u; i += WORKGROUP) {
        let head = head_of(first_row + i / (octets * 2u), kv_head);
        put(head, i % (octets * 2u), joined(head, i % (octets * 2u), keys.n_active));
    }
}

fn put(head: u32, quad: u32, four: vec4<f32>) {
    for (var c = 4u * quad; c < min(4u * quad + 4u, params.head_dim); c++) {
        y[head * params.head_dim + c] = four[c % 4u];
    }
}
