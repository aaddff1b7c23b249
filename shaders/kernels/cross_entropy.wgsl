// losses[t] = log(sum_v exp(logits[t, v])) - logits[t, label]; the logits become scale * (softmax(logits) - onehot(label))
//
// A row without a label loses nothing and gets a gradient of 0. Columns from `limit` on are padding: never likely, never
// corrected.
// Grid: one workgroup per row.

struct Params { n_rows: u32, width: u32, limit: u32, first_row: u32, scale: f32 }

@group(0) @binding(0) var<storage, read> labels: array<u32>;        // (T): an id, or 0xffffffff for none
@group(0) @binding(1) var<storage, read_write> logits: array<f32>;  // (rows, V)
@group(0) @binding(2) var<storage, read_write> losses: array<f32>;  // (T)
@group(0) @binding(3) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let row = linear_group(group, groups);
    if row >= params.n_rows {
        return;
    }
    let start = row * params.width;
    let label = labels[params.first_row + row];

    var largest = -3.4e38;
    for (var i = lane; i < params.limit; i += WORKGROUP) {
        largest = max(largest, logits[start + i]);
    }
    largest = workgroup_max(largest, lane);
    var sum = 0.0;
    for (var i = lane; i < params.limit; i += WORKGROUP) {
        sum += exp(logits[start + i] - largest);
    }
    let total = workgroup_sum(sum, lane);
    if lane == 0u {
        var loss = 0.0;
        if label < params.limit {
            loss = log(total) + largest - logits[start + label];
        }
        losses[params.first_row + row] = loss;
    }
    // The label's logit has been read before any is overwritten.
    storageBarrier();
    workgroupBarrier();
    let scale = select(0.0, params.scale, label < params.limit);
    for (var i = lane; i < params.width; i += WORKGROUP) {
        var p = 0.0;
        if i < params.limit {
            p = exp(logits[start + i] - largest) / total;
        }
        logits[start + i] = scale * select(p, p - 1.0, i == label);
    }
}
