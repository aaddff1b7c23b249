//! Operators of others: the example runs and checks itself, and what does not fit its kernel is told.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/custom_op.rs"]
mod example;
mod pair;

use pair::{matrix, pair, random};
use samara_ops::custom::{Operation, empty, float, into_float, run};
use samara_ops::read_f32;

#[test]
fn the_example_has_the_gradient_that_its_values_show() {
    pair();
    example::main();
}

#[test]
fn an_operator_of_ones_own_is_the_same_on_both_devices() {
    let Some(pair) = pair() else { return };
    // More workgroups than one dimension of a grid has.
    let x = random(1, 65_600 * 64, 20.0);
    let [gpu, cpu] = [&pair.gpu, &pair.cpu].map(|open| {
        let y = example::softcap(&matrix(&x, 64, &open.device), 5.0);
        pollster::block_on(read_f32(y)).unwrap()
    });
    assert!(gpu.iter().zip(&cpu).all(|(g, c)| (g - c).abs() <= 16.0 * 5.0 * f32::EPSILON));
    assert!(gpu.iter().all(|y| y.abs() <= 5.0) && gpu.iter().any(|y| y.abs() > 4.9));
}

/// An operation of the wrong number of buffers for its kernel.
#[derive(Debug)]
struct Misfit;

impl Operation for Misfit {
    fn reference(&self, _: &[samara_ops::Host<'_>], _: &mut [samara_ops::HostMut<'_>]) {}

    fn launch(&self) -> samara_ops::Launch {
        samara_ops::Launch { kernel: &samara_shaders::DROPOUT_F32, groups: 1, params: vec![0; 4] }
    }
}

#[test]
#[should_panic(expected = "dropout: inputs, outputs and words of Params")]
fn buffers_that_do_not_fit_the_kernel_are_told() {
    let cpu = pollster::block_on(samara_ops::device::open(
        samara_ops::device::DeviceChoice::Cpu,
        samara_ops::device::Limits::Default,
    ));
    let x = matrix(&[1.0], 1, &cpu.unwrap().device);
    let y = empty([1, 1], &x.device());
    run(Misfit, vec![float(&x), float(&x)], vec![into_float(y)]);
}
