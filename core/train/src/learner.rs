//! What is trained of a model: adapters over a frozen one, or all of it. Both are a list of matrices.

use burn::tensor::{DType, Device, Tensor};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use samara_formats::Checkpoint;
use samara_formats::peft::{AdapterConfig, LoraAdapter, LoraModule};
use samara_model::{Adapter, Config, Decoder, Site, TensorRows, parameter_tensors};
use samara_ops::{family::Kernels, matrix};

use crate::TrainError;

/// A model and the matrices of it that are trained.
pub struct Learner {
    base: Decoder,
    kind: Kind,
    /// `[N, D]` each, on the device, without a gradient.
    values: Vec<Tensor<2>>,
}

/// What the matrices are.
enum Kind {
    /// For each site a, then b, then for a DoRA the magnitudes.
    Adapters { sites: Vec<Site>, config: AdapterConfig, kernels: Kernels },
    /// The parameters of the decoder, and which layer each belongs to.
    Full { layers: Vec<Option<usize>>, tensors: Vec<Vec<TensorRows>> },
}

impl Learner {
    /// New adapters for `sites`: a uniform in ± 1 / sqrt(D), as Kaiming's with a gain of sqrt(5) is, b zero (Hu et al. 2021),
    /// and the magnitudes of a DoRA how long the model's own rows are (Liu et al. 2024). So they change nothing yet.
    pub fn new_adapters(base: Decoder, sites: Vec<Site>, config: AdapterConfig, seed: u64, kernels: Kernels) -> Self {
        let device = base.device().clone();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let matrices = |site: &Site| {
            let bound = 1.0 / (site.n_in as f32).sqrt();
            let a = (0..config.rank * site.n_in).map(|_| bound * symmetric(&mut random)).collect();
            let b = vec![0.0; site.columns.len() * config.rank];
            let pair = [matrix(a, config.rank, &device), matrix(b, site.columns.len(), &device)];
            let adapter = Adapter::new(site.clone(), pair.clone(), config.scale(), kernels);
            let unit = || Tensor::ones([site.columns.len()], (&device, DType::F32));
            let lengths = config.use_dora.then(|| base.row_lengths(&adapter).unwrap_or_else(unit));
            pair.into_iter().chain(lengths.map(|lengths| lengths.reshape([1, -1])))
        };
        let values = sites.iter().flat_map(matrices).collect();
        Self { base, kind: Kind::Adapters { sites, config, kernels }, values }
    }

    /// The adapters of a published one, to be trained on.
    ///
    /// # Errors
    /// [`TrainError::Model`] naming every module that does not fit.
    pub fn from_adapter(base: Decoder, adapter: &LoraAdapter, kernels: Kernels) -> Result<Self, TrainError> {
        let device = base.device().clone();
        // This checks every module against the model.
        let placed = Adapter::from_peft(adapter, base.config(), 1.0, &device, kernels)?;
        let sites = placed.iter().map(|adapter| adapter.site().clone()).collect();
        let matrices = |module: &LoraModule| {
            let rank = module.a.len() / module.d_in.max(1);
            let pair = [matrix(module.a.clone(), rank, &device), matrix(module.b.clone(), module.d_out, &device)];
            pair.into_iter().chain(module.magnitude.clone().map(|values| matrix(values, 1, &device)))
        };
        let values = adapter.modules.iter().flat_map(matrices).collect();
        Ok(Self { base, kind: Kind::Adapters { sites, config: adapter.config.clone(), kernels }, values })
    }

    /// All parameters of a model that was loaded densely from `checkpoint`.
    ///
    /// # Errors
    /// What the checkpoint's configuration lacks.
    pub fn full(base: Decoder, checkpoint: &Checkpoint) -> Result<Self, TrainError> {
        let tensors = parameter_tensors(checkpoint)?;
        let (layers, values) =
            base.parameters().into_iter().map(|parameter| (parameter.layer, parameter.value)).unzip();
        Ok(Self { base, kind: Kind::Full { layers, tensors }, values })
    }

    /// The model's configuration.
    pub fn config(&self) -> &Config {
        self.base.config()
    }

    /// The device that holds everything.
    pub fn device(&self) -> &Device {
        self.base.device()
    }

    /// The trained matrices.
    pub fn values(&self) -> &[Tensor<2>] {
        &self.values
    }

    /// Puts others in their place, in the same order and shapes.
    pub fn replace(&mut self, values: Vec<Tensor<2>>) {
        debug_assert_eq!(values.len(), self.values.len());
        self.values = values;
    }

