// A histogram with a bin for each invocation of the workgroup. Bins are sums of u32 in 64 bits: exact in any order.

var<workgroup> bins_low: array<atomic<u32>, WORKGROUP>;
var<workgroup> bins_high: array<atomic<u32>, WORKGROUP>;

// Every invocation of the workgroup must call this, in uniform control flow.
fn clear_bins(lane: u32) {
    atomicStore(&bins_low[lane], 0u);
    atomicStore(&bins_high[lane], 0u);
    workgroupBarrier();
}

fn add_to_bin(bin: u32, amount: u32) {
    let before = atomicAdd(&bins_low[bin], amount);
    if before + amount < before {
        atomicAdd(&bins_high[bin], 1u);
    }
}

fn bin_sum(bin: u32) -> f32 {
    return f32(atomicLoad(&bins_high[bin])) * 0x1p+32f + f32(atomicLoad(&bins_low[bin]));
}

fn sum_of_bins() -> f32 {
    var sum = 0.0;
    for (var bin = 0u; bin < WORKGROUP; bin++) {
        sum += bin_sum(bin);
    }
    return sum;
}
