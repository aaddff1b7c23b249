// What four tokens have of each of eight rows: each lane brings a row
fn dy_of_eight_rows(first_token: u32, first: u32, lane: u32) -> array<vec4<f32>, 8> {
    return of_all(dy_of_row(first_token, first + lane));
}
