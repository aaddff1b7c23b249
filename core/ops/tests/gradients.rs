//! Every gradient: against finite differences of the operation itself, and kernels against their reference twins.
//!
//! The loss of a case is the sum of its results times fixed random numbers. Along a random direction its slope is the
//! difference of two losses over their distance; results are `f32`, their sum is taken in `f64`, and the step is so long
//! that rounding moves the slope by less than the bound. On the wgpu device the same gradients must come out as on the
//! reference, up to the rounding of the longest sum.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod pair;
#[path = "pair/stored.rs"]
mod stored;

use burn::tensor::Tensor;
use pair::{Pair, matrix, pair, poison, random};
use samara_ops::device::OpenDevice;
use samara_ops::family::Kernels;
use samara_ops::*;
use stored::{stored_rows, stored_weight};

/// Values of an input and its number of rows.
type Input = (Vec<f32>, usize);

/// One operation over inputs that all want gradients.
struct Case<'a> {
    name: String,
    inputs: Vec<Input>,
    operation: &'a dyn Fn(&OpenDevice, &[Tensor<2>]) -> Tensor<2>,
    /// The longest sum, for the bound between the devices.
    longest_sum: usize,
}

impl Case<'_> {
    fn check(&self, pair: &Pair) {
        let sizes: Vec<usize> = self.inputs.iter().map(|(values, _)| values.len()).collect();
        poison(&pair.gpu.device, &sizes);
        let on_cpu = self.gradients(&pair.cpu);
        self.check_slopes(&pair.cpu, &on_cpu);
        for (input, (gpu, cpu)) in self.gradients(&pair.gpu).iter().zip(&on_cpu).enumerate() {
            let largest = cpu.iter().fold(f32::MIN_POSITIVE, |largest, g| largest.max(g.abs()));
            let bound = 64.0 * (self.longest_sum as f32).sqrt() * f32::EPSILON * largest;
            for (i, (g, c)) in gpu.iter().zip(cpu).enumerate() {
                assert!((g - c).abs() <= bound, "{}: input {input}[{i}]: gpu {g}, cpu {c}, bound {bound:e}", self.name);
            }
        }
    }

    /// The gradient of each input.
    fn gradients(&self, open: &OpenDevice) -> Vec<Vec<f32>> {
        let device = open.device.clone().autodiff();
        let leaves: Vec<Tensor<2>> =
            self.inputs.iter().map(|(values, rows)| matrix(values, *rows, &device).require_grad()).collect();
        let y = (self.operation)(open, &leaves);
        let factors = matrix(&self.factors(y.dims()), y.dims()[0], &device);
        let gradients = (y * factors).sum().backward();
        leaves.iter().map(|leaf| read(leaf.grad(&gradients).unwrap())).collect()
    }

    fn factors(&self, [rows, width]: [usize; 2]) -> Vec<f32> {
        random(900, rows * width, 1.0)
    }

    fn loss(&self, open: &OpenDevice, inputs: &[Input]) -> f64 {
        let tensors: Vec<Tensor<2>> = inputs.iter().map(|(values, rows)| matrix(values, *rows, &open.device)).collect();
        let y = (self.operation)(open, &tensors);
        let factors = self.factors(y.dims());
        read(y).iter().zip(factors).map(|(y, factor)| f64::from(*y) * f64::from(factor)).sum()
    }

    fn check_slopes(&self, open: &OpenDevice, gradients: &[Vec<f32>]) {
        for (input, gradient) in gradients.iter().enumerate() {
            let direction = random(901 + input as u64, gradient.len(), 1.0);
            let expected = |g: &f32, d: &f32| f64::from(*g) * f64::from(*d);
            let expected: f64 = gradient.iter().zip(&direction).map(|(g, d)| expected(g, d)).sum();
            let size: f64 = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            let at = |distance: f32| {
                let mut inputs = self.inputs.clone();
                inputs[input].0.iter_mut().zip(&direction).for_each(|(x, d)| *x += distance * d);
                self.loss(open, &inputs)
            };
            // The fourth-order difference: a long step is exact enough, so that rounding stays small beside it.
            let h = 4e-3;
            let slope = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * f64::from(h));
            let bound = 2e-3 * (size + 0.1);
            assert!((slope - expected).abs() <= bound, "{}: input {input}: {slope} found, {expected} told", self.name);
        }
    }
}

