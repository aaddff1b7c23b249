//! `adapter_config.json`: the few keys that say what is computed, and the refusal of those that would change it.

use serde_json::{Map, Value, json};

use crate::FormatError;
use crate::error::shown;

/// What an adapter says about itself.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterConfig {
    /// `r`, at least 1.
    pub rank: usize,
    /// `lora_alpha`.
    pub alpha: f32,
    /// `lora_dropout`, on the input of A while training, in 0..1.
    pub dropout: f32,
    /// Whether the scale is `alpha / sqrt(rank)` instead of `alpha / rank`.
    pub use_rslora: bool,
    /// Whether modules have magnitudes.
    pub use_dora: bool,
    /// Which layers PEFT gives an adapter before it fills them from the file.
    pub target_modules: TargetModules,
    /// `base_model_name_or_path`: where the model came from that this belongs to.
    pub base_model: Option<String>,
}

/// A choice of linear layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetModules {
    /// All whose path is one of these or ends in a dot and one of these; empty leaves the choice to the family.
    Names(Vec<String>),
    /// All whose whole path this regular expression matches.
    Pattern(String),
    /// All but the head.
    AllLinear,
}

/// Keys that change what is computed, or what the file holds, in ways not supported. Absent, `null`, `false`, and empty
/// mean that they are not used.
const REFUSED: [&str; 16] = [
    "alora_invocation_tokens",
    "alpha_pattern",
    "arrow_config",
    "fan_in_fan_out",
    "kasa_config",
    "layer_replication",
    "lora_bias",
    "modules_to_save",
    "monteclora_config",
    "rank_pattern",
    "target_parameters",
    "trainable_token_indices",
    "use_bdlora",
    "use_qalora",
    "velora_config",
    "lora_ga_config",
];

/// Ways of beginning that leave the base model's weights alone.
const HARMLESS_INITS: [&str; 3] = ["gaussian", "eva", "orthogonal"];

impl AdapterConfig {
    /// What B (A x) is multiplied by.
    pub fn scale(&self) -> f32 {
        let rank = self.rank as f64;
        let divisor = if self.use_rslora { rank.sqrt() } else { rank };
        (f64::from(self.alpha) / divisor) as f32
    }

    /// What the object says that the file of this name holds.
    pub(super) fn of(file: &str, object: Map<String, Value>) -> Result<Self, FormatError> {
        let keys = Keys { file, object };
        keys.check_supported()?;
        Ok(Self {
            rank: keys.rank()?,
            alpha: keys.number("lora_alpha")?.unwrap_or(8.0),
            dropout: keys.dropout()?,
            use_rslora: keys.flag("use_rslora")?,
            use_dora: keys.flag("use_dora")?,
            target_modules: keys.target_modules()?,
            base_model: keys.text("base_model_name_or_path")?.map(str::to_owned),
        })
    }

    pub(super) fn to_json(&self) -> Vec<u8> {
        let target_modules = match &self.target_modules {
            TargetModules::Names(names) if names.is_empty() => Value::Null,
            TargetModules::Names(names) => json!(names),
            TargetModules::Pattern(pattern) => json!(pattern),
            TargetModules::AllLinear => json!("all-linear"),
        };
        let value = json!({
            "peft_type": "LORA",
            "task_type": "CAUSAL_LM",
            "base_model_name_or_path": self.base_model,
            "r": self.rank,
            "lora_alpha": whole_or_float(self.alpha),
            "lora_dropout": shortest(self.dropout),
            "use_rslora": self.use_rslora,
            "use_dora": self.use_dora,
            "target_modules": target_modules,
            "bias": "none",
            "fan_in_fan_out": false,
            "inference_mode": true,
            "init_lora_weights": true,
            "modules_to_save": null,
            "layers_to_transform": null,
            "layers_pattern": null,
            "rank_pattern": {},
            "alpha_pattern": {},
        });
        format!("{value:#}\n").into_bytes()
    }
}

