// Invocations that share nothing

struct Here {
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) lane: u32,
}

// How many neighbours take the same tokens.
const ABREAST: u32 = 1u;
