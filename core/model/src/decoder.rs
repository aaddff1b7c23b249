//! The decoder: one forward pass for every family.
//!
//! A layer is attention, then feed-forward. What stands between two parts (a residual sum and one
//! or two norms) belongs to the part before it as its [`Exit`].

mod build;
mod parameters;
mod training;

pub use self::{
    parameters::{Parameter, TensorRows, parameter_tensors},
    training::Trunk,
};

use burn::tensor::{Device, Int, Tensor};
use samara_formats::Checkpoint;
use samara_ops::{
    self as ops, Activation, Adjustments, AttentionSpec, Choice, Faults, KvFormats, Norm, QkSpec, Weight,
    device::OpenDevice, family::Kernels,
};

use crate::{
    Config, KvCache, LoadProgress, ModelError, ScaledAdapter,
    adapter::{Adapter, Product},
    cache::RopeTables,
    config::{Attention, Moe},
    exit::{Exit, Stream},
    load::Matrices,
    memory,
};

/// A model on a device. A clone shares the weights.
#[derive(Clone)]
pub struct Decoder {
    config: Config,
    device: Device,
    faults: Faults,
    max_binding_bytes: u64,
    kernels: Kernels,
    embed: Weight,
    /// The norm before the first layer, where one stands there.
    entry: Option<Norm>,
    layers: Vec<Layer>,
    /// `None` where the embedding table is the head.
    head: Option<Weight>,
}

/// Which rows of logits a forward pass gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The last token's.
    Last,
    /// Every token's.
    All,
}

#[derive(Clone)]
struct Layer {
    qkv: Weight,
    qk_norm: Tensor<1>,
    qk: QkSpec,
    span: Attention,
    attention: AttentionSpec,
    o: Weight,
    after_attention: Exit<Norm>,
    feed_forward: FeedForward,
    after_feed_forward: Exit<Norm>,
    adapters: Vec<Adapter>,
}

#[derive(Clone)]
enum FeedForward {
    Dense { gate_up: Weight, down: Weight, activation: Activation },
    Experts { router: Weight, gate_up: Weight, down: Weight, activation: Activation, moe: Moe },
}

