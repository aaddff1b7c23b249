// Invocations that read for each other: a workgroup is eight of one subgroup, which has at least as many lanes
//
// All of a workgroup call together what hands out what they read, and for the same things.

struct Here {
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(subgroup_invocation_id) lane: u32,
}

// How many neighbours take the same tokens.
const ABREAST: u32 = WORKGROUP;

// What each of eight lanes has, in all of them.
fn of_all(own: vec4<f32>) -> array<vec4<f32>, 8> {
    return array<vec4<f32>, 8>(
        subgroupBroadcast(own, 0u), subgroupBroadcast(own, 1u), subgroupBroadcast(own, 2u), subgroupBroadcast(own, 3u),
        subgroupBroadcast(own, 4u), subgroupBroadcast(own, 5u), subgroupBroadcast(own, 6u), subgroupBroadcast(own, 7u),
    );
}
