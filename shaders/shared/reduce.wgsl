// Sums and maxima over one workgroup through workgroup memory (no subgroups needed).
// Every invocation of the workgroup must call these, in uniform control flow; all get the result.

var<workgroup> reduce_scratch: array<f32, WORKGROUP>;

fn workgroup_sum(value: f32, lane: u32) -> f32 {
    workgroupBarrier();
    reduce_scratch[lane] = value;
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            reduce_scratch[lane] += reduce_scratch[lane + half];
        }
    }
    workgroupBarrier();
    return reduce_scratch[0];
}

fn workgroup_max(value: f32, lane: u32) -> f32 {
    workgroupBarrier();
    reduce_scratch[lane] = value;
    for (var half = WORKGROUP / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if lane < half {
            reduce_scratch[lane] = max(reduce_scratch[lane], reduce_scratch[lane + half]);
        }
    }
    workgroupBarrier();
    return reduce_scratch[0];
}
