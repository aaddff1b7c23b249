//! A QLoRA step of ours against one with Burn's own `apply_qlora`: the same shape, batch and adapters in one run.
//!
//!     cargo run --release --workspace --example against_burn
//!
//! Both have a Llama of a few layers with random 4-bit weights, adapters of the same rank on the same seven matrices a layer,
//! and AdamW. Steps are taken in turns; the table gives medians as ratios, and the device bytes that each holds afterwards,
//! which is its peak, since the runtime gives pages back late. Each has a thread and so a memory pool of its own.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a measurement fails by panicking")]

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Instant;

use burn::module::{Lora, Module, QLora, Quantizer};
use burn::nn::{
    Linear, LinearConfig, RmsNorm, RmsNormConfig, RotaryEncoding, RotaryEncodingConfig, loss::CrossEntropyLossConfig,
};
use burn::optim::{AdamWConfig, GradientsParams};
use burn::tensor::{
    Device, Distribution, Int, Tensor, TensorData,
    activation::silu,
    quantization::{Calibration, QuantValue},
};
use samara_data::{Batch, Document};
use samara_formats::gguf::{GgufTensor, encode};
use samara_formats::peft::{AdapterConfig, TargetModules};
use samara_formats::{Checkpoint, DType, GgufMetadata, GgufValue, codec};
use samara_model::{Decoder, Site};
use samara_ops::device::{self, DeviceChoice, Limits, OpenDevice};
use samara_ops::held_bytes;
use samara_train::{Learner, RunConfig, Trainer};

const D_MODEL: usize = 576;
const D_FF: usize = 1536;
const N_HEADS: usize = 9;
const N_LAYERS: usize = 4;
const VOCAB: usize = 4096;
const N_TOKENS: usize = 128;
const RANK: usize = 8;
const ALPHA: f32 = 16.0;
const N_STEPS: usize = 5;

/// Something that can take a step when it is told to, on a thread of its own.
struct Racer {
    name: &'static str,
    start: mpsc::Sender<()>,
    /// Seconds of a step, and bytes held after it.
    done: mpsc::Receiver<(f64, u64)>,
}

fn main() {
    let racers = [
        Racer::new("Samara", |open| {
            let mut trainer = ours(&open);
            let batch = batch();
            Box::new(move || {
                let report = pollster::block_on(trainer.step(std::slice::from_ref(&batch), 1000)).unwrap();
                assert!(report.loss.is_finite());
            })
        }),
        Racer::new("Burn's apply_qlora", |open| {
            let mut burns = Burns::new(&open.device.autodiff());
            Box::new(move || assert!(burns.step().is_finite()))
        }),
    ];
    let mut seconds = [Vec::new(), Vec::new()];
    let mut bytes = [0, 0];
    // The first step compiles pipelines and does not count.
    for step in 0..=N_STEPS {
        for (index, racer) in racers.iter().enumerate() {
            let (took, held) = racer.step();
            bytes[index] = held;
            if step > 0 {
                seconds[index].push(took);
            }
        }
    }
    let [ours, burns] = seconds.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    });
    println!("| | {} | {} | ratio |\n|---|---|---|---|", racers[0].name, racers[1].name);
    println!("| step, median of {N_STEPS} | {ours:.2} s | {burns:.2} s | {:.2} |", ours / burns);
    let mib = |n: u64| n as f64 / f64::from(1 << 20);
    println!(
        "| device bytes | {:.0} MiB | {:.0} MiB | {:.2} |",
        mib(bytes[0]),
        mib(bytes[1]),
        mib(bytes[0]) / mib(bytes[1])
    );
}

impl Racer {
    fn new(name: &'static str, make: impl FnOnce(OpenDevice) -> Box<dyn FnMut()> + Send + 'static) -> Self {
        let (start, started) = mpsc::channel();
        let (finished, done) = mpsc::channel();
        std::thread::spawn(move || {
            let open = pollster::block_on(device::open(DeviceChoice::Auto, Limits::Adapter)).unwrap();
            let device = open.device.clone();
            let mut step = make(open);
            while started.recv().is_ok() {
                let start = Instant::now();
                step();
                let took = start.elapsed().as_secs_f64();
                if finished.send((took, held_bytes(&device))).is_err() {
                    break;
                }
            }
        });
        Self { name, start, done }
    }

