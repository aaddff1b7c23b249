// Grids above 65,535 groups are folded to two dimensions by the launcher; this unfolds them.

fn linear_group(group: vec3<u32>, groups: vec3<u32>) -> u32 {
    return group.x + group.y * groups.x;
}
