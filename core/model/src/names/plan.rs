//! The plan of a whole decoder, made from its configuration and the names a file has.

use samara_formats::{Checkpoint, Metadata};
use samara_ops::{NormKind, QkNorm};

use super::{MatrixPlan, Names, Piece, RowOrder, VectorPlan, experts::ExpertFiles};
use crate::{
    adapter::{Product, Site},
    config::{Config, Family, Moe, NormPlacement},
    exit::Exit,
};

/// Every weight of a decoder and where it comes from.
#[derive(Debug)]
pub(crate) struct Plan {
    pub embed: MatrixPlan,
    /// The norm before the first layer, where one stands there.
    pub entry: Option<VectorPlan>,
    pub layers: Vec<LayerPlan>,
    /// `None` where the embedding table is the head.
    pub head: Option<MatrixPlan>,
}

#[derive(Debug)]
pub(crate) struct LayerPlan {
    /// Queries, keys and values, one after another.
    pub qkv: MatrixPlan,
    pub o: MatrixPlan,
    /// Weights of the queries' norm, then of the keys'; a single one where there is no such norm.
    pub qk_norm: VectorPlan,
    pub after_attention: Exit<VectorPlan>,
    pub feed_forward: FeedForwardPlan,
    pub after_feed_forward: Exit<VectorPlan>,
}

#[derive(Debug)]
pub(crate) struct FeedForwardPlan {
    /// `[E, D]`, where there are experts.
    pub router: Option<MatrixPlan>,
    /// Gate rows, then up rows; expert after expert where there are experts.
    pub gate_up: MatrixPlan,
    pub down: MatrixPlan,
}

impl Plan {
    /// The plan for `config` over the names that `checkpoint` uses.
    pub fn new(config: &Config, checkpoint: &Checkpoint) -> Self {
        let has = |name: &str| checkpoint.tensor(name).is_some();
        match checkpoint.metadata() {
            Metadata::Gguf(_) => Self::gguf(config, &has),
            Metadata::HuggingFace(_) => Self::huggingface(config, &has),
        }
    }

    pub fn gguf(config: &Config, has: &dyn Fn(&str) -> bool) -> Self {
        let interleaved = matches!(config.family, Family::Llama | Family::Olmo);
        let order = match interleaved {
            true => RowOrder::Interleaved { head_dim: config.head_dim },
            false => RowOrder::AsStored,
        };
        Planner { config, names: Names::gguf(), qk_order: order, norm_add: 0.0, has }.plan()
    }

    pub fn huggingface(config: &Config, has: &dyn Fn(&str) -> bool) -> Self {
        let roots = [
            ("model.", "lm_head.weight"),
            ("language_model.model.", "language_model.lm_head.weight"),
            ("model.language_model.", "lm_head.weight"),
        ];
        let named = |root: &str| has(&format!("{root}embed_tokens.weight"));
        let found = roots.iter().find(|(root, _)| named(root)).unwrap_or(&roots[0]);
        let names = Names::huggingface(found.0, found.1, config.placement);
        // Gemma's safetensors hold norm weights as their distance from 1.
        let norm_add = if config.family == Family::Gemma3 { 1.0 } else { 0.0 };
        Planner { config, names, qk_order: RowOrder::AsStored, norm_add, has }.plan()
    }

    /// Every matrix of the plan.
    pub fn matrices(&self) -> impl Iterator<Item = &MatrixPlan> {
        let layers = self.layers.iter().flat_map(LayerPlan::matrices);
        std::iter::once(&self.embed).chain(layers).chain(&self.head)
    }

    /// The tensor of one module.
    pub fn piece(&self, site: &Site) -> Option<&Piece> {
        let layer = self.layers.get(site.layer)?;
        let matrix = match site.product {
            Product::Qkv => &layer.qkv,
            Product::O => &layer.o,
            Product::GateUp => &layer.feed_forward.gate_up,
            Product::Down => &layer.feed_forward.down,
        };
        let mut end = 0;
        matrix.pieces.iter().find(|piece| {
            let start = end;
            end += piece.rows.len();
            site.columns == (start..end)
        })
    }

    /// Every vector of the plan.
    pub fn vectors(&self) -> impl Iterator<Item = &VectorPlan> {
        self.entry.iter().chain(self.layers.iter().flat_map(LayerPlan::vectors))
    }
}

impl LayerPlan {
    fn matrices(&self) -> impl Iterator<Item = &MatrixPlan> {
        let mlp = &self.feed_forward;
        [&self.qkv, &self.o].into_iter().chain(&mlp.router).chain([&mlp.gate_up, &mlp.down])
    }

    fn vectors(&self) -> impl Iterator<Item = &VectorPlan> {
        let exits = self.after_attention.norms().chain(self.after_feed_forward.norms());
        std::iter::once(&self.qk_norm).chain(exits)
    }
}

/// What the parts of a plan are made from.
struct Planner<'a> {
    config: &'a Config,
    names: Names,
    /// How query and key rows lie in the file.
    qk_order: RowOrder,
    /// Added to stored norm weights.
    norm_add: f32,
    has: &'a dyn Fn(&str) -> bool,
}