fn read<const R: usize>(tensor: Tensor<R>) -> Vec<f32> {
    pollster::block_on(read_f32(tensor)).unwrap()
}

fn vector_of(matrix: &Tensor<2>) -> Tensor<1> {
    matrix.clone().reshape([matrix.shape().num_elements()])
}

#[test]
fn products_have_the_gradients_of_both_factors() {
    let Some(mut pair) = pair() else { return };
    // The last fills tiles of every family and ends inside others.
    for (n_tokens, n_in, n_out) in [(1, 1, 1), (5, 7, 3), (9, 64, 33), (6, 130, 9), (41, 75, 50)] {
        for family in pair.gpu.families() {
            pair.gpu.kernels = Kernels::all(family);
            let operation =
                |open: &OpenDevice, x: &[Tensor<2>]| linear(&x[0], &Weight::dense(x[1].clone(), open.kernels));
            let inputs = vec![(random(1, n_tokens * n_in, 1.0), n_tokens), (random(2, n_out * n_in, 1.0), n_out)];
            let longest_sum = n_in.max(n_out);
            let name = format!("linear {family} {n_tokens} {n_in} {n_out}");
            Case { name, inputs, operation: &operation, longest_sum }.check(&pair);
        }
    }
}

#[test]
fn stored_rows_of_every_format_pass_the_gradient_on() {
    let Some(mut pair) = pair() else { return };
    let families = pair.gpu.families();
    let formats = Format::ALL.into_iter().filter(|format| *format != Format::Ragged);
    for (format, family) in formats.flat_map(|format| families.iter().map(move |family| (format, *family))) {
        pair.gpu.kernels = Kernels::all(family);
        let (n_tokens, n_in, n_out) = (5, 256, 35);
        let rows = stored_rows(format, n_out, n_in);
        // Twenty rows a part: the second part adds to what the first has given.
        let operation = |open: &OpenDevice, x: &[Tensor<2>]| {
            let w = stored_weight(format, n_in, &rows, 20, open);
            let device = open.device.clone();
            let logits = matrix(&random(5, n_tokens, 1.0), n_tokens, &device);
            let routes = moe_route(&logits, 1, false);
            linear(&x[0], &w) + moe_linear(&x[0], &w, &routes, 1)
        };
        let inputs = vec![(random(3, n_tokens * n_in, 1.0), n_tokens)];
        Case { name: format!("{format:?} {family}"), inputs, operation: &operation, longest_sum: 2 * n_in }
            .check(&pair);
    }
}

#[test]
fn adapters_add_to_some_columns_and_have_gradients() {
    let Some(pair) = pair() else { return };
    for (n_tokens, n_in, n_out, rank, first, n_rows) in
        [(1, 3, 2, 1, 0, 2), (7, 33, 20, 4, 5, 9), (5, 64, 70, 8, 6, 64)]
    {
        let operation = |open: &OpenDevice, x: &[Tensor<2>]| {
            let y = linear(&x[0], &Weight::dense(x[3].clone(), open.kernels));
            low_rank(y, &x[0], [&x[1], &x[2]], 1.7, first, open.kernels)
        };
        let inputs = vec![
            (random(1, n_tokens * n_in, 1.0), n_tokens),
            (random(2, rank * n_in, 1.0), rank),
            (random(3, n_rows * rank, 1.0), n_rows),
            (random(4, n_out * n_in, 1.0), n_out),
        ];
        let name = format!("low_rank {n_tokens} {n_in} {n_out} {rank}");
        Case { name, inputs, operation: &operation, longest_sum: n_in * rank * 4 }.check(&pair);
    }
}

