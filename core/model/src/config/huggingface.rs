//! `config.json` to [`Config`]: the keys as transformers writes them, old spellings and new.
//!
//! The official defaults stand in for missing keys. What would change the mathematics and is not
//! built (biases, other activations, soft caps, packed weights) is refused, never ignored.

mod rope;

use serde_json::Value;

use super::{Attention, Config, Family, Moe, check, family::Traits, fields::Fields};
use crate::ModelError;

/// Reads a `config.json`; `source` names it in errors.
pub(super) fn read(source: &str, config: &Value) -> Result<Config, ModelError> {
    let empty = serde_json::Map::new();
    let root = Fields { source, prefix: "", values: config.as_object().unwrap_or(&empty) };
    let family = family(&root)?;
    let fields = text_part(family, root)?;
    refuse_what_is_not_built(&fields, &family.traits())?;
    let config = assemble(family, &fields)?;
    check::check(source, &config)?;
    Ok(config)
}

fn family(root: &Fields<'_>) -> Result<Family, ModelError> {
    let found = root.text("model_type")?.ok_or_else(|| root.missing("model_type"))?;
    let classes = root.list("architectures")?.unwrap_or_default();
    let is_old = classes.iter().any(|class| class.as_str() == Some("OLMoForCausalLM"));
    match found {
        _ if is_old => Err(old_olmo(root, "OLMoForCausalLM")),
        "llama" => Ok(Family::Llama),
        "olmo" => Ok(Family::Olmo),
        "olmo2" => Ok(Family::Olmo2),
        "olmo3" => Ok(Family::Olmo3),
        "olmoe" => Ok(Family::Olmoe),
        "gemma3" | "gemma3_text" => Ok(Family::Gemma3),
        "hf_olmo" => Err(ModelError::OldOlmoLayout { source_name: root.source.to_owned(), found: found.to_owned() }),
        other => Err(ModelError::UnknownArchitecture {
            source_name: root.source.to_owned(),
            found: other.to_owned(),
            supported: Family::names(),
        }),
    }
}

fn old_olmo(root: &Fields<'_>, found: &str) -> ModelError {
    ModelError::OldOlmoLayout { source_name: root.source.to_owned(), found: found.to_owned() }
}

/// Gemma 3 models that also see pictures keep the language model's keys one level down.
fn text_part<'a>(family: Family, root: Fields<'a>) -> Result<Fields<'a>, ModelError> {
    match family {
        Family::Gemma3 => Ok(root.child("text_config", "text_config.")?.unwrap_or(root)),
        _ => Ok(root),
    }
}

fn refuse_what_is_not_built(fields: &Fields<'_>, traits: &Traits) -> Result<(), ModelError> {
    fields.refuse("attention_bias", "projections without bias")?;
    fields.refuse("mlp_bias", "projections without bias")?;
    fields.refuse("use_bidirectional_attention", "causal attention")?;
    fields.refuse("attn_logit_softcapping", "none")?;
    fields.refuse("final_logit_softcapping", "none")?;
    fields.refuse("quantization_config", "F32, F16 and BF16 weights, or GGUF")?;
    for key in ["hidden_act", "hidden_activation"] {
        let Some(found) = fields.value(key) else { continue };
        if found.as_str() != Some(traits.activation_name) {
            return Err(fields.unsupported(key, found, traits.activation_name));
        }
    }
    match fields.value("partial_rotary_factor") {
        Some(found) if found.as_f64() != Some(1.0) => Err(fields.unsupported("partial_rotary_factor", found, "1")),
        _ => Ok(()),
    }
}

fn assemble(family: Family, fields: &Fields<'_>) -> Result<Config, ModelError> {
    let traits = family.traits();
    let d_model = fields.need_size("hidden_size")?;
    let n_layers = fields.need_size("num_hidden_layers")?;
    check::n_layers(fields.source, n_layers)?;
    let (n_heads, n_kv_heads) = heads(family, fields)?;
    let head_dim = head_dim(family, fields, d_model, n_heads)?;
    let context_length = fields.size("max_position_embeddings")?.unwrap_or(traits.context_length);
    let (rope_full, rope_sliding) = rope::read(fields, &traits, context_length)?;
    Ok(Config {
        family,
        vocab_size: vocab_size(family, fields)?,
        d_model,
        d_ff: fields.need_size("intermediate_size")?,
        n_layers,
        n_heads,
        n_kv_heads,
        head_dim,
        context_length,
        norm: traits.norm,
        norm_eps: norm_eps(family, fields)? as f32,
        placement: traits.placement,
        qk_norm: traits.qk_norm,
        clip_qkv: clip_qkv(family, fields)?,
        activation: traits.activation,
        moe: moe(family, fields)?,
        tied_head: fields.flag("tie_word_embeddings")?.unwrap_or(traits.tied_head),
        embed_scale: if family == Family::Gemma3 { (d_model as f32).sqrt() } else { 1.0 },
        attention_scale: attention_scale(family, fields, head_dim)?,
        attention: attention(fields, &traits, n_layers)?,
        rope_full,
        rope_sliding,
    })
}

