// What four tokens have of each of eight rows
fn dy_of_eight_rows(first_token: u32, first: u32, lane: u32) -> array<vec4<f32>, 8> {
    var rows = array<vec4<f32>, 8>();
    for (var r = 0u; r < 8u; r++) {
        rows[r] = dy_of_row(first_token, first + r);
    }
    return rows;
}