#[test]
fn scaled_columns_have_the_gradients_of_what_they_were_and_of_their_magnitudes() {
    let Some(pair) = pair() else { return };
    for (n_tokens, n_in, n_out, first, n_columns) in [(1, 1, 1, 0, 1), (7, 33, 20, 5, 9), (5, 8, 70, 2, 66)] {
        let operation = |open: &OpenDevice, x: &[Tensor<2>]| {
            let lengths = vector(&vec![0.8; n_columns], &open.device);
            let rest = vector(&vec![1.5; first.max(1)], &open.device);
            let y = linear(&x[0], &Weight::dense(x[1].clone(), open.kernels));
            let y = scale_columns(y, &vector_of(&x[2]), &lengths, first);
            // The columns before, in the same buffer, as queries and keys are.
            if first > 0 {
                scale_columns(y, &vector_of(&x[3]), &rest, 0)
            } else {
                y + x[3].clone().sum().reshape([1, 1])
            }
        };
        let inputs = vec![
            (random(1, n_tokens * n_in, 1.0), n_tokens),
            (random(2, n_out * n_in, 1.0), n_out),
            (random(3, n_columns, 1.0), 1),
            (random(4, first.max(1), 1.0), 1),
        ];
        let name = format!("scale_columns {n_tokens} {n_out} {first}");
        Case { name, inputs, operation: &operation, longest_sum: n_in.max(n_out) * n_tokens }.check(&pair);
    }
}

#[test]
fn columns_of_a_product_that_nobody_trains_give_their_magnitudes_alone_a_gradient() {
    let Some(pair) = pair() else { return };
    let operation = |open: &OpenDevice, x: &[Tensor<2>]| {
        let y = matrix(&random(5, 6 * 9, 1.0), 6, &open.device);
        scale_columns(y, &vector_of(&x[0]), &vector(&[0.5, 1.0, 2.0], &open.device), 4)
    };
    let inputs = vec![(random(1, 3, 1.0), 1)];
    Case { name: "scale_columns".into(), inputs, operation: &operation, longest_sum: 6 }.check(&pair);
}

#[test]
fn norms_have_the_gradients_of_input_weight_and_residual() {
    let Some(pair) = pair() else { return };
    for (n_rows, width) in [(1, 2), (3, 64), (7, 65)] {
        for kind in [NormKind::Rms, NormKind::Layer] {
            let operation = |_: &OpenDevice, x: &[Tensor<2>]| {
                let n = Norm { kind, weight: vector_of(&x[1]), eps: 0.1 };
                let (sum, normed) = add_norm(&x[0], &x[2], &n);
                norm(&x[0], &n) + norm_add(&x[0], &n, &x[2]) + sum * normed
            };
            let inputs = vec![
                (random(1, n_rows * width, 2.0), n_rows),
                (random(2, width, 1.5), 1),
                (random(3, n_rows * width, 1.0), n_rows),
            ];
            let name = format!("norms {n_rows} {width} {kind:?}");
            Case { name, inputs, operation: &operation, longest_sum: width * n_rows }.check(&pair);
        }
    }
}

#[test]
fn gates_have_the_gradients_of_gate_and_up() {
    let Some(pair) = pair() else { return };
    for (activation, scale) in [(Activation::Silu, 3.0), (Activation::GeluTanh, 2.0), (Activation::GeluTanh, 12.0)] {
        let operation = |_: &OpenDevice, x: &[Tensor<2>]| glu(&x[0], activation);
        let inputs = vec![(random(1, 5 * 2 * 37, scale), 5)];
        Case { name: format!("glu {activation:?} {scale}"), inputs, operation: &operation, longest_sum: 16 }
            .check(&pair);
    }
}

