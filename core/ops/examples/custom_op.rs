//! An operator of your own: the soft cap of Gemma 2's logits, `y = cap tanh(x / cap)`, with its gradient.
//!
//! In a model it is one line, `let y = softcap(&x, 30.0);`, on a GPU, on the CPU, and in training.
#![allow(clippy::unwrap_used, reason = "an example fails by panicking")]

use burn::tensor::{DType, Device, Tensor, TensorData};
use samara_ops::custom::*;
use samara_ops::device::{DeviceChoice, Limits, open};
use samara_ops::read_f32;
use std::sync::LazyLock;

static SOFTCAP: LazyLock<&Kernel> = LazyLock::new(|| Kernel::from_wgsl("softcap", WGSL).unwrap());
const WGSL: &str = "
struct Params { n: u32, cap: f32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.x + id.y * groups.x * 64u; // A large grid is folded to two dimensions.
    if i < params.n { y[i] = params.cap * tanh(clamp(x[i] / params.cap, -10.0, 10.0)); }
}";

static BACKWARD: LazyLock<&Kernel> = LazyLock::new(|| Kernel::from_wgsl("softcap_backward", BACKWARD_WGSL).unwrap());
const BACKWARD_WGSL: &str = "
struct Params { n: u32, cap: f32 }
@group(0) @binding(0) var<storage, read> dy: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> dx: array<f32>;
@group(0) @binding(3) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = id.x + id.y * groups.x * 64u;
    if i < params.n { dx[i] = dy[i] * (1.0 - y[i] * y[i] / (params.cap * params.cap)); }
}";

/// Each value brought between `-cap` and `cap`.
pub fn softcap(x: &Tensor<2>, cap: f32) -> Tensor<2> {
    let n = x.shape().num_elements() as u32;
    run(Softcap(n, cap), vec![float(x)], vec![into_float(empty(x.dims(), &x.device()))]).float()
}

#[derive(Debug, Clone, Copy)]
struct Softcap(u32, f32); // How many values, and the cap: all but its buffers.

impl Operation for Softcap {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let pairs = outputs[0].f32().iter_mut().zip(inputs[0].f32());
        pairs.for_each(|(y, x)| *y = self.1 * (x / self.1).tanh());
    }

    fn launch(&self) -> Launch {
        Launch { kernel: *SOFTCAP, groups: self.0.div_ceil(64).into(), params: vec![self.0, self.1.to_bits()] }
    }

    fn gradients(&self) -> Vec<Gradient> {
        let (dy, y, dx) = (Value::Incoming, Value::Output(0), Target::Of(Value::Input(0)));
        vec![Gradient::of_first([Backward::new(SoftcapBackward(*self), [dy, y], [dx])])]
    }
}

#[derive(Debug)]
struct SoftcapBackward(Softcap);

impl Operation for SoftcapBackward {
    fn reference(&self, inputs: &[Host<'_>], outputs: &mut [HostMut<'_>]) {
        let pairs = inputs[0].f32().iter().zip(inputs[1].f32());
        pairs.zip(outputs[0].f32()).for_each(|((dy, y), dx)| *dx = dy * (1.0 - (y / self.0.1).powi(2)));
    }

    fn launch(&self) -> Launch {
        Launch { kernel: *BACKWARD, ..self.0.launch() }
    }
}

/// Prints the gradient on each device, which must be the slope that finite differences show.
pub fn main() {
    let xs = [-80.0, -3.0, 0.0, 0.5, 7.0, 30.0f32];
    let row = |xs: &[f32], on: &Device| Tensor::<2>::from_data(TensorData::new(xs.to_vec(), [1, 6]), (on, DType::F32));
    let values = |x: Tensor<2>| pollster::block_on(read_f32(x)).unwrap();
    for choice in [DeviceChoice::Cpu, DeviceChoice::Gpu(0)] {
        let Ok(opened) = pollster::block_on(open(choice, Limits::Default)) else { continue };
        let at = |by: f32| values(softcap(&row(&xs.map(|x| x + by), &opened.device), 4.0));
        let x = row(&xs, &opened.device.clone().autodiff()).require_grad();
        let gradient = values(x.grad(&softcap(&x, 4.0).sum().backward()).unwrap());
        let slope: Vec<f32> = at(1e-2).iter().zip(at(-1e-2)).map(|(above, below)| (above - below) / 2e-2).collect();
        println!("{}\n  gradient {gradient:.4?}\n  slope    {slope:.4?}", opened.name);
        assert!(gradient.iter().zip(&slope).all(|(gradient, slope)| (gradient - slope).abs() < 1e-4));
    }
}
