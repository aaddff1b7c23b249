// probabilities = softmax(logits); the top_k largest, with their experts, largest first
//
// Ties go to the lower expert. With `renormalise` the chosen weights sum to 1 (OLMoE does not).
// Grid: one invocation per token; the experts are few.

struct Params { n_tokens: u32, n_experts: u32, top_k: u32, renormalise: u32 }

@group(0) @binding(0) var<storage, read> logits: array<f32>;        // (T, E)
@group(0) @binding(1) var<storage, read_write> experts: array<u32>; // (T, k)
@group(0) @binding(2) var<storage, read_write> weights: array<f32>; // (T, k)
@group(0) @binding(3) var<uniform> params: Params;

const NONE: u32 = 0xffffffffu;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let token = id.x;
    if token >= params.n_tokens {
        return;
    }
    let row = token * params.n_experts;
    var largest = logits[row];
    for (var e = 1u; e < params.n_experts; e++) {
        largest = max(largest, logits[row + e]);
    }
    var total = 0.0;
    for (var e = 0u; e < params.n_experts; e++) {
        total += exp(logits[row + e] - largest);
    }

    var chosen = 0.0;
    var previous = NONE;
    for (var k = 0u; k < params.top_k; k++) {
        let expert = next_best(row, previous);
        let weight = exp(logits[row + expert] - largest) / total;
        experts[token * params.top_k + k] = expert;
        weights[token * params.top_k + k] = weight;
        chosen += weight;
        previous = expert;
    }
    if params.renormalise != 0u {
        for (var k = 0u; k < params.top_k; k++) {
            weights[token * params.top_k + k] /= chosen;
        }
    }
}

// The best expert that comes after `previous` in the order (logit descending, index ascending).
fn next_best(row: u32, previous: u32) -> u32 {
    var best = NONE;
    for (var e = 0u; e < params.n_experts; e++) {
        let later = previous == NONE || comes_before(row, previous, e);
        if later && (best == NONE || comes_before(row, e, best)) {
            best = e;
        }
    }
    return min(best, params.n_experts - 1u);
}

fn comes_before(row: u32, a: u32, b: u32) -> bool {
    return logits[row + a] > logits[row + b] || (logits[row + a] == logits[row + b] && a < b);
}
