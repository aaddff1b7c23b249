// SiLU, or GELU in its tanh form

// tanh and exp overflow on some drivers, so their arguments are kept where both are saturated already.
fn activation(x: f32, gelu: bool) -> f32 {
    if gelu {
        let inner = 0.7978845608 * (x + 0.044715 * x * x * x);
        return 0.5 * x * (1.0 + tanh(clamp(inner, -20.0, 20.0)));
    }
    return x / (1.0 + exp(min(-x, 80.0)));
}
