//! `--adapter DIR[:SCALE]`: LoRA adapters from the command line to the model.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use samara_chat::ScaledAdapter;
use samara_formats::peft::LoraAdapter;
use serde::Serialize;

/// Which adapters the model has.
#[derive(Args, Debug, Clone)]
pub(crate) struct AdapterArgs {
    /// A folder with a LoRA adapter as PEFT writes it, and how strongly it acts [default scale: 1]; may be given several times
    #[arg(long = "adapter", value_name = "DIR[:SCALE]")]
    adapters: Vec<AdapterArg>,
}

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AdapterArg {
    folder: PathBuf,
    scale: f32,
}

/// One of them for a program to read.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AdapterReport {
    adapter: String,
    scale: f32,
    rank: usize,
    n_modules: usize,
}

impl AdapterArgs {
    /// Reads their files.
    ///
    /// # Errors
    /// A folder without an adapter, or with a damaged one.
    pub(crate) fn open(&self) -> anyhow::Result<Vec<ScaledAdapter>> {
        open_all(&self.adapters)
    }
}

/// Reads the files of several.
///
/// # Errors
/// As [`AdapterArgs::open`].
pub(crate) fn open_all(adapters: &[AdapterArg]) -> anyhow::Result<Vec<ScaledAdapter>> {
    let open = |AdapterArg { folder, scale }: &AdapterArg| {
        let adapter = Arc::new(LoraAdapter::open(folder)?);
        Ok(ScaledAdapter { name: folder.display().to_string(), adapter, strength: *scale })
    };
    adapters.iter().map(open).collect()
}

impl FromStr for AdapterArg {
    type Err = String;

    /// What follows the last colon is the scale if it is a number.
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.rsplit_once(':').and_then(|(folder, scale)| Some((folder, scale.parse::<f32>().ok()?)));
        match number.unwrap_or((text, 1.0)) {
            ("", _) => Err("give it as DIR or DIR:SCALE".to_owned()),
            (_, scale) if !scale.is_finite() => Err("the scale must be finite".to_owned()),
            (folder, scale) => Ok(Self { folder: folder.into(), scale }),
        }
    }
}

impl AdapterReport {
    pub(crate) fn of(scaled: &ScaledAdapter) -> Self {
        Self {
            adapter: scaled.name.clone(),
            scale: scaled.strength,
            rank: scaled.adapter.config.rank,
            n_modules: scaled.adapter.modules.len(),
        }
    }
}

impl fmt::Display for AdapterReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { adapter, scale, rank, n_modules } = self;
        write!(f, "adapter: {adapter} (rank {rank}, {n_modules} modules) at {scale}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_after_the_last_colon_is_the_scale() {
        let cases = [
            ("a", Some(("a", 1.0))),
            ("a:0.5", Some(("a", 0.5))),
            ("a/b:-2", Some(("a/b", -2.0))),
            ("C:\\a", Some(("C:\\a", 1.0))),
            ("C:\\a:.25", Some(("C:\\a", 0.25))),
            ("a:1:1", Some(("a:1", 1.0))),
            ("", None),
            (":1", None),
            ("a:inf", None),
            ("a:NaN", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|(folder, scale)| AdapterArg { folder: folder.into(), scale });
            assert_eq!(text.parse().ok(), expected, "{text:?}");
        }
    }
}