#[test]
fn experts_have_gradients_down_to_the_router() {
    let Some(pair) = pair() else { return };
    for (n_tokens, n_experts, top_k, renormalise) in [(1, 1, 1, false), (5, 8, 2, false), (6, 4, 3, true)] {
        let (n_in, n_out) = (9, 6);
        let operation = |open: &OpenDevice, x: &[Tensor<2>]| {
            let routes = moe_route(&x[1], top_k, renormalise);
            let wide = moe_linear(&x[0], &Weight::dense(x[2].clone(), open.kernels), &routes, n_experts);
            let narrow = moe_linear(&wide, &Weight::dense(x[3].clone(), open.kernels), &routes, n_experts);
            moe_combine(&narrow, &routes)
        };
        // Logits far enough apart that no step changes who is picked.
        let logits =
            (0..n_tokens * n_experts).map(|i| (i * 3 % (n_experts + 3)) as f32 * 0.5 + i as f32 * 1e-3).collect();
        let inputs = vec![
            (random(1, n_tokens * n_in, 1.0), n_tokens),
            (logits, n_tokens),
            (random(3, n_experts * n_out * n_in, 1.0), n_experts * n_out),
            (random(4, n_experts * n_out * n_out, 1.0), n_experts * n_out),
        ];
        let name = format!("moe {n_tokens} {n_experts} {top_k} {renormalise}");
        Case { name, inputs, operation: &operation, longest_sum: 64 }.check(&pair);
    }
}

#[test]
fn self_attention_has_the_gradients_of_projection_and_norm() {
    let Some(pair) = pair() else { return };
    let heads = |n_heads, n_kv_heads, head_dim| HeadShape { n_heads, n_kv_heads, head_dim };
    let cases: [(_, _, _, _, &[u32]); 7] = [
        (heads(1, 1, 4), QkNorm::None, None, None, &[1]),
        (heads(4, 2, 8), QkNorm::None, None, None, &[5, 1, 7]),
        (heads(4, 2, 16), QkNorm::Full, None, Some(3), &[9, 2]),
        (heads(3, 1, 64), QkNorm::PerHead, None, Some(1), &[4, 4]),
        (heads(2, 2, 36), QkNorm::None, Some(0.5), None, &[3, 1, 1, 4]),
        (heads(2, 1, 128), QkNorm::None, None, Some(5), &[12]),
        (heads(1, 1, 256), QkNorm::PerHead, None, None, &[3, 3]),
    ];
    for (heads, norm, clip, window, lengths) in cases {
        let positions: Vec<u32> = lengths.iter().flat_map(|length| 0..*length).collect();
        let n_tokens = positions.len();
        let width = heads.q_width() + 2 * heads.kv_width();
        let n_weights = if norm == QkNorm::PerHead { 2 * heads.head_dim } else { heads.q_width() + heads.kv_width() };
        let inv_freq: Vec<f32> = (0..heads.head_dim / 2).map(|i| 1.0 / (i as f32 + 1.0)).collect();
        let operation = |open: &OpenDevice, x: &[Tensor<2>]| {
            let rope = RopeTable::new(&inv_freq, 1.0, 16, &open.device);
            let nothing = vec![0; n_tokens];
            let documents = Documents::new(&nothing, &positions, &nothing, &open.device);
            let qk = QkSpec { heads, norm, eps: 1e-3, clip };
            let scale = 1.0 / (heads.head_dim as f32).sqrt();
            let spec = AttentionSpec { heads, window, scale, kernels: open.kernels };
            // Without a norm the weight is a stand-in, so the sum keeps it on the tape.
            let y = self_attention(&x[0], &vector_of(&x[1]), &rope, &documents, &qk, &spec);
            y + x[1].clone().sum().reshape([1, 1])
        };
        // A step must not carry a value over the edge where it is clipped.
        let off_the_edge = |x: &f32| if (x.abs() - 0.5).abs() < 0.1 { 0.5 * x } else { *x };
        let qkv = random(1, n_tokens * width, 1.0).iter().map(off_the_edge).collect();
        let inputs = vec![(qkv, n_tokens), (random(2, n_weights, 1.5), 1)];
        let name = format!("self_attention {heads:?} {norm:?} {clip:?} {window:?} {lengths:?}");
        Case { name, inputs, operation: &operation, longest_sum: width * n_tokens }.check(&pair);
    }
}

#[test]
fn embeddings_have_gradients_where_ids_repeat() {
    let Some(pair) = pair() else { return };
    let ids = [3, 0, 3, 3, 6, 1];
    let operation = |open: &OpenDevice, x: &[Tensor<2>]| {
        let mut step = Step::new(ids.len(), &open.device);
        step.set(0, &ids, 0.0);
        embed(&step, &Weight::dense(x[0].clone(), open.kernels), 1.5)
    };
    for width in [1, 33, 64] {
        let inputs = vec![(random(1, 7 * width, 1.0), 7)];
        Case { name: format!("embed {width}"), inputs, operation: &operation, longest_sum: 4 }.check(&pair);
    }
}

