// Products of which two rows of w make a result: act(gate) * up, from the first and the second half of the rows

struct Params { n_tokens: u32, n_in: u32, n_rows: u32, n_out: u32, first_column: u32, gelu: u32 }

const GATES: u32 = 2u;

fn result(gate: f32, up: f32) -> f32 {
    return activation(gate, params.gelu != 0u) * up;
}
