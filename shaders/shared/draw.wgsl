// Where a draw falls among the shares of the workgroup's invocations, laid end to end.

var<workgroup> shares: array<f32, WORKGROUP>;
var<workgroup> drawn_share: u32;
// Where the draw lies in all shares together, from 0 to 1; only invocation 0 needs it.
var<private> draw: f32;

// The share that holds the draw, or the last one above 0 where rounding leaves a rest. Afterwards `draw` says where in
// that share it lies. Every invocation of the workgroup must call this, in uniform control flow.
fn share_of_draw(lane: u32, share: f32) -> u32 {
    shares[lane] = share;
    workgroupBarrier();
    if lane == 0u {
        var total = 0.0;
        for (var i = 0u; i < WORKGROUP; i++) {
            total += shares[i];
        }
        let reach = draw * total;
        var below = 0.0;
        var sum = 0.0;
        for (var i = 0u; i < WORKGROUP && sum <= reach; i++) {
            if shares[i] > 0.0 {
                drawn_share = i;
                below = sum;
                sum += shares[i];
            }
        }
        draw = (reach - below) / shares[drawn_share];
    }
    return workgroupUniformLoad(&drawn_share);
}
