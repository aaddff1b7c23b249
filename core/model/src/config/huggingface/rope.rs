//! Rotary embeddings in `config.json`: three spellings of the same thing.
//!
//! Old files hold `rope_theta` and `rope_scaling`; newer ones one flat `rope_parameters`; the
//! newest nest one object per layer kind in it. Scaling that is not told apart by layer kind
//! belongs to full layers alone: sliding ones never see a position difference beyond their window.

use crate::{
    ModelError,
    config::{family::Traits, fields::Fields},
    rope::{Llama3, Rope, RopeScaling, Yarn},
};

const SUPPORTED: &str = "default, linear, yarn, llama3";

/// The rotary embeddings of full and of sliding layers.
pub(super) fn read(fields: &Fields<'_>, traits: &Traits, context_length: usize) -> Result<(Rope, Rope), ModelError> {
    let theta = fields.positive("rope_theta")?.unwrap_or(traits.rope_theta);
    let local = fields.positive("rope_local_base_freq")?.or(traits.rope_theta_sliding);
    let parameters = fields.child("rope_parameters", "rope_parameters.")?;
    if let Some(parameters) = parameters {
        let full = parameters.child("full_attention", "rope_parameters.full_attention.")?;
        let sliding = parameters.child("sliding_attention", "rope_parameters.sliding_attention.")?;
        if full.is_some() || sliding.is_some() {
            let local = local.unwrap_or(theta);
            return Ok((one(full, theta, context_length)?, one(sliding, local, context_length)?));
        }
    }
    let scaling = fields.child("rope_scaling", "rope_scaling.")?.or(parameters);
    let full = one(scaling, theta, context_length)?;
    let sliding = Rope::plain(local.map_or(full.theta, |theta| theta as f32));
    Ok((full, sliding))
}

/// One rotary embedding; `theta` where the object does not say.
fn one(fields: Option<Fields<'_>>, theta: f64, context_length: usize) -> Result<Rope, ModelError> {
    let Some(fields) = fields else { return Ok(Rope::plain(theta as f32)) };
    let theta = fields.positive("rope_theta")?.unwrap_or(theta) as f32;
    Ok(Rope { theta, scaling: scaling(&fields, context_length)? })
}

fn scaling(fields: &Fields<'_>, context_length: usize) -> Result<RopeScaling, ModelError> {
    let key = if fields.value("rope_type").is_some() { "rope_type" } else { "type" };
    match fields.text(key)? {
        None | Some("default") => Ok(RopeScaling::None),
        Some("linear") => Ok(RopeScaling::Linear { factor: factor(fields)? }),
        Some("yarn") => Ok(RopeScaling::Yarn(yarn(fields, context_length)?)),
        Some("llama3") => Ok(RopeScaling::Llama3(llama3(fields, context_length)?)),
        Some(other) => Err(fields.unsupported(key, &other.into(), SUPPORTED)),
    }
}

fn factor(fields: &Fields<'_>) -> Result<f32, ModelError> {
    Ok(fields.need_positive("factor")? as f32)
}

fn original_context(fields: &Fields<'_>, context_length: usize) -> Result<usize, ModelError> {
    Ok(fields.size("original_max_position_embeddings")?.unwrap_or(context_length))
}

fn yarn(fields: &Fields<'_>, context_length: usize) -> Result<Yarn, ModelError> {
    fields.refuse("mscale", "attention_factor")?;
    let original_context = original_context(fields, context_length)?;
    let factor = match fields.positive("factor")? {
        Some(factor) => factor as f32,
        None => context_length as f32 / original_context as f32,
    };
    let attention_factor = fields.positive("attention_factor")?;
    Ok(Yarn {
        factor,
        original_context,
        beta_fast: fields.positive("beta_fast")?.unwrap_or(32.0) as f32,
        beta_slow: fields.positive("beta_slow")?.unwrap_or(1.0) as f32,
        attention_factor: attention_factor
            .map_or_else(|| Yarn::default_attention_factor(factor), |factor| factor as f32),
        truncate: fields.flag("truncate")?.unwrap_or(true),
    })
}

fn llama3(fields: &Fields<'_>, context_length: usize) -> Result<Llama3, ModelError> {
    Ok(Llama3 {
        factor: factor(fields)?,
        low_freq_factor: fields.need_positive("low_freq_factor")? as f32,
        high_freq_factor: fields.need_positive("high_freq_factor")? as f32,
        original_context: original_context(fields, context_length)?,
    })
}
