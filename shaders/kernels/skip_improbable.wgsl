// Rows of dx become 0 for documents whose tokens are improbable, where a hash of (seed, first token) falls below a threshold
//
// The probability of a document is the mean of exp(-loss) over its tokens that have a label.
// Grid: one workgroup per token; each looks at its whole document.

struct Params { n_tokens: u32, width: u32, below: f32, threshold: u32, seed: u32 }

@group(0) @binding(0) var<storage, read> positions: array<u32>;     // (T)
@group(0) @binding(1) var<storage, read> labels: array<u32>;        // (T): an id, or 0xffffffff for none
@group(0) @binding(2) var<storage, read> losses: array<f32>;        // (T)
@group(0) @binding(3) var<storage, read_write> dx: array<f32>;      // (T, D)
@group(0) @binding(4) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
) {
    let token = linear_group(group, groups);
    if token >= params.n_tokens {
        return;
    }
    let first = token - positions[token];
    var sum = 0.0;
    var n = 0.0;
    // Where the next document begins, positions are smaller than the way from `first`.
    for (var t = first + lane; t < params.n_tokens && positions[t] == t - first; t += WORKGROUP) {
        if labels[t] != 0xffffffffu {
            sum += exp(-losses[t]);
            n += 1.0;
        }
    }
    sum = workgroup_sum(sum, lane);
    n = workgroup_sum(n, lane);
    if sum < params.below * n && hash(hash(first) ^ params.seed) < params.threshold {
        for (var i = lane; i < params.width; i += WORKGROUP) {
            dx[token * params.width + i] = 0.0;
        }
    }
}