    /// The model with `values` for the trained matrices. Dropout falls by `seed`; without one nothing is dropped.
    pub fn with(&self, values: &[Tensor<2>], seed: Option<u64>) -> Decoder {
        match &self.kind {
            Kind::Full { .. } => self.base.with_parameters(values.to_vec()),
            Kind::Adapters { sites, config, kernels } => {
                let adapter = |(index, (site, values)): (usize, (&Site, &[Tensor<2>]))| {
                    let [a, b, magnitudes @ ..] = values else { return None };
                    let adapter = Adapter::new(site.clone(), [a.clone(), b.clone()], config.scale(), *kernels);
                    let adapter = magnitudes.iter().cloned().fold(adapter, Adapter::with_magnitudes);
                    Some(match seed {
                        Some(seed) => adapter.with_dropout(config.dropout, seed_of(seed, index)),
                        None => adapter,
                    })
                };
                let of_sites = values.chunks(parts(config).len());
                self.base.with_adapters(sites.iter().zip(of_sites).enumerate().filter_map(adapter))
            }
        }
    }

    /// The model as it is now trained.
    pub fn model(&self) -> Decoder {
        self.with(&self.values, None)
    }

    /// Which layer a trained matrix belongs to; none for embeddings, the last norm and the head.
    pub fn layer_of(&self, index: usize) -> Option<usize> {
        match &self.kind {
            Kind::Adapters { sites, config, .. } => sites.get(index / parts(config).len()).map(|site| site.layer),
            Kind::Full { layers, .. } => layers.get(index).copied().flatten(),
        }
    }

    /// What to call a trained matrix.
    pub fn name_of(&self, index: usize) -> String {
        match &self.kind {
            Kind::Adapters { sites, config, .. } => {
                let parts = parts(config);
                let path = sites.get(index / parts.len()).map_or("", |site| &site.path);
                let part = parts.get(index % parts.len()).copied().unwrap_or_default();
                format!("{path}.{part}")
            }
            Kind::Full { tensors, .. } => {
                let names = tensors.get(index).into_iter().flatten().map(|rows| rows.tensor.as_str());
                names.collect::<Vec<_>>().join(" + ")
            }
        }
    }

    /// The checkpoint's tensors that each trained matrix is made of; none for adapters.
    pub fn tensors(&self) -> &[Vec<TensorRows>] {
        match &self.kind {
            Kind::Full { tensors, .. } => tensors,
            Kind::Adapters { .. } => &[],
        }
    }

    /// Which matrix is the head where the head is trained: the last one, or the embedding table where that is the head.
    pub(crate) fn head(&self) -> Option<usize> {
        match &self.kind {
            Kind::Adapters { .. } => None,
            Kind::Full { .. } if self.config().tied_head => Some(0),
            Kind::Full { .. } => self.values.len().checked_sub(1),
        }
    }

    /// The adapters as others read them; none where all of the model is trained.
    ///
    /// # Errors
    /// The device could not give them back.
    pub async fn to_adapter(&self) -> Result<Option<LoraAdapter>, TrainError> {
        let Kind::Adapters { sites, config, .. } = &self.kind else { return Ok(None) };
        let mut modules = Vec::with_capacity(sites.len());
        for (site, values) in sites.iter().zip(self.values.chunks(parts(config).len())) {
            let [a, b, magnitudes @ ..] = values else { continue };
            modules.push(LoraModule {
                path: site.path.clone(),
                d_in: site.n_in,
                d_out: site.columns.len(),
                a: samara_ops::read_f32(a.clone()).await?,
                b: samara_ops::read_f32(b.clone()).await?,
                magnitude: match magnitudes.first() {
                    Some(values) => Some(samara_ops::read_f32(values.clone()).await?),
                    None => None,
                },
            });
        }
        modules.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Some(LoraAdapter { config: config.clone(), modules }))
    }
}

/// What the matrices of a site are called, in order.
fn parts(config: &AdapterConfig) -> &'static [&'static str] {
    if config.use_dora { &["lora_A", "lora_B", "lora_magnitude_vector"] } else { &["lora_A", "lora_B"] }
}

/// Uniform in -1 to 1.
fn symmetric(random: &mut ChaCha8Rng) -> f32 {
    (random.next_u32() >> 8) as f32 / (1u32 << 23) as f32 - 1.0
}

/// A seed for each adapter from that of a pass.
fn seed_of(seed: u64, index: usize) -> u32 {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(index as u64);
    random.next_u32()
}