impl Decoder {
    /// Loads a checkpoint onto a device. `progress` is called after each block of rows.
    ///
    /// # Errors
    /// What is wrong with the configuration or which tensor is missing, misshapen or unknown;
    /// nothing is read before all shapes are proven. Or what went wrong on the device.
    pub fn load(
        checkpoint: &Checkpoint,
        open: &OpenDevice,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self, ModelError> {
        let config = Config::from_checkpoint(checkpoint)?;
        build::decoder(config, checkpoint, open, progress, Matrices::AsStored)
    }

    /// Loads a checkpoint with every matrix as a tensor of `f32` that can be trained, whatever the file holds.
    ///
    /// # Errors
    /// As [`Decoder::load`].
    pub fn load_dense(
        checkpoint: &Checkpoint,
        open: &OpenDevice,
        progress: &mut dyn FnMut(LoadProgress<'_>),
    ) -> Result<Self, ModelError> {
        let config = Config::from_checkpoint(checkpoint)?;
        build::decoder(config, checkpoint, open, progress, Matrices::Dense)
    }

    /// The same model with these adapters, in the place of those it has. Caches that it filled before mean nothing to it.
    pub fn with_adapters(&self, adapters: impl IntoIterator<Item = Adapter>) -> Self {
        let mut decoder = self.clone();
        decoder.layers.iter_mut().for_each(|layer| layer.adapters.clear());
        for adapter in adapters {
            if let Some(layer) = decoder.layers.get_mut(adapter.site().layer) {
                let placed = layer.matrix(adapter.site().product).map(|matrix| adapter.over(matrix));
                layer.adapters.extend(placed);
            }
        }
        decoder
    }

    /// The same model with these published adapters, in the place of those it has. They act in this order, which matters
    /// where a module has a DoRA and another.
    ///
    /// # Errors
    /// The first adapter that was made for another model, with all that does not fit; or what went wrong on the device.
    pub fn with_scaled(&self, adapters: &[ScaledAdapter]) -> Result<Self, ModelError> {
        let place = |scaled: &ScaledAdapter| {
            scaled.check(&self.config)?;
            Adapter::from_peft(&scaled.adapter, &self.config, scaled.strength, &self.device, self.kernels)
        };
        let doing = "bringing LoRA adapters to the device";
        let placed = self.faults.during(doing, || {
            let placed = adapters.iter().map(place).collect::<Result<Vec<_>, _>>()?;
            Ok::<_, ModelError>(self.with_adapters(placed.into_iter().flatten()))
        })?;
        self.faults.check()?;
        Ok(placed)
    }

    /// How long the rows of an adapter's matrix are with what it adds to them, `[n]`: what the magnitudes of a DoRA begin
    /// as. None where this decoder has no such matrix.
    pub fn row_lengths(&self, adapter: &Adapter) -> Option<Tensor<1>> {
        let site = adapter.site();
        Some(adapter.row_lengths(self.layers.get(site.layer)?.matrix(site.product)?))
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The device that holds the weights.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// What has gone wrong on that device: results that were waited for without it may mean nothing.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Bytes of all weights on the device.
    pub fn n_bytes(&self) -> u64 {
        let layers = self.layers.iter().map(Layer::n_bytes).sum::<u64>();
        let entry = self.entry.as_ref().map_or(0, Norm::n_bytes);
        self.embed.n_bytes() + self.head.as_ref().map_or(0, Weight::n_bytes) + entry + layers
    }

    /// Bytes of all adapters on the device.
    pub fn adapters_bytes(&self) -> u64 {
        self.layers.iter().flat_map(|layer| &layer.adapters).map(Adapter::n_bytes).sum()
    }

    /// The most tokens that a cache on this device can hold: one layer's keys are one binding.
    pub fn max_cache_tokens(&self, kv: KvFormats) -> usize {
        memory::max_cache_tokens(&self.config, kv, self.max_binding_bytes)
    }

    /// An empty cache for `capacity_tokens`, to be filled in chunks of at most `max_chunk_tokens`.
    pub fn new_cache(&self, capacity_tokens: usize, max_chunk_tokens: usize, kv: impl Into<KvFormats>) -> KvCache {
        let kv = kv.into();
        let n_bytes = memory::kv_bytes(&self.config, capacity_tokens, max_chunk_tokens, kv);
        let doing = format!("making room for {capacity_tokens} tokens ({})", memory::readable(n_bytes));
        let new = || KvCache::new(&self.config, capacity_tokens, max_chunk_tokens, kv, &self.device);
        self.faults.during(doing, new)
    }

    /// Appends `T` tokens to the cache and gives their logits, `[1, V]` or `[T, V]`.
    ///
    /// Asks for `1 <= T <= cache.max_chunk()` tokens that pass [`Config::check_tokens`] and fit
    /// the cache's capacity; callers prove that where tokens come in.
    pub fn forward(&self, tokens: &[u32], cache: &mut KvCache, want: Want) -> Tensor<2> {
        cache.begin(tokens, 0.0);
        let logits = self.logits(cache, want);
        cache.end(tokens.len());
        logits
    }

    /// Appends tokens to the cache as [`Decoder::forward`] does, without computing logits: for
    /// all chunks of a prompt but its last.
    pub fn append(&self, tokens: &[u32], cache: &mut KvCache) {
        cache.begin(tokens, 0.0);
        self.hidden(cache);
        cache.end(tokens.len());
    }

    /// Appends tokens to the cache as [`Decoder::forward`] does and chooses the one after them; for
    /// [`samara_ops::Picking`].
    ///
    /// Single tokens that are chosen alike, one after another, become a recorded list of launches.
    pub fn pick(&self, tokens: &[u32], cache: &mut KvCache, choice: &Choice) -> Tensor<1, Int> {
        let adjustments = Adjustments::upload(&choice.adjustments, &self.device);
        cache.begin(tokens, choice.uniform());
        let picked = match tokens {
            [_] if adjustments.is_none() => self.step(tokens, cache, choice),
            _ => self.picked(cache, adjustments.as_ref(), choice),
        };
        cache.end(tokens.len());
        picked
    }

    /// Appends the token that the last [`Decoder::pick`] or this has just chosen, before anybody knows it, and chooses the
    /// one after it; likewise for [`samara_ops::Picking`]. Nothing else may have used the cache since.
    ///
    /// `None`, and nothing was done, where no step that chooses like this has been recorded.
    pub fn pick_next(&self, cache: &mut KvCache, choice: &Choice) -> Option<Tensor<1, Int>> {
        let position = cache.len();
        let recording = cache.replay.find(choice)?;
        cache.step.follow(position, choice.uniform());
        let picked = recording.replay();
        cache.end(1);
        Some(picked)
    }

    fn step(&self, tokens: &[u32], cache: &mut KvCache, choice: &Choice) -> Tensor<1, Int> {
        if cache.replay.is_due(choice) {
            let recording = ops::record(&self.device, || self.picked(cache, None, choice));
            cache.replay.keep(choice, recording);
            // The rehearsal has left the token that it chose in the place of this one.
            cache.begin(tokens, choice.uniform());
        }
        cache.replay.note(choice);
        match cache.replay.find(choice) {
            Some(recording) => recording.replay(),
            None => self.picked(cache, None, choice),
        }
    }

    fn picked(&self, cache: &mut KvCache, adjustments: Option<&Adjustments>, choice: &Choice) -> Tensor<1, Int> {
        let logits = self.logits(cache, Want::Last);
        ops::pick(&logits, adjustments, &mut cache.step, choice)
    }

    fn logits(&self, cache: &mut KvCache, want: Want) -> Tensor<2> {
        let hidden = self.hidden(cache);
        let rows = match want {
            Want::Last => ops::last_row(&hidden),
            Want::All => hidden,
        };
        ops::linear(&rows, self.head.as_ref().unwrap_or(&self.embed))
    }

    /// The stream after the final norm, `[T, D]`, of the tokens that the cache has been told of.
    fn hidden(&self, cache: &mut KvCache) -> Tensor<2> {
        let mut stream = Stream::enter(&cache.step, &self.embed, self.entry.as_ref(), self.config.embed_scale);
        let KvCache { layers, ropes, step, .. } = cache;
        for (layer, keys_values) in self.layers.iter().zip(layers) {
            stream = layer.step(stream, ropes, step, keys_values);
        }
        stream.input
    }
}

impl Layer {
    /// The tokens of a step, over the keys and values that the cache holds and gets.
    fn step(&self, stream: Stream, ropes: &RopeTables, step: &ops::Step, cache: &mut ops::LayerCache) -> Stream {
        let attend = |qkv: &Tensor<2>| {
            let q = ops::qk_norm_rope(qkv, &self.qk_norm, ropes.of(self.span), step, cache, &self.qk);
            ops::attention(&q, cache, step, &self.attention)
        };
        self.forward(stream, attend, ops::gated_linear)
    }

    /// Both parts of the layer. `attend` mixes tokens, from the fused projection to the heads' results; `gate` is the first
    /// product of a dense feed-forward part that has no adapters there, with its activation.
    fn forward(
        &self,
        stream: Stream,
        attend: impl FnOnce(&Tensor<2>) -> Tensor<2>,
        gate: impl FnOnce(&Tensor<2>, &Weight, Activation) -> Tensor<2>,
    ) -> Stream {
        let mixed = attend(&self.product(&stream.input, &self.qkv, Product::Qkv));
        let mixed = self.product(&mixed, &self.o, Product::O);
        let stream = self.after_attention.join(&stream.residual, &mixed);
        let changed = self.feed(&stream.input, gate);
        self.after_feed_forward.join(&stream.residual, &changed)
    }

    /// A product with what the adapters add to it.
    fn product(&self, x: &Tensor<2>, w: &Weight, product: Product) -> Tensor<2> {
        self.adapters_on(product).fold(ops::linear(x, w), |y, adapter| adapter.add(y, x))
    }

    fn adapters_on(&self, product: Product) -> impl Iterator<Item = &Adapter> {
        self.adapters.iter().filter(move |adapter| adapter.site().product == product)
    }

    /// The matrix of a product; experts are many.
    fn matrix(&self, product: Product) -> Option<&Weight> {
        match (product, &self.feed_forward) {
            (Product::Qkv, _) => Some(&self.qkv),
            (Product::O, _) => Some(&self.o),
            (Product::GateUp, FeedForward::Dense { gate_up, .. }) => Some(gate_up),
            (Product::Down, FeedForward::Dense { down, .. }) => Some(down),
            (Product::GateUp | Product::Down, FeedForward::Experts { .. }) => None,
        }
    }

    fn feed(&self, x: &Tensor<2>, gate: impl FnOnce(&Tensor<2>, &Weight, Activation) -> Tensor<2>) -> Tensor<2> {
        match &self.feed_forward {
            FeedForward::Dense { gate_up, down, activation } => {
                let gated = match self.adapters_on(Product::GateUp).next() {
                    None => gate(x, gate_up, *activation),
                    Some(_) => ops::glu(&self.product(x, gate_up, Product::GateUp), *activation),
                };
                self.product(&gated, down, Product::Down)
            }
            FeedForward::Experts { router, gate_up, down, activation, moe } => {
                let scores = ops::linear(x, router);
                let routes = ops::moe_route(&scores, moe.top_k, moe.renormalise);
                let wide = ops::moe_linear(x, gate_up, &routes, moe.n_experts);
                let narrow = ops::glu(&wide, *activation);
                let picked = ops::moe_linear(&narrow, down, &routes, moe.n_experts);
                ops::moe_combine(&picked, &routes)
            }
        }
    }

    fn n_bytes(&self) -> u64 {
        let norms = self.after_attention.norms().chain(self.after_feed_forward.norms());
        let vectors = norms.map(Norm::n_bytes).sum::<u64>() + 4 * self.qk_norm.dims()[0] as u64;
        self.qkv.n_bytes() + self.o.n_bytes() + self.feed_forward.n_bytes() + vectors
    }
}

impl FeedForward {
    fn n_bytes(&self) -> u64 {
        match self {
            Self::Dense { gate_up, down, .. } => gate_up.n_bytes() + down.n_bytes(),
            Self::Experts { router, gate_up, down, .. } => router.n_bytes() + gate_up.n_bytes() + down.n_bytes(),
        }
    }
}