#[test]
fn what_dropout_drops_is_dropped_from_the_gradient() {
    let Some(pair) = pair() else { return };
    let operation = |_: &OpenDevice, x: &[Tensor<2>]| dropout(&x[0], 0.3, 77);
    let inputs = vec![(random(1, 40 * 50, 1.0), 40)];
    let case = Case { name: "dropout".into(), inputs, operation: &operation, longest_sum: 1 };
    case.check(&pair);
    let kept = read(dropout(&matrix(&vec![1.0; 2000], 40, &pair.cpu.device), 0.3, 77));
    let n_dropped = kept.iter().filter(|y| **y == 0.0).count();
    // Three standard deviations of a binomial around 600.
    assert!((540..=660).contains(&n_dropped), "{n_dropped} of 2000 dropped");
    assert!(kept.iter().all(|y| *y == 0.0 || (*y - 1.0 / 0.7).abs() < 1e-6));
}

#[test]
fn improbable_documents_are_left_out_whole_and_at_random() {
    let Some(pair) = pair() else { return };
    // Forty documents of one to five tokens; those of an odd number are improbable. Some tokens have no label.
    let lengths: Vec<u32> = (0..40).map(|i| i % 5 + 1).collect();
    let positions: Vec<u32> = lengths.iter().flat_map(|length| 0..*length).collect();
    let number = |t: usize| positions[..=t].iter().filter(|position| **position == 0).count() - 1;
    let n_tokens = positions.len();
    let labels: Vec<u32> = (0..n_tokens).map(|t| if t % 7 == 3 { IGNORE } else { 0 }).collect();
    let losses: Vec<f32> = (0..n_tokens).map(|t| if number(t) % 2 == 1 { 5.0 } else { 0.5 }).collect();
    let run = |open: &OpenDevice, rate| {
        let device = &open.device;
        let documents = Documents::new(&vec![0; n_tokens], &positions, &labels, device);
        let (slope, losses) = (matrix(&vec![1.0; 33 * n_tokens], n_tokens, device), vector(&losses, device));
        read(skip_improbable(slope, &losses, &documents, Improbable { below: 0.1, rate, seed: 5 }))
    };
    for (rate, left_out) in [(0.0, 0..=0), (0.5, 4..=16), (1.0, 17..=20)] {
        let rows = run(&pair.cpu, rate);
        assert_eq!(run(&pair.gpu, rate), rows, "at a rate of {rate}");
        let skipped: Vec<usize> = (0..n_tokens).filter(|t| rows[33 * t] == 0.0).map(number).collect();
        assert!(skipped.iter().all(|document| document % 2 == 1), "{skipped:?}");
        let whole = (0..n_tokens).all(|t| rows[33 * t..][..33].iter().all(|x| *x == rows[33 * t]));
        let distinct = skipped.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert!(whole && left_out.contains(&distinct), "{distinct} documents at a rate of {rate}");
    }
}

