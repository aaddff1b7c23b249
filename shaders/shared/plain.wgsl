// Products of which every row of w makes a result

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32 }

const GATES: u32 = 1u;

fn result(sum: f32, other: f32) -> f32 {
    return sum;
}
