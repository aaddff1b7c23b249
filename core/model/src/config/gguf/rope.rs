//! Rotary embeddings in GGUF metadata.
//!
//! YaRN's attention factor is written in several ways, some of which existing runtimes multiply
//! into what they compute themselves. Here it is applied once: `yarn_attn_factor` is the whole
//! factor where it stands, else `0.1 ln(factor) + 1`.

use crate::{
    ModelError,
    config::{family::Traits, fields::Fields},
    rope::{Rope, RopeScaling, Yarn},
};

/// The rotary embeddings of full and of sliding layers.
pub(super) fn read(
    fields: &Fields<'_>,
    traits: &Traits,
    divisors: Option<Vec<f32>>,
) -> Result<(Rope, Rope), ModelError> {
    let theta = fields.positive("rope.freq_base")?.unwrap_or(traits.rope_theta);
    let local = fields.positive("rope.freq_base_swa")?.or(traits.rope_theta_sliding);
    let sliding = Rope::plain(local.unwrap_or(theta) as f32);
    let scaling = match divisors {
        Some(divisors) => RopeScaling::Divisors(divisors),
        None => scaling(fields)?,
    };
    Ok((Rope { theta: theta as f32, scaling }, sliding))
}

fn scaling(fields: &Fields<'_>) -> Result<RopeScaling, ModelError> {
    let key = "rope.scaling.type";
    match fields.text(key)? {
        None | Some("none") => Ok(RopeScaling::None),
        Some("linear") => Ok(RopeScaling::Linear { factor: factor(fields)? }),
        Some("yarn") => Ok(RopeScaling::Yarn(yarn(fields)?)),
        Some(other) => Err(fields.unsupported(key, &other.into(), "none, linear, yarn")),
    }
}

fn factor(fields: &Fields<'_>) -> Result<f32, ModelError> {
    Ok(fields.need_positive("rope.scaling.factor")? as f32)
}

fn yarn(fields: &Fields<'_>) -> Result<Yarn, ModelError> {
    let factor = factor(fields)?;
    let number = |key: &str, default: f32| -> Result<f32, ModelError> {
        Ok(fields.positive(key)?.map_or(default, |x| x as f32))
    };
    let whole = Yarn::default_attention_factor(factor);
    Ok(Yarn {
        factor,
        original_context: fields.need_size("rope.scaling.original_context_length")?,
        beta_fast: number("rope.scaling.yarn_beta_fast", 32.0)?,
        beta_slow: number("rope.scaling.yarn_beta_slow", 1.0)?,
        attention_factor: number("rope.scaling.yarn_attn_factor", whole)?,
        truncate: true,
    })
}
