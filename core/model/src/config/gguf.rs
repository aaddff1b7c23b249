//! GGUF metadata to [`Config`]: the keys under the architecture's own prefix.
//!
//! GGUF leaves out what the tensors already say (vocabulary rows, a tied head, Llama 3's rotary
//! divisors); [`TensorFacts`] brings those in.

mod rope;

use samara_formats::{Checkpoint, GgufArray, GgufMetadata, GgufValue};
use serde_json::{Map, Value};

use super::{Attention, Config, Family, Moe, check, family::Traits, fields::Fields, huggingface::by_period};
use crate::{ModelError, names};

const SUPPORTED: &str = "llama, olmo, olmo2, olmo3, olmoe, gemma3";

/// Layers of Gemma 3 27B, the one size whose attention scale is not that of its head width.
const GEMMA3_27B_LAYERS: usize = 62;

/// What the tensors say about the configuration.
struct TensorFacts {
    vocab_size: usize,
    tied_head: bool,
    rope_divisors: Option<Vec<f32>>,
}

/// Reads the metadata of a GGUF checkpoint.
pub(super) fn read(checkpoint: &Checkpoint, metadata: &GgufMetadata) -> Result<Config, ModelError> {
    from_metadata(checkpoint.source(), metadata, tensor_facts(checkpoint)?)
}

fn tensor_facts(checkpoint: &Checkpoint) -> Result<TensorFacts, ModelError> {
    let embed = checkpoint.tensor(names::GGUF_EMBED).ok_or_else(|| ModelError::MissingKey {
        source_name: checkpoint.source().to_owned(),
        key: names::GGUF_EMBED.to_owned(),
    })?;
    let divisors = checkpoint.tensor(names::GGUF_ROPE_DIVISORS);
    let divisors = divisors.filter(|info| info.n_elements() <= 4096);
    let read = |info| checkpoint.rows_f32(info, 0..1);
    Ok(TensorFacts {
        vocab_size: embed.shape.first().copied().unwrap_or_default(),
        tied_head: checkpoint.tensor(names::GGUF_HEAD).is_none(),
        rope_divisors: divisors.map(read).transpose()?,
    })
}

fn from_metadata(source: &str, metadata: &GgufMetadata, facts: TensorFacts) -> Result<Config, ModelError> {
    let architecture = metadata
        .str("general.architecture")
        .ok_or(ModelError::MissingKey { source_name: source.to_owned(), key: "general.architecture".to_owned() })?;
    let prefix = format!("{architecture}.");
    let values = values_under(&prefix, metadata);
    let fields = Fields { source, prefix: &prefix, values: &values };
    let family = family(&fields, architecture)?;
    let config = assemble(family, &fields, facts)?;
    check::check(source, &config)?;
    Ok(config)
}

fn family(fields: &Fields<'_>, architecture: &str) -> Result<Family, ModelError> {
    match architecture {
        "llama" => Ok(Family::Llama),
        "olmo" => Ok(Family::Olmo),
        "olmo2" if fields.value("attention.sliding_window").is_some() => Ok(Family::Olmo3),
        "olmo2" => Ok(Family::Olmo2),
        "olmo3" => Ok(Family::Olmo3),
        "olmoe" => Ok(Family::Olmoe),
        "gemma3" => Ok(Family::Gemma3),
        other => Err(ModelError::UnknownArchitecture {
            source_name: fields.source.to_owned(),
            found: other.to_owned(),
            supported: SUPPORTED.to_owned(),
        }),
    }
}

fn assemble(family: Family, fields: &Fields<'_>, facts: TensorFacts) -> Result<Config, ModelError> {
    let traits = family.traits();
    let d_model = fields.need_size("embedding_length")?;
    let n_layers = fields.need_size("block_count")?;
    check::n_layers(fields.source, n_layers)?;
    let n_heads = fields.need_size("attention.head_count")?;
    let head_dim = head_dim(fields, d_model, n_heads)?;
    let (rope_full, rope_sliding) = rope::read(fields, &traits, facts.rope_divisors)?;
    Ok(Config {
        family,
        vocab_size: facts.vocab_size,
        d_model,
        d_ff: fields.need_size("feed_forward_length")?,
        n_layers,
        n_heads,
        n_kv_heads: fields.size("attention.head_count_kv")?.unwrap_or(n_heads),
        head_dim,
        context_length: fields.need_size("context_length")?,
        norm: traits.norm,
        norm_eps: norm_eps(family, fields)? as f32,
        placement: traits.placement,
        qk_norm: traits.qk_norm,
        clip_qkv: clip_qkv(family, fields)?,
        activation: traits.activation,
        moe: moe(family, fields)?,
        tied_head: facts.tied_head,
        embed_scale: if family == Family::Gemma3 { (d_model as f32).sqrt() } else { 1.0 },
        attention_scale: attention_scale(family, d_model, n_layers, n_heads, head_dim),
        attention: attention(fields, &traits, n_layers)?,
        rope_full,
        rope_sliding,
    })
}

