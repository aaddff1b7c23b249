// dlogits of the top-k probabilities: p_e (g_e - sum_k g_k w_k), with g 0 for experts that were not picked
//
// Where the picked weights were scaled to sum to 1, p is theirs alone and other experts get 0.
// Grid: one invocation per token; the experts are few.

struct Params { n_tokens: u32, n_experts: u32, top_k: u32, renormalise: u32 }

@group(0) @binding(0) var<storage, read> logits: array<f32>;        // (T, E)
@group(0) @binding(1) var<storage, read> experts: array<u32>;       // (T, k)
@group(0) @binding(2) var<storage, read> weights: array<f32>;       // (T, k)
@group(0) @binding(3) var<storage, read> dy: array<f32>;            // (T, k)
@group(0) @binding(4) var<storage, read_write> dlogits: array<f32>; // (T, E)
@group(0) @binding(5) var<uniform> params: Params;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let token = id.x;
    if token >= params.n_tokens {
        return;
    }
    let row = token * params.n_experts;
    let picks = token * params.top_k;
    var along = 0.0;
    for (var k = 0u; k < params.top_k; k++) {
        along += weights[picks + k] * dy[picks + k];
    }
    var largest = logits[row];
    for (var e = 1u; e < params.n_experts; e++) {
        largest = max(largest, logits[row + e]);
    }
    var total = 0.0;
    for (var e = 0u; e < params.n_experts; e++) {
        total += exp(logits[row + e] - largest);
    }
    for (var e = 0u; e < params.n_experts; e++) {
        let p = exp(logits[row + e] - largest) / total;
        dlogits[row + e] = select(-p * along, 0.0, params.renormalise != 0u);
    }
    for (var k = 0u; k < params.top_k; k++) {
        dlogits[row + experts[picks + k]] = weights[picks + k] * (dy[picks + k] - along);
    }
}
