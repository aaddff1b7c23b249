//! From a plan to a decoder: reads weights in order and sets each part's exit.

use samara_formats::Checkpoint;
use samara_ops::{self as ops, AttentionSpec, KvFormats, Norm, QkSpec, Weight, device::OpenDevice, family::Kernels};

use super::{Decoder, FeedForward, Layer};
use crate::{
    Config, KvCache, LoadProgress, ModelError,
    config::Attention,
    exit::{Exit, Stream},
    load::{Loader, Matrices, planned_bytes},
    memory::readable,
    names::{self, FeedForwardPlan, LayerPlan, Plan, VectorPlan},
};

/// Enough tokens for the kernels of a prompt.
const WARM_UP_TOKENS: usize = 8;

/// Proves every shape, then loads.
pub(super) fn decoder(
    config: Config,
    checkpoint: &Checkpoint,
    open: &OpenDevice,
    progress: &mut dyn FnMut(LoadProgress<'_>),
    matrices: Matrices,
) -> Result<Decoder, ModelError> {
    let plan = Plan::new(&config, checkpoint);
    names::check(&plan, &config, checkpoint)?;
    let total_bytes = planned_bytes(&plan, checkpoint);
    let loader = Loader { checkpoint, open, progress, done_bytes: 0, total_bytes, matrices };
    let doing = format!("loading {} of weights", readable(total_bytes));
    let decoder = open.faults.during(doing, || Builder { config: &config, loader, plan: &plan }.decoder())?;
    open.faults.check()?;
    Ok(decoder)
}

struct Builder<'a> {
    config: &'a Config,
    loader: Loader<'a>,
    plan: &'a Plan,
}

impl Builder<'_> {
    fn decoder(mut self) -> Result<Decoder, ModelError> {
        let plan = self.plan;
        let embed = self.loader.matrix(&plan.embed)?;
        let entry = plan.entry.as_ref().map(|norm| self.norm(norm)).transpose()?;
        let mut layers = Vec::with_capacity(plan.layers.len());
        for (idx, layer) in plan.layers.iter().enumerate() {
            let layer = self.layer(idx, layer)?;
            if idx == 0 && self.loader.matrices == Matrices::AsStored {
                self.warm_up(&embed, entry.as_ref(), &layer);
            }
            layers.push(layer);
        }
        let head = plan.head.as_ref().map(|head| self.loader.matrix(head)).transpose()?;
        let OpenDevice { device, faults, max_binding_bytes, kernels, .. } = self.loader.open.clone();
        let config = self.config.clone();
        Ok(Decoder { config, device, faults, max_binding_bytes, kernels, embed, entry, layers, head })
    }

    /// Launches what a layer launches, for a chunk and for one token, so that the device compiles those pipelines while
    /// this thread goes on unpacking weights. The CPU compiles nothing.
    fn warm_up(&self, embed: &Weight, entry: Option<&Norm>, layer: &Layer) {
        if self.loader.open.adapter.is_none() {
            return;
        }
        let (capacity, kv) = (2 * WARM_UP_TOKENS, KvFormats::default());
        let mut cache = KvCache::new(self.config, capacity, WARM_UP_TOKENS, kv, &self.loader.open.device);
        for tokens in [&[0; WARM_UP_TOKENS][..], &[0]] {
            cache.begin(tokens, 0.0);
            let stream = Stream::enter(&cache.step, embed, entry, self.config.embed_scale);
            if let Some(keys_values) = cache.layers.first_mut() {
                layer.step(stream, &cache.ropes, &cache.step, keys_values);
            }
            cache.end(tokens.len());
        }
    }

    fn layer(&mut self, idx: usize, plan: &LayerPlan) -> Result<Layer, ModelError> {
        // A device that is full or lost should not be filled to the end.
        self.loader.open.faults.check()?;
        let config = self.config;
        let span = config.attention.get(idx).copied().unwrap_or(Attention::Full);
        Ok(Layer {
            qkv: self.loader.matrix(&plan.qkv)?,
            qk_norm: self.vector(&plan.qk_norm)?,
            qk: qk_spec(config),
            span,
            attention: attention_spec(config, span, self.loader.open.kernels),
            o: self.loader.matrix(&plan.o)?,
            after_attention: self.exit(&plan.after_attention)?,
            feed_forward: self.feed_forward(&plan.feed_forward)?,
            after_feed_forward: self.exit(&plan.after_feed_forward)?,
            adapters: Vec::new(),
        })
    }

    fn exit(&mut self, plan: &Exit<VectorPlan>) -> Result<Exit<Norm>, ModelError> {
        plan.try_map(|norm| self.norm(norm))
    }

    fn feed_forward(&mut self, plan: &FeedForwardPlan) -> Result<FeedForward, ModelError> {
        let activation = self.config.activation;
        let router = plan.router.as_ref().map(|router| self.loader.matrix(router)).transpose()?;
        let gate_up = self.loader.matrix(&plan.gate_up)?;
        let down = self.loader.matrix(&plan.down)?;
        Ok(match (router, self.config.moe) {
            (Some(router), Some(moe)) => FeedForward::Experts { router, gate_up, down, activation, moe },
            _ => FeedForward::Dense { gate_up, down, activation },
        })
    }

    fn norm(&mut self, plan: &VectorPlan) -> Result<Norm, ModelError> {
        let weight = self.vector(plan)?;
        Ok(Norm { kind: self.config.norm, weight, eps: self.config.norm_eps })
    }

    fn vector(&mut self, plan: &VectorPlan) -> Result<burn::tensor::Tensor<1>, ModelError> {
        Ok(ops::vector(&self.loader.vector(plan)?, &self.loader.open.device))
    }
}

fn qk_spec(config: &Config) -> QkSpec {
    QkSpec { heads: config.heads(), norm: config.qk_norm, eps: config.norm_eps, clip: config.clip_qkv }
}

fn attention_spec(config: &Config, span: Attention, kernels: Kernels) -> AttentionSpec {
    let window = match span {
        Attention::Full => None,
        Attention::Sliding(window) => Some(window),
    };
    AttentionSpec { heads: config.heads(), window, scale: config.attention_scale, kernels }
}