/// Loss and gradients of each device, and the loss as the definition has it.
#[test]
fn cross_entropy_in_chunks_is_that_of_all_tokens_at_once() {
    let Some(pair) = pair() else { return };
    for (n_tokens, width, vocab, limit, chunk_tokens) in [(1, 4, 3, 3, 1), (7, 33, 70, 65, 3), (9, 64, 300, 300, 100)] {
        let (hidden, head) = (random(1, n_tokens * width, 1.0), random(2, vocab * width, 1.0));
        let positions: Vec<u32> = (0..n_tokens as u32).collect();
        let label = |t: usize| if t % 3 == 1 { IGNORE } else { (t * 29 % limit) as u32 };
        let labels: Vec<u32> = (0..n_tokens).map(label).collect();
        let run = |open: &OpenDevice, hidden: &[f32], head: &[f32]| {
            let device = &open.device;
            let documents = Documents::new(&vec![0; n_tokens], &positions, &labels, device);
            let spec = LossSpec { chunk_tokens, limit, scale: 0.25, train_head: true };
            poison(device, &[n_tokens, n_tokens * width, chunk_tokens * vocab]);
            let head = Weight::dense(matrix(head, vocab, device), open.kernels);
            let loss = cross_entropy(&matrix(hidden, n_tokens, device), &head, &documents, &spec);
            [read(loss.per_token), read(loss.of_hidden), read(loss.of_head.unwrap())]
        };
        let on_cpu = run(&pair.cpu, &hidden, &head);
        for (gpu, cpu) in run(&pair.gpu, &hidden, &head).iter().zip(&on_cpu) {
            let largest = cpu.iter().fold(1.0f32, |largest, x| largest.max(x.abs()));
            let bound = 32.0 * (vocab as f32).sqrt() * f32::EPSILON * largest;
            assert!(gpu.iter().zip(cpu).all(|(g, c)| (g - c).abs() <= bound), "{n_tokens} {vocab}: {gpu:?} {cpu:?}");
        }
        let defined: Vec<f64> =
            (0..n_tokens).map(|t| loss_of(&hidden[t * width..][..width], &head, limit, labels[t])).collect();
        assert!(defined.iter().zip(&on_cpu[0]).all(|(d, c)| (d - f64::from(*c)).abs() < 1e-4), "{defined:?}");
        let total = |hidden: &[f32], head: &[f32]| {
            let of_token = |t: usize| loss_of(&hidden[t * width..][..width], head, limit, labels[t]);
            0.25 * (0..n_tokens).map(of_token).sum::<f64>()
        };
        for i in [0, hidden.len() - 1] {
            let moved =
                |by: f32| hidden.iter().enumerate().map(|(j, x)| if i == j { x + by } else { *x }).collect::<Vec<_>>();
            let slope = (total(&moved(1e-2), &head) - total(&moved(-1e-2), &head)) / 2e-2;
            assert!((slope - f64::from(on_cpu[1][i])).abs() < 1e-3, "hidden[{i}]");
        }
        for i in [0, head.len() - 1] {
            let moved =
                |by: f32| head.iter().enumerate().map(|(j, x)| if i == j { x + by } else { *x }).collect::<Vec<_>>();
            let slope = (total(&hidden, &moved(1e-2)) - total(&hidden, &moved(-1e-2))) / 2e-2;
            assert!((slope - f64::from(on_cpu[2][i])).abs() < 1e-3, "head[{i}]");
        }
    }
}

fn loss_of(hidden: &[f32], head: &[f32], limit: usize, label: u32) -> f64 {
    if label == IGNORE {
        return 0.0;
    }
    let products = |row: &[f32]| row.iter().zip(hidden).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let logits: Vec<f64> = head.chunks_exact(hidden.len()).take(limit).map(products).collect();
    let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
    total.ln() - logits[label as usize]
}

#[test]
fn squared_lengths_are_gathered_and_tell_of_values_that_are_no_numbers() {
    let Some(pair) = pair() else { return };
    for open in [&pair.gpu, &pair.cpu] {
        let tensors = [vec![3.0, 4.0], vec![f32::NAN; 3], vec![f32::INFINITY], random(1, 500, 1.0)];
        let tensors: Vec<Tensor<2>> = tensors.iter().map(|values| matrix(values, 1, &open.device)).collect();
        let sums = read(sum_squares(tensors.iter(), &open.device));
        assert!((sums[0] - 25.0).abs() < 1e-4 && sums[1].is_nan() && !sums[2].is_finite());
        let expected: f32 = random(1, 500, 1.0).iter().map(|x| x * x).sum();
        assert!((sums[3] - expected).abs() < 1e-3 * expected);
    }
}

#[test]
#[should_panic(expected = "has no gradient")]
fn an_operation_without_a_gradient_says_so() {
    let Some(pair) = pair() else { panic!("has no gradient") };
    let x = matrix(&[1.0; 4], 1, &pair.cpu.device.clone().autodiff()).require_grad();
    ceiling_copy(&x.reshape([4]));
}
