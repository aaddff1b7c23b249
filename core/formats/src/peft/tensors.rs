//! `adapter_model.safetensors`: names like `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`.

use std::collections::BTreeMap;

use super::{AdapterConfig, LoraAdapter, LoraModule};
use crate::error::shown;
use crate::huggingface::{encode_safetensors, read_tensors};
use crate::source::SourceFile;
use crate::{DType, FormatError, NewTensor, TensorInfo, codec};

/// What PEFT puts before a module's path.
const PREFIX: &str = "base_model.model.";

/// Which of a module's tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    A,
    B,
    Magnitude,
}

/// The tensors found for one module.
#[derive(Default)]
struct Found {
    a: Option<TensorInfo>,
    b: Option<TensorInfo>,
    magnitude: Option<TensorInfo>,
}

/// Reads every module.
pub(super) fn read(file: &SourceFile, config: &AdapterConfig) -> Result<Vec<LoraModule>, FormatError> {
    let mut found = BTreeMap::<String, Found>::new();
    for tensor in read_tensors(file, 0)? {
        let (path, kind) = parse(&tensor.name).map_err(|problem| error(file, &tensor.name, problem))?;
        let slots = found.entry(path.to_owned()).or_default();
        let slot = match kind {
            Kind::A => &mut slots.a,
            Kind::B => &mut slots.b,
            Kind::Magnitude => &mut slots.magnitude,
        };
        if slot.is_some() {
            return Err(error(file, &tensor.name, "is there twice, once under another spelling"));
        }
        *slot = Some(tensor);
    }
    if found.is_empty() {
        return Err(FormatError::NoLoraTensors { file: file.name.clone() });
    }
    found.into_iter().map(|(path, found)| read_module(file, config, path, found)).collect()
}

/// The module's path and which of its tensors a name means. Early files carry the adapter's own name, `default`, too.
fn parse(name: &str) -> Result<(&str, Kind), &'static str> {
    let path = name.strip_prefix(PREFIX).ok_or("does not begin with base_model.model.")?;
    let Some((path, rest)) = path.split_once(".lora_").filter(|(path, _)| !path.is_empty()) else {
        return Err("is no part of a LoRA; whole layers stored in an adapter are not supported");
    };
    let kind = match rest {
        "A.weight" | "A.default.weight" => Kind::A,
        "B.weight" | "B.default.weight" => Kind::B,
        "magnitude_vector" | "magnitude_vector.weight" | "magnitude_vector.default.weight" => Kind::Magnitude,
        _ if rest.starts_with("embedding_") => return Err("adapts an embedding, which is not supported"),
        _ => return Err("is none of lora_A.weight, lora_B.weight and lora_magnitude_vector"),
    };
    Ok((path, kind))
}

fn read_module(
    file: &SourceFile,
    config: &AdapterConfig,
    path: String,
    found: Found,
) -> Result<LoraModule, FormatError> {
    let missing = |part: &str| error(file, &format!("{PREFIX}{path}.{part}"), "is missing");
    let a = found.a.ok_or_else(|| missing("lora_A.weight"))?;
    let b = found.b.ok_or_else(|| missing("lora_B.weight"))?;
    if config.use_dora && found.magnitude.is_none() {
        return Err(missing("lora_magnitude_vector"));
    }
    if let Some(extra) = found.magnitude.as_ref().filter(|_| !config.use_dora) {
        return Err(error(file, &extra.name, "is there, but use_dora is false"));
    }
    let [_, d_in] =
        checked_shape(file, &a, |[rank, _]: [usize; 2]| rank == config.rank, &format!("[r = {}, d_in]", config.rank))?;
    let [d_out, _] =
        checked_shape(file, &b, |[_, rank]: [usize; 2]| rank == config.rank, &format!("[d_out, r = {}]", config.rank))?;
    if let Some(magnitude) = &found.magnitude {
        checked_shape(file, magnitude, |shape| shape == [d_out], &format!("[{d_out}]"))?;
    }
    Ok(LoraModule {
        d_in,
        d_out,
        a: values(file, &a)?,
        b: values(file, &b)?,
        magnitude: found.magnitude.map(|magnitude| values(file, &magnitude)).transpose()?,
        path,
    })
}

fn checked_shape<const N: usize>(
    file: &SourceFile,
    tensor: &TensorInfo,
    is_right: impl FnOnce([usize; N]) -> bool,
    expected: &str,
) -> Result<[usize; N], FormatError> {
    match <[usize; N]>::try_from(tensor.shape.as_slice()) {
        Ok(shape) if is_right(shape) => Ok(shape),
        _ => Err(error(file, &tensor.name, &format!("has the shape {:?}, expected {expected}", tensor.shape))),
    }
}

/// A tensor's values; its bytes are known to be in the file.
fn values(file: &SourceFile, tensor: &TensorInfo) -> Result<Vec<f32>, FormatError> {
    let bytes = file.read(tensor.place.range.clone())?;
    let mut values = vec![0.0; tensor.n_elements()];
    codec::dequantize(tensor.dtype, &bytes, &mut values)?;
    match values.iter().position(|value| !value.is_finite()) {
        None => Ok(values),
        Some(i) => Err(error(file, &tensor.name, &format!("is not finite at value {i}"))),
    }
}

/// The bytes of the file, all tensors in f32.
pub(super) fn encode(adapter: &LoraAdapter) -> Result<Vec<u8>, FormatError> {
    let mut tensors = Vec::new();
    for module in &adapter.modules {
        check_module(module, &adapter.config)?;
        tensors.extend(stored(module, adapter.config.rank));
    }
    let borrowed: Vec<_> = tensors.iter().map(|(tensor, values)| (tensor, *values)).collect();
    encode_safetensors(&borrowed)
}

fn stored(module: &LoraModule, rank: usize) -> impl Iterator<Item = (NewTensor, &[f32])> {
    let name = |part: &str| format!("{PREFIX}{}.{part}", module.path);
    let tensor = |part: &str, shape: Vec<usize>| NewTensor { name: name(part), shape, dtype: DType::F32 };
    let a = (tensor("lora_A.weight", vec![rank, module.d_in]), module.a.as_slice());
    let b = (tensor("lora_B.weight", vec![module.d_out, rank]), module.b.as_slice());
    let shape = vec![module.d_out];
    let magnitude = module.magnitude.as_deref().map(|values| (tensor("lora_magnitude_vector", shape), values));
    [a, b].into_iter().chain(magnitude)
}

/// Refuses what could be written but not be read again.
fn check_module(module: &LoraModule, config: &AdapterConfig) -> Result<(), FormatError> {
    let fits = module.a.len() == config.rank.saturating_mul(module.d_in)
        && module.b.len() == config.rank.saturating_mul(module.d_out)
        && module.magnitude.as_ref().is_none_or(|magnitude| magnitude.len() == module.d_out)
        && module.magnitude.is_some() == config.use_dora;
    if fits {
        return Ok(());
    }
    let LoraModule { path, d_in, d_out, a, b, magnitude } = module;
    let problem = format!(
        "has {} values in A, {} in B and {:?} magnitudes, which does not fit rank {}, {d_in} in, {d_out} out and \
         use_dora = {}",
        a.len(),
        b.len(),
        magnitude.as_ref().map(Vec::len),
        config.rank,
        config.use_dora
    );
    Err(FormatError::AdapterTensor { file: super::WEIGHTS.to_owned(), tensor: shown(path), problem })
}

fn error(file: &SourceFile, tensor: &str, problem: &str) -> FormatError {
    FormatError::AdapterTensor { file: file.name.clone(), tensor: shown(tensor), problem: problem.to_owned() }
}
