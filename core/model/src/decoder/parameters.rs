//! Every weight of a densely loaded decoder as a tensor that can be trained.

use std::ops::Range;

use burn::tensor::Tensor;
use samara_formats::Checkpoint;
use samara_ops::{Norm, NormKind, QkNorm, Weight};

use super::{Decoder, FeedForward, Layer};
use crate::{
    Config, ModelError,
    exit::Exit,
    names::{LayerPlan, MatrixPlan, Piece, Plan, RowOrder, VectorPlan},
};

/// A tensor that training changes. A vector is a matrix of one row.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Which layer holds it, if one does.
    pub layer: Option<usize>,
    /// `[N, D]`.
    pub value: Tensor<2>,
}

/// Where a decoder keeps one.
enum Place<'a> {
    Matrix(&'a mut Weight),
    Vector(&'a mut Tensor<1>),
}

impl Decoder {
    /// All parameters, in the order of [`parameter_tensors`]; matrices that were not loaded densely have none.
    pub fn parameters(&self) -> Vec<Parameter> {
        let mut decoder = self.clone();
        let value = |place: Place<'_>| match place {
            Place::Matrix(weight) => weight.as_dense().cloned(),
            Place::Vector(vector) => Some(vector.clone().reshape([1, -1])),
        };
        let places = decoder.places().into_iter();
        places.filter_map(|(layer, place)| Some(Parameter { layer, value: value(place)? })).collect()
    }

    /// The same model with these values for its parameters, in their order.
    pub fn with_parameters(&self, values: Vec<Tensor<2>>) -> Self {
        let mut decoder = self.clone();
        let kernels = self.kernels;
        for ((_, place), value) in decoder.places().into_iter().zip(values) {
            match place {
                Place::Matrix(weight) => *weight = Weight::dense(value, kernels),
                Place::Vector(vector) => {
                    let n = vector.dims();
                    *vector = value.reshape(n);
                }
            }
        }
        decoder
    }

    fn places(&mut self) -> Vec<(Option<usize>, Place<'_>)> {
        let mut places = vec![(None, Place::Matrix(&mut self.embed))];
        places.extend(self.entry.as_mut().and_then(of_norm).map(|place| (None, place)));
        for (idx, layer) in self.layers.iter_mut().enumerate() {
            places.extend(layer.places().into_iter().map(|place| (Some(idx), place)));
        }
        places.extend(self.head.as_mut().map(|head| (None, Place::Matrix(head))));
        places
    }
}

impl Layer {
    fn places(&mut self) -> Vec<Place<'_>> {
        let mut places = vec![Place::Matrix(&mut self.qkv)];
        if self.qk.norm != QkNorm::None {
            places.push(Place::Vector(&mut self.qk_norm));
        }
        places.push(Place::Matrix(&mut self.o));
        places.extend(of_exit(&mut self.after_attention));
        match &mut self.feed_forward {
            FeedForward::Dense { gate_up, down, .. } => places.extend([gate_up, down].map(Place::Matrix)),
            FeedForward::Experts { router, gate_up, down, .. } => {
                places.extend([router, gate_up, down].map(Place::Matrix));
            }
        }
        places.extend(of_exit(&mut self.after_feed_forward));
        places
    }
}

fn of_exit(exit: &mut Exit<Norm>) -> Vec<Place<'_>> {
    let norms = match exit {
        Exit::Pre { next } => vec![next],
        Exit::Post { after } => vec![after],
        Exit::Sandwich { after, next } => vec![after, next],
    };
    norms.into_iter().filter_map(of_norm).collect()
}

/// Layer norms here have no weights in the files.
fn of_norm(norm: &mut Norm) -> Option<Place<'_>> {
    (norm.kind == NormKind::Rms).then_some(Place::Vector(&mut norm.weight))
}

/// Some rows of a checkpoint's tensor, in the order of a parameter's rows.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorRows {
    /// The tensor's name in the checkpoint.
    pub tensor: String,
    /// Which of its rows.
    pub rows: Range<usize>,
    /// Values of a row.
    pub width: usize,
    /// Where each head's rows stand in pairs in the file, how many a head has.
    pub interleaved: Option<usize>,
    /// What loading adds to a stored value.
    pub add: f32,
}

/// What each of [`Decoder::parameters`] is made of, for the checkpoint that it was loaded from.
///
/// # Errors
/// As [`Config::from_checkpoint`].
pub fn parameter_tensors(checkpoint: &Checkpoint) -> Result<Vec<Vec<TensorRows>>, ModelError> {
    let config = Config::from_checkpoint(checkpoint)?;
    let plan = Plan::new(&config, checkpoint);
    let mut all = vec![of_matrix(&plan.embed)];
    all.extend(plan.entry.as_ref().map(of_vector));
    all.extend(plan.layers.iter().flat_map(of_layer));
    all.extend(plan.head.as_ref().map(of_matrix));
    all.retain(|rows| !rows.is_empty());
    Ok(all)
}

fn of_layer(plan: &LayerPlan) -> Vec<Vec<TensorRows>> {
    let mut all = vec![of_matrix(&plan.qkv), of_vector(&plan.qk_norm), of_matrix(&plan.o)];
    all.extend(plan.after_attention.norms().map(of_vector));
    all.extend(plan.feed_forward.router.as_ref().map(of_matrix));
    all.extend([&plan.feed_forward.gate_up, &plan.feed_forward.down].map(of_matrix));
    all.extend(plan.after_feed_forward.norms().map(of_vector));
    all
}

fn of_matrix(plan: &MatrixPlan) -> Vec<TensorRows> {
    let of_piece = |piece: &Piece| TensorRows {
        tensor: piece.tensor.clone(),
        rows: piece.rows.clone(),
        width: plan.n_in,
        interleaved: match piece.order {
            RowOrder::AsStored => None,
            RowOrder::Interleaved { head_dim } => Some(head_dim),
        },
        add: 0.0,
    };
    plan.pieces.iter().map(of_piece).collect()
}

fn of_vector(plan: &VectorPlan) -> Vec<TensorRows> {
    let of_tensor = |(tensor, len): &(String, usize)| TensorRows {
        tensor: tensor.clone(),
        rows: 0..1,
        width: *len,
        interleaved: None,
        add: plan.add,
    };
    plan.tensors.iter().map(of_tensor).collect()
}