    fn step(&self) -> (f64, u64) {
        self.start.send(()).unwrap();
        self.done.recv().unwrap()
    }
}

fn ids() -> Vec<u32> {
    (0..=N_TOKENS as u32).map(|i| i * 7919 % VOCAB as u32).collect()
}

fn batch() -> Batch {
    Batch::from_documents(&[Document { ids: ids(), trained: vec![true; N_TOKENS + 1] }])
}

fn ours(open: &OpenDevice) -> Trainer {
    let decoder = Decoder::load(&checkpoint(), open, &mut |_| ()).unwrap();
    let adapter = AdapterConfig {
        rank: RANK,
        alpha: ALPHA,
        dropout: 0.0,
        use_rslora: false,
        use_dora: false,
        target_modules: TargetModules::AllLinear,
        base_model: None,
    };
    let sites = Site::all(decoder.config());
    let learner = Learner::new_adapters(decoder, sites, adapter, 1, open.kernels);
    Trainer::new(learner, &RunConfig::new("", "", Vec::new()), N_TOKENS + 1)
}

/// The model as a GGUF file of Q4_0.
fn checkpoint() -> Checkpoint {
    let number = |key: &str, value: usize| (format!("llama.{key}"), GgufValue::U32(value as u32));
    let values = BTreeMap::from([
        ("general.architecture".to_owned(), GgufValue::String("llama".to_owned())),
        number("embedding_length", D_MODEL),
        number("block_count", N_LAYERS),
        number("attention.head_count", N_HEADS),
        number("feed_forward_length", D_FF),
        number("context_length", 1024),
        ("llama.attention.layer_norm_rms_epsilon".to_owned(), GgufValue::F32(1e-5)),
        ("llama.rope.freq_base".to_owned(), GgufValue::F32(10_000.0)),
    ]);
    let mut tensors: Vec<(String, Vec<usize>, DType, Vec<u8>)> = Vec::new();
    let mut matrix = |name: String, n_out: usize, n_in: usize| {
        tensors.push((name, vec![n_out, n_in], DType::Q4_0, blocks(n_out * n_in)));
    };
    matrix("token_embd.weight".to_owned(), VOCAB, D_MODEL);
    matrix("output.weight".to_owned(), VOCAB, D_MODEL);
    for layer in 0..N_LAYERS {
        for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
            matrix(format!("blk.{layer}.{name}.weight"), D_MODEL, D_MODEL);
        }
        for name in ["ffn_gate", "ffn_up"] {
            matrix(format!("blk.{layer}.{name}.weight"), D_FF, D_MODEL);
        }
        matrix(format!("blk.{layer}.ffn_down.weight"), D_MODEL, D_FF);
    }
    let layers =
        (0..N_LAYERS).flat_map(|layer| ["attn_norm", "ffn_norm"].map(|name| format!("blk.{layer}.{name}.weight")));
    for name in layers.chain(["output_norm.weight".to_owned()]).collect::<Vec<_>>() {
        tensors.push((name, vec![D_MODEL], DType::F32, codec::to_f32(&[1.0; D_MODEL])));
    }
    let borrowed: Vec<GgufTensor<'_>> =
        tensors.iter().map(|(name, shape, dtype, bytes)| GgufTensor { name, shape, dtype: *dtype, bytes }).collect();
    Checkpoint::from_gguf("random.gguf", encode(&GgufMetadata { values }, &borrowed).unwrap()).unwrap()
}

/// Random codes under one small scale.
fn blocks(n_values: usize) -> Vec<u8> {
    let scale = codec::to_f16(&[1.0 / 64.0]);
    let code = |i: usize| (i as u32).wrapping_mul(2_654_435_761).rotate_left(11) as u8;
    (0..n_values / 32)
        .flat_map(|block| scale.iter().copied().chain((0..16).map(move |i| code(block * 16 + i))))
        .collect()
}

/// The same with Burn's own layers.
struct Burns {
    layers: Layers,
    optimizer: burn::optim::ModuleOptimizer,
    embed: Tensor<2>,
    head: Tensor<2>,
    rope: RotaryEncoding,
    inputs: Tensor<2, Int>,
    targets: Tensor<1, Int>,
}