fn vocab_size(family: Family, fields: &Fields<'_>) -> Result<usize, ModelError> {
    match family {
        Family::Gemma3 => Ok(fields.size("vocab_size")?.unwrap_or(262_208)),
        _ => fields.need_size("vocab_size"),
    }
}

fn heads(family: Family, fields: &Fields<'_>) -> Result<(usize, usize), ModelError> {
    let n_heads = fields.size("num_attention_heads")?;
    let n_kv_heads = fields.size("num_key_value_heads")?;
    if family == Family::Gemma3 {
        return Ok((n_heads.unwrap_or(8), n_kv_heads.unwrap_or(4)));
    }
    let n_heads = n_heads.ok_or_else(|| fields.missing("num_attention_heads"))?;
    Ok((n_heads, n_kv_heads.unwrap_or(n_heads)))
}

fn head_dim(family: Family, fields: &Fields<'_>, d_model: usize, n_heads: usize) -> Result<usize, ModelError> {
    let default = if family == Family::Gemma3 { 256 } else { d_model / n_heads };
    Ok(fields.size("head_dim")?.unwrap_or(default))
}

/// OLMo 1's is fixed in its code; some of its files carry a stray `rms_norm_eps`.
fn norm_eps(family: Family, fields: &Fields<'_>) -> Result<f64, ModelError> {
    let default = family.traits().norm_eps;
    match family {
        Family::Olmo => Ok(default),
        _ => Ok(fields.positive("rms_norm_eps")?.unwrap_or(default)),
    }
}

fn clip_qkv(family: Family, fields: &Fields<'_>) -> Result<Option<f32>, ModelError> {
    match family {
        Family::Olmo | Family::Olmoe => Ok(fields.positive("clip_qkv")?.map(|clip| clip as f32)),
        _ => Ok(None),
    }
}

fn moe(family: Family, fields: &Fields<'_>) -> Result<Option<Moe>, ModelError> {
    if family != Family::Olmoe {
        return Ok(None);
    }
    Ok(Some(Moe {
        n_experts: fields.size("num_experts")?.unwrap_or(64),
        top_k: fields.size("num_experts_per_tok")?.unwrap_or(8),
        renormalise: fields.flag("norm_topk_prob")?.unwrap_or(false),
    }))
}

fn attention_scale(family: Family, fields: &Fields<'_>, head_dim: usize) -> Result<f32, ModelError> {
    let squared = match family {
        Family::Gemma3 => fields.positive("query_pre_attn_scalar")?.unwrap_or(256.0),
        _ => head_dim as f64,
    };
    Ok(squared.powf(-0.5) as f32)
}

/// What each layer attends to: as listed, else by the family's period.
fn attention(fields: &Fields<'_>, traits: &Traits, n_layers: usize) -> Result<Vec<Attention>, ModelError> {
    let Some(default_period) = traits.sliding_period else {
        return Ok(vec![Attention::Full; n_layers]);
    };
    let window = Attention::Sliding(fields.size("sliding_window")?.unwrap_or(4096));
    if let Some(kinds) = fields.list("layer_types")? {
        return kinds.iter().map(|kind| layer_kind(fields, kind, window)).collect();
    }
    let period = match fields.size("sliding_window_pattern")? {
        Some(period) => period,
        None => fields.size("_sliding_window_pattern")?.unwrap_or(default_period),
    };
    Ok(by_period(n_layers, period, window))
}

/// Every `period`-th layer is full, the others slide.
pub(super) fn by_period(n_layers: usize, period: usize, window: Attention) -> Vec<Attention> {
    let kind = |layer: usize| if layer.is_multiple_of(period) { Attention::Full } else { window };
    (1..=n_layers).map(kind).collect()
}

fn layer_kind(fields: &Fields<'_>, kind: &Value, window: Attention) -> Result<Attention, ModelError> {
    match kind.as_str() {
        Some("full_attention") => Ok(Attention::Full),
        Some("sliding_attention") => Ok(window),
        _ => Err(fields.unsupported("layer_types", kind, "full_attention, sliding_attention")),
    }
}

#[cfg(test)]
mod tests;