impl Planner<'_> {
    fn plan(self) -> Plan {
        let config = self.config;
        let table = |name: &str| MatrixPlan {
            n_in: config.d_model,
            pieces: vec![Piece::whole(name.to_owned(), config.vocab_size, config.d_model)],
        };
        Plan {
            embed: table(&self.names.embed),
            head: (!config.tied_head).then(|| table(&self.names.head)),
            entry: match config.placement {
                NormPlacement::Pre | NormPlacement::Sandwich => {
                    Some(self.layer_norm(0, self.names.norm_before_attention))
                }
                NormPlacement::Post => None,
            },
            layers: (0..config.n_layers).map(|layer| self.layer(layer)).collect(),
        }
    }

    fn layer(&self, layer: usize) -> LayerPlan {
        let (config, names) = (self.config, &self.names);
        LayerPlan {
            qkv: self.qkv(layer),
            o: self.whole(layer, names.o, config.d_model, config.q_width()),
            qk_norm: self.qk_norm(layer),
            after_attention: self.after_attention(layer),
            after_feed_forward: self.after_feed_forward(layer),
            feed_forward: match config.moe {
                None => self.dense(layer),
                Some(moe) => self.experts(layer, moe),
            },
        }
    }

    fn after_attention(&self, layer: usize) -> Exit<VectorPlan> {
        let after = || self.layer_norm(layer, self.names.norm_after_attention);
        let next = || self.layer_norm(layer, self.names.norm_before_mlp);
        match self.config.placement {
            NormPlacement::Pre => Exit::Pre { next: next() },
            NormPlacement::Post => Exit::Post { after: after() },
            NormPlacement::Sandwich => Exit::Sandwich { after: after(), next: next() },
        }
    }

    /// The exit to the next layer, from the last layer to the head.
    fn after_feed_forward(&self, layer: usize) -> Exit<VectorPlan> {
        let is_last = layer + 1 == self.config.n_layers;
        let after = || self.layer_norm(layer, self.names.norm_after_mlp);
        let next = || match is_last {
            true => self.norm(self.names.final_norm.clone(), self.config.d_model),
            false => self.layer_norm(layer + 1, self.names.norm_before_attention),
        };
        match self.config.placement {
            NormPlacement::Pre => Exit::Pre { next: next() },
            NormPlacement::Post if !is_last => Exit::Post { after: after() },
            _ => Exit::Sandwich { after: after(), next: next() },
        }
    }

    fn layer_norm(&self, layer: usize, name: &str) -> VectorPlan {
        self.norm(self.names.of_layer(layer, name), self.config.d_model)
    }

    fn qkv(&self, layer: usize) -> MatrixPlan {
        let config = self.config;
        let (q, kv) = (config.q_width(), config.kv_width());
        let part = |name: &str, n_out: usize, order: RowOrder| Piece {
            order,
            ..Piece::whole(self.names.of_layer(layer, name), n_out, config.d_model)
        };
        let pieces = vec![
            part(self.names.q, q, self.qk_order),
            part(self.names.k, kv, self.qk_order),
            part(self.names.v, kv, RowOrder::AsStored),
        ];
        MatrixPlan { n_in: config.d_model, pieces }
    }

    fn dense(&self, layer: usize) -> FeedForwardPlan {
        let Config { d_model, d_ff, .. } = *self.config;
        let half = |name: &str| Piece::whole(self.names.of_layer(layer, name), d_ff, d_model);
        let pieces = vec![half(self.names.gate), half(self.names.up)];
        FeedForwardPlan {
            router: None,
            gate_up: MatrixPlan { n_in: d_model, pieces },
            down: self.whole(layer, self.names.down, d_model, d_ff),
        }
    }

    fn experts(&self, layer: usize, moe: Moe) -> FeedForwardPlan {
        let Config { d_model, d_ff, .. } = *self.config;
        let files = ExpertFiles::of(&self.names, layer, self.has);
        let gate_up = (0..moe.n_experts).flat_map(|e| files.gate_up(e, moe, d_ff, d_model));
        let down = (0..moe.n_experts).map(|e| files.down(e, moe, d_ff, d_model));
        FeedForwardPlan {
            router: Some(self.whole(layer, self.names.router, moe.n_experts, d_model)),
            gate_up: MatrixPlan { n_in: d_model, pieces: gate_up.collect() },
            down: MatrixPlan { n_in: d_ff, pieces: down.collect() },
        }
    }

    fn whole(&self, layer: usize, name: &str, n_out: usize, n_in: usize) -> MatrixPlan {
        let piece = Piece::whole(self.names.of_layer(layer, name), n_out, n_in);
        MatrixPlan { n_in, pieces: vec![piece] }
    }

    /// A norm's weight, which layer norms here do not have.
    fn norm(&self, tensor: String, len: usize) -> VectorPlan {
        match self.config.norm {
            NormKind::Rms => VectorPlan { tensors: vec![(tensor, len)], len, add: self.norm_add },
            NormKind::Layer => VectorPlan { tensors: vec![], len, add: 0.0 },
        }
    }

    fn qk_norm(&self, layer: usize) -> VectorPlan {
        let config = self.config;
        let (q, k) = match config.qk_norm {
            QkNorm::None => return VectorPlan { tensors: vec![], len: 1, add: 0.0 },
            QkNorm::Full => (config.q_width(), config.kv_width()),
            QkNorm::PerHead => (config.head_dim, config.head_dim),
        };
        let tensors = vec![
            (self.names.of_layer(layer, self.names.q_norm), q),
            (self.names.of_layer(layer, self.names.k_norm), k),
        ];
        VectorPlan { tensors, len: q + k, add: self.norm_add }
    }
}