#[derive(Module, Debug)]
struct Layers {
    layers: Vec<Layer>,
    norm: RmsNorm,
}

#[derive(Module, Debug)]
struct Layer {
    q: Linear,
    k: Linear,
    v: Linear,
    o: Linear,
    gate: Linear,
    up: Linear,
    down: Linear,
    before_attention: RmsNorm,
    before_mlp: RmsNorm,
}

impl Layer {
    fn new(device: &Device) -> Self {
        let linear = |n_in, n_out| LinearConfig::new(n_in, n_out).with_bias(false).init(device);
        let norm = || RmsNormConfig::new(D_MODEL).init(device);
        Self {
            q: linear(D_MODEL, D_MODEL),
            k: linear(D_MODEL, D_MODEL),
            v: linear(D_MODEL, D_MODEL),
            o: linear(D_MODEL, D_MODEL),
            gate: linear(D_MODEL, D_FF),
            up: linear(D_MODEL, D_FF),
            down: linear(D_FF, D_MODEL),
            before_attention: norm(),
            before_mlp: norm(),
        }
    }

    fn forward(&self, x: Tensor<3>, rope: &RotaryEncoding) -> Tensor<3> {
        let normed = self.before_attention.forward(x.clone());
        let heads = |y: Tensor<3>| y.reshape([1, N_TOKENS, N_HEADS, D_MODEL / N_HEADS]).swap_dims(1, 2);
        let q = rope.forward(heads(self.q.forward(normed.clone())));
        let k = rope.forward(heads(self.k.forward(normed.clone())));
        let v = heads(self.v.forward(normed));
        let options = burn::tensor::ops::AttentionModuleOptions { is_causal: true, ..Default::default() };
        let mixed = burn::tensor::module::attention(q, k, v, None, None, options);
        let x = x + self.o.forward(mixed.swap_dims(1, 2).reshape([1, N_TOKENS, D_MODEL]));
        let normed = self.before_mlp.forward(x.clone());
        let wide = silu(self.gate.forward(normed.clone())) * self.up.forward(normed);
        x + self.down.forward(wide)
    }
}

impl Burns {
    fn new(device: &Device) -> Self {
        let layers = Layers {
            layers: (0..N_LAYERS).map(|_| Layer::new(device)).collect(),
            norm: RmsNormConfig::new(D_MODEL).init(device),
        };
        let scheme = device
            .settings()
            .quantization
            .scheme
            .with_value(QuantValue::Q4S)
            .per_block([32], burn::tensor::quantization::ScaleDtype::F32);
        let quantizer = Quantizer::new(Calibration::MinMax, scheme);
        let table = || Tensor::<2>::random([VOCAB, D_MODEL], Distribution::Normal(0.0, 0.05), device);
        let ids: Vec<i32> = ids().iter().map(|id| *id as i32).collect();
        Self {
            layers: layers.apply_qlora(QLora::new(Lora::new(RANK, f64::from(ALPHA)), quantizer)),
            optimizer: AdamWConfig::new().init(),
            embed: table(),
            head: table().transpose(),
            rope: RotaryEncodingConfig::new(1024, D_MODEL / N_HEADS).init(device),
            inputs: Tensor::from_data(TensorData::new(ids[..N_TOKENS].to_vec(), [1, N_TOKENS]), device),
            targets: Tensor::from_data(TensorData::new(ids[1..].to_vec(), [N_TOKENS]), device),
        }
    }

    fn step(&mut self) -> f32 {
        let x = self.embed.clone().select(0, self.inputs.clone().reshape([N_TOKENS])).reshape([1, N_TOKENS, D_MODEL]);
        let x = self.layers.layers.iter().fold(x, |x, layer| layer.forward(x, &self.rope));
        let hidden = self.layers.norm.forward(x).reshape([N_TOKENS, D_MODEL]);
        let logits = hidden.matmul(self.head.clone());
        let loss = CrossEntropyLossConfig::new().init(&logits.device()).forward(logits, self.targets.clone());
        let gradients = GradientsParams::from_grads(loss.backward(), &self.layers);
        self.layers = self.optimizer.step(2e-4, self.layers.clone(), gradients);
        loss.into_scalar::<f32>()
    }
}