fn head_dim(fields: &Fields<'_>, d_model: usize, n_heads: usize) -> Result<usize, ModelError> {
    let head_dim = fields.size("attention.key_length")?.unwrap_or(d_model / n_heads);
    for key in ["attention.value_length", "rope.dimension_count"] {
        let Some(found) = fields.size(key)? else { continue };
        if found != head_dim {
            let supported = format!("{head_dim}, the head width");
            return Err(fields.unsupported(key, &found.into(), &supported));
        }
    }
    Ok(head_dim)
}

fn norm_eps(family: Family, fields: &Fields<'_>) -> Result<f64, ModelError> {
    let key = match family {
        Family::Olmo => "attention.layer_norm_epsilon",
        _ => "attention.layer_norm_rms_epsilon",
    };
    Ok(fields.positive(key)?.unwrap_or(family.traits().norm_eps))
}

fn clip_qkv(family: Family, fields: &Fields<'_>) -> Result<Option<f32>, ModelError> {
    match family {
        Family::Olmo | Family::Olmoe => Ok(fields.positive("attention.clamp_kqv")?.map(|clip| clip as f32)),
        _ => Ok(None),
    }
}

fn moe(family: Family, fields: &Fields<'_>) -> Result<Option<Moe>, ModelError> {
    if family == Family::Olmoe {
        return Ok(Some(Moe {
            n_experts: fields.need_size("expert_count")?,
            top_k: fields.need_size("expert_used_count")?,
            renormalise: fields.flag("expert_weights_norm")?.unwrap_or(false),
        }));
    }
    match fields.value("expert_count") {
        Some(found) if found.as_u64() != Some(0) => {
            Err(fields.unsupported("expert_count", found, "none in this architecture"))
        }
        _ => Ok(None),
    }
}

fn attention_scale(family: Family, d_model: usize, n_layers: usize, n_heads: usize, head_dim: usize) -> f32 {
    let squared = match family {
        Family::Gemma3 if n_layers == GEMMA3_27B_LAYERS => d_model / n_heads,
        _ => head_dim,
    };
    (squared as f64).powf(-0.5) as f32
}

/// A list of flags (`true` slides), a period, or the family's own period.
fn attention(fields: &Fields<'_>, traits: &Traits, n_layers: usize) -> Result<Vec<Attention>, ModelError> {
    let Some(default_period) = traits.sliding_period else {
        return Ok(vec![Attention::Full; n_layers]);
    };
    let window = Attention::Sliding(fields.need_size("attention.sliding_window")?);
    let key = "attention.sliding_window_pattern";
    if !fields.value(key).is_some_and(Value::is_array) {
        return Ok(by_period(n_layers, fields.size(key)?.unwrap_or(default_period), window));
    }
    let kind = |slides: &Value| match slides.as_bool() {
        Some(true) => Ok(window),
        Some(false) => Ok(Attention::Full),
        None => Err(fields.bad(key, slides, "true or false for each layer")),
    };
    fields.list(key)?.unwrap_or_default().iter().map(kind).collect()
}

/// The values whose keys start with `prefix`, without it, as the common reader wants them.
fn values_under(prefix: &str, metadata: &GgufMetadata) -> Map<String, Value> {
    let entry = |(key, value): (&String, &GgufValue)| Some((key.strip_prefix(prefix)?.to_owned(), plain_value(value)?));
    metadata.values.iter().filter_map(entry).collect()
}

/// Scalars, texts and lists of flags; configurations hold no other lists.
fn plain_value(value: &GgufValue) -> Option<Value> {
    Some(match value {
        GgufValue::U8(x) => Value::from(*x),
        GgufValue::I8(x) => Value::from(*x),
        GgufValue::U16(x) => Value::from(*x),
        GgufValue::I16(x) => Value::from(*x),
        GgufValue::U32(x) => Value::from(*x),
        GgufValue::I32(x) => Value::from(*x),
        GgufValue::U64(x) => Value::from(*x),
        GgufValue::I64(x) => Value::from(*x),
        GgufValue::F32(x) => shortest_decimal(*x),
        GgufValue::F64(x) => Value::from(*x),
        GgufValue::Bool(x) => Value::from(*x),
        GgufValue::String(x) => Value::from(x.as_str()),
        GgufValue::Array(GgufArray::Bool(x)) => Value::from(x.as_slice()),
        GgufValue::Array(_) => Value::from("a list"),
    })
}

/// The double that prints like the single; 1e-6 stays 1e-6. What is not finite becomes a text,
/// which every numeric reader refuses.
fn shortest_decimal(x: f32) -> Value {
    match x.to_string().parse::<f64>() {
        Ok(double) if double.is_finite() => Value::from(double),
        _ => Value::from(x.to_string()),
    }
}

#[cfg(test)]
mod tests;
