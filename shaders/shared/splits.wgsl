// Keys of one token split among workgroups, the last of which joins their parts
//
// A part is the largest score, the sum of weights and the weighted sum of values, of one head. Parts are passed on as
// atomics, because nothing else that one workgroup writes is seen by another in the same launch. A kernel that names this
// declares Params with n_heads, n_splits, window and head_dim.

@group(0) @binding(4) var<storage, read_write> parts: array<atomic<u32>>;   // (H counters | H, splits, 2 + padded C)

// Fewer keys are not worth a workgroup.
const LEAST_KEYS: u32 = 128u;
var<workgroup> n_arrived: u32;

// The keys of a split: first, and first after; none where enough others share them.
struct Range { first: u32, end: u32, n_active: u32 }

fn range_of(split: u32, first: u32, last: u32) -> Range {
    let n_keys = last + 1u - first;
    let length = max((n_keys + params.n_splits - 1u) / params.n_splits, LEAST_KEYS);
    let begin = first + split * length;
    return Range(begin, min(begin + length, last + 1u), (n_keys + length - 1u) / length);
}

fn part_of(head: u32, split: u32) -> u32 {
    return params.n_heads + (head * params.n_splits + split) * (2u + (params.head_dim + 7u) / 8u * 8u);
}

fn put_part(head: u32, split: u32, largest: f32, total: f32) {
    atomicStore(&parts[part_of(head, split)], bitcast<u32>(largest));
    atomicStore(&parts[part_of(head, split) + 1u], bitcast<u32>(total));
}

fn put_part_of_sums(head: u32, split: u32, quad: u32, sums: vec4<f32>) {
    for (var c = 0u; c < 4u; c++) {
        atomicStore(&parts[part_of(head, split) + 2u + 4u * quad + c], bitcast<u32>(sums[c]));
    }
}

fn part(index: u32) -> f32 {
    return bitcast<f32>(atomicLoad(&parts[index]));
}

// Whether all other workgroups of `group` have put their parts. Every invocation must call this, in uniform control flow.
fn is_last_of(group: u32, n_active: u32, lane: u32) -> bool {
    storageBarrier();
    if lane == 0u {
        n_arrived = atomicAdd(&parts[group], 1u) + 1u;
        if n_arrived == n_active {
            atomicStore(&parts[group], 0u);
        }
    }
    let is_last = workgroupUniformLoad(&n_arrived) == n_active;
    storageBarrier();
    return is_last;
}

// Four channels of a head from the parts of all splits.
fn joined(head: u32, quad: u32, n_active: u32) -> vec4<f32> {
    var largest = part(part_of(head, 0u));
    for (var split = 1u; split < n_active; split++) {
        largest = max(largest, part(part_of(head, split)));
    }
    var total = 0.0;
    var sum = vec4<f32>();
    for (var split = 0u; split < n_active; split++) {
        let start = part_of(head, split);
        let weight = exp(part(start) - largest);
        total += weight * part(start + 1u);
        let at = start + 2u + 4u * quad;
        sum += weight * vec4<f32>(part(at), part(at + 1u), part(at + 2u), part(at + 3u));
    }
    return sum / total;
}
