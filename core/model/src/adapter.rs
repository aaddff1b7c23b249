//! Low-rank adapters of a decoder's matrices, and the names they go by.
//!
//! Published adapters name the modules of the official implementation, such as `model.layers.3.self_attn.k_proj`. Here
//! queries, keys and values are one product, and so are gate and up, so an adapter is a [`Site`]: some columns of a product.
//! It works on activations (`y += scale (x aᵀ) bᵀ`), so the matrix may stay quantised. A DoRA then brings the columns to
//! its own magnitudes (Liu et al. 2024); how long the rows of the adapted matrix are is found without making them.

use burn::tensor::{Device, Tensor};
use samara_formats::peft::{LoraAdapter, LoraModule};
use samara_ops::{self as ops, Weight, family::Kernels};
use std::ops::Range;

use crate::{Config, ModelError};

/// A product of a layer that adapters add to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// Queries, keys and values.
    Qkv,
    /// What follows attention.
    O,
    /// Gate and up.
    GateUp,
    /// What follows the gate.
    Down,
}

/// A module of the official implementation, as a place in a decoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its path, such as `model.layers.3.self_attn.k_proj`.
    pub path: String,
    /// Which layer.
    pub layer: usize,
    /// Which product.
    pub product: Product,
    /// Which columns of it.
    pub columns: Range<usize>,
    /// Width of what goes in.
    pub n_in: usize,
}

/// Two matrices on a device that add to the columns of a site, and for a DoRA the magnitudes of these.
#[derive(Debug, Clone)]
pub struct Adapter {
    site: Site,
    a: Tensor<2>,
    b: Tensor<2>,
    scale: f32,
    magnitudes: Option<Tensor<1>>,
    /// How long the rows of the adapted matrix are; known once the adapter has its place, where there are magnitudes.
    lengths: Option<Tensor<1>>,
    dropout: Option<Dropout>,
    kernels: Kernels,
}

/// Which inputs are dropped in training.
#[derive(Debug, Clone, Copy)]
struct Dropout {
    rate: f32,
    seed: u32,
}

impl Site {
    /// Every module that an adapter can have, layer by layer in the order of the official implementation. Experts have none.
    pub fn all(config: &Config) -> Vec<Self> {
        (0..config.n_layers).flat_map(|layer| Self::of_layer(config, layer)).collect()
    }

    /// The last part of the path, such as `k_proj`: what adapters are chosen by.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or_default()
    }

    fn of_layer(config: &Config, layer: usize) -> Vec<Self> {
        let (q, kv, d_ff, d_model) = (config.q_width(), config.kv_width(), config.d_ff, config.d_model);
        let site = |name: &str, product: Product, columns: Range<usize>, n_in: usize| Self {
            path: format!("model.layers.{layer}.{name}"),
            layer,
            product,
            columns,
            n_in,
        };
        let mut sites = vec![
            site("self_attn.q_proj", Product::Qkv, 0..q, d_model),
            site("self_attn.k_proj", Product::Qkv, q..q + kv, d_model),
            site("self_attn.v_proj", Product::Qkv, q + kv..q + 2 * kv, d_model),
            site("self_attn.o_proj", Product::O, 0..d_model, q),
        ];
        if config.moe.is_none() {
            sites.push(site("mlp.gate_proj", Product::GateUp, 0..d_ff, d_model));
            sites.push(site("mlp.up_proj", Product::GateUp, d_ff..2 * d_ff, d_model));
            sites.push(site("mlp.down_proj", Product::Down, 0..d_model, d_ff));
        }
        sites
    }
}

impl Adapter {
    /// An adapter of `site` with a `[r, D]` and b `[n, r]`, scaled by `scale`.
    ///
    /// # Panics
    /// If the shapes are not those of the site.
    pub fn new(site: Site, [a, b]: [Tensor<2>; 2], scale: f32, kernels: Kernels) -> Self {
        let [rank, _] = a.dims();
        assert_eq!((a.dims(), b.dims()), ([rank, site.n_in], [site.columns.len(), rank]), "adapter of {}", site.path);
        Self { site, a, b, scale, magnitudes: None, lengths: None, dropout: None, kernels }
    }

    /// The same adapter as a DoRA: the rows of the adapted matrix get these lengths, `[1, n]`.
    ///
    /// # Panics
    /// If there are not as many as the site has columns.
    pub fn with_magnitudes(self, magnitudes: Tensor<2>) -> Self {
        let n = self.site.columns.len();
        assert_eq!(magnitudes.dims(), [1, n], "magnitudes of {}", self.site.path);
        Self { magnitudes: Some(magnitudes.reshape([n])), ..self }
    }