/// PEFT declares alpha an integer, and some readers insist.
fn whole_or_float(value: f32) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e9 { json!(value as i64) } else { shortest(value) }
}

/// 0.05 as 0.05, not as the `f64` that the nearest `f32` is.
fn shortest(value: f32) -> Value {
    json!(value.to_string().parse::<f64>().unwrap_or(value.into()))
}

/// The object of a file, with errors that name the key.
struct Keys<'a> {
    file: &'a str,
    object: Map<String, Value>,
}

impl Keys<'_> {
    fn check_supported(&self) -> Result<(), FormatError> {
        match self.text("peft_type")? {
            Some("LORA") => {}
            other => {
                let problem = format!("is {}, only LORA is read", shown(other.unwrap_or("absent")));
                return Err(self.error("peft_type", problem));
            }
        }
        if let Some(bias) = self.text("bias")?.filter(|bias| *bias != "none") {
            return Err(self.error("bias", format!("is {}, but trained biases are not supported", shown(bias))));
        }
        if let Some(key) = REFUSED.iter().find(|key| self.get(key).is_some_and(is_set)) {
            return Err(self.error(key, "is used, which is not supported".into()));
        }
        match self.get("init_lora_weights") {
            Some(Value::String(init)) if !HARMLESS_INITS.contains(&init.as_str()) => {
                let problem = format!(
                    "is {}, which changes the base model's weights; convert the adapter to a plain one",
                    shown(init)
                );
                Err(self.error("init_lora_weights", problem))
            }
            _ => Ok(()),
        }
    }

    fn rank(&self) -> Result<usize, FormatError> {
        let value = self.get("r").ok_or_else(|| self.error("r", "is missing".into()))?;
        let rank = value.as_u64().and_then(|rank| usize::try_from(rank).ok()).filter(|rank| *rank > 0);
        rank.ok_or_else(|| self.wrong("r", value, "a whole number of at least 1"))
    }

    fn dropout(&self) -> Result<f32, FormatError> {
        let dropout = self.number("lora_dropout")?.unwrap_or(0.0);
        if (0.0..1.0).contains(&dropout) {
            return Ok(dropout);
        }
        Err(self.error("lora_dropout", format!("is {dropout}, expected a number from 0 to under 1")))
    }

    fn target_modules(&self) -> Result<TargetModules, FormatError> {
        let key = "target_modules";
        match self.get(key) {
            None => Ok(TargetModules::Names(Vec::new())),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("all-linear") => Ok(TargetModules::AllLinear),
            Some(Value::String(text)) => Ok(TargetModules::Pattern(text.clone())),
            Some(value) => {
                let names = value
                    .as_array()
                    .and_then(|names| names.iter().map(|name| name.as_str().map(str::to_owned)).collect());
                names.map(TargetModules::Names).ok_or_else(|| self.wrong(key, value, "a list of names or a text"))
            }
        }
    }

    fn number(&self, key: &str) -> Result<Option<f32>, FormatError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
        number.map(Some).ok_or_else(|| self.wrong(key, value, "a number"))
    }

    fn flag(&self, key: &str) -> Result<bool, FormatError> {
        let Some(value) = self.get(key) else { return Ok(false) };
        value.as_bool().ok_or_else(|| self.wrong(key, value, "true or false"))
    }

    fn text(&self, key: &str) -> Result<Option<&str>, FormatError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(key, value, "a text"))
    }

    /// `null` is as good as absent.
    fn get(&self, key: &str) -> Option<&Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn wrong(&self, key: &str, found: &Value, expected: &str) -> FormatError {
        self.error(key, format!("is {}, expected {expected}", shown(&found.to_string())))
    }

    fn error(&self, key: &str, problem: String) -> FormatError {
        FormatError::AdapterConfig { file: self.file.to_owned(), key: key.to_owned(), problem }
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Array(items) => !items.is_empty(),
        Value::Object(entries) => !entries.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Number(_) => true,
    }
}