    /// The same adapter whose inputs are dropped with probability `rate`, by `seed`. What the matrix itself gives stays whole,
    /// also under a DoRA.
    pub fn with_dropout(self, rate: f32, seed: u32) -> Self {
        Self { dropout: (rate > 0.0).then_some(Dropout { rate, seed }), ..self }
    }

    /// The adapters of a published one, each multiplied by `strength`. As in peft that is the low-rank part, and the
    /// magnitudes of a DoRA stay what they are.
    ///
    /// # Errors
    /// [`ModelError::Adapter`] with every module that this model does not have, or has in another shape.
    pub fn from_peft(
        adapter: &LoraAdapter,
        config: &Config,
        strength: f32,
        device: &Device,
        kernels: Kernels,
    ) -> Result<Vec<Self>, ModelError> {
        let scale = strength * adapter.config.scale();
        let place = |(site, module): (Site, &LoraModule)| {
            let rank = module.a.len() / module.d_in.max(1);
            let a = ops::matrix(module.a.clone(), rank, device);
            let b = ops::matrix(module.b.clone(), module.d_out, device);
            let adapter = Self::new(site, [a, b], scale, kernels);
            match &module.magnitude {
                Some(values) => adapter.with_magnitudes(ops::matrix(values.clone(), 1, device)),
                None => adapter,
            }
        };
        Ok(fitted(adapter, config)?.into_iter().map(place).collect())
    }

    /// Where it adds.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Bytes of its matrices on the device, and of magnitudes and lengths.
    pub fn n_bytes(&self) -> u64 {
        let matrices = [&self.a, &self.b].map(|matrix| matrix.dims().iter().product::<usize>());
        let vectors =
            [&self.magnitudes, &self.lengths].map(|vector| vector.as_ref().map_or(0, |vector| vector.dims()[0]));
        4 * matrices.iter().chain(&vectors).sum::<usize>() as u64
    }

    /// How long the rows of `w` are with what the adapter adds to them, `[n]`: constants, without a gradient.
    pub(crate) fn row_lengths(&self, w: &Weight) -> Tensor<1> {
        let [a, b] = [&self.a, &self.b].map(|matrix| matrix.clone().without_autodiff());
        ops::row_lengths(w, self.site.columns.clone(), [&a, &b], self.scale)
    }

    /// The adapter in its place, over `w`.
    pub(crate) fn over(self, w: &Weight) -> Self {
        let lengths = self.magnitudes.is_some().then(|| self.row_lengths(w));
        Self { lengths, ..self }
    }

    /// `y` with what the adapter adds for `x`.
    pub(crate) fn add(&self, y: Tensor<2>, x: &Tensor<2>) -> Tensor<2> {
        let dropped = self.dropout.map(|Dropout { rate, seed }| ops::dropout(x, rate, seed));
        let x = dropped.as_ref().unwrap_or(x);
        let first_column = self.site.columns.start;
        let y = ops::low_rank(y, x, [&self.a, &self.b], self.scale, first_column, self.kernels);
        match (&self.magnitudes, &self.lengths) {
            (Some(magnitudes), Some(lengths)) => ops::scale_columns(y, magnitudes, lengths, first_column),
            _ => y,
        }
    }
}

/// Every module of a published adapter with its place in a model.
///
/// # Errors
/// [`ModelError::Adapter`] with every module that the model does not have, or has in another shape.
pub(crate) fn fitted<'a>(adapter: &'a LoraAdapter, config: &Config) -> Result<Vec<(Site, &'a LoraModule)>, ModelError> {
    let sites = Site::all(config);
    let (fitting, problems): (Vec<_>, Vec<_>) =
        adapter.modules.iter().map(|module| fit(module, &sites)).partition(Result::is_ok);
    let problems: Vec<String> = problems.into_iter().filter_map(Result::err).collect();
    if problems.is_empty() {
        Ok(fitting.into_iter().flatten().collect())
    } else {
        Err(ModelError::Adapter { problems })
    }
}

/// The site of a published module, or what does not fit.
fn fit<'a>(module: &'a LoraModule, sites: &[Site]) -> Result<(Site, &'a LoraModule), String> {
    let path = &module.path;
    let site = sites.iter().find(|site| site.path == *path).ok_or_else(|| format!("{path}: no such module"))?;
    let (found, expected) = ([module.d_out, module.d_in], [site.columns.len(), site.n_in]);
    if found != expected {
        return Err(format!("{path}: made for a matrix of {found:?}, the model's is {expected:?}"));
    }
    Ok((site.clone(), module))
}
