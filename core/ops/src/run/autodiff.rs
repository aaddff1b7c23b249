//! Under autodiff an operation runs as it always does, and leaves a node on Burn's tape for each output with a gradient.

use super::{Run, Slot, Slots, Words};
use crate::gradient::{Gradient, Target, Value};
use crate::operation::Operation;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, TensorMetadata};
use burn::tensor::{DType, Shape};
use std::collections::HashMap;
use std::sync::Arc;

/// How many buffers an operation may have, and so how many parents a node.
const MAX_PARENTS: usize = 8;

/// The step of the tape that runs an operation's [`Gradient`].
#[derive(Debug)]
struct Step;

/// What that step needs.
#[derive(Debug)]
struct Kept<B: Backend> {
    gradient: Gradient,
    /// What gets a gradient, in the order of the node's parents, with its shape.
    parents: Vec<(Value, Shape)>,
    /// Buffers that the launches read.
    values: HashMap<Value, Slot<B>>,
}

/// A float on the tape: its buffer is elsewhere.
type OnTape<B> = <Autodiff<B> as burn::backend::BackendTypes>::FloatTensorPrimitive;

impl<B: Run, C: CheckpointStrategy> Run for Autodiff<B, C> {
    fn run(slots: Slots<Self>, operation: Arc<dyn Operation>) -> Slots<Self> {
        let n_inputs = operation.launch().kernel.n_inputs();
        let mut outputs = slots.into_vec();
        let inputs: Vec<Slot<Self>> = outputs.drain(..n_inputs).collect();
        let plain = inputs.iter().map(plain::<B, C>);
        let (written, before): (Vec<_>, Vec<_>) = outputs.into_iter().map(split::<B, C>).unzip();
        let mut all = B::run(Slots::gather(plain.chain(written)), Arc::clone(&operation)).into_vec();
        let written = all.split_off(n_inputs);
        let mut tape = Tape::<B, C> { inputs, plain_inputs: all, outputs: Vec::new(), plain_outputs: written.clone() };
        let gradients = operation.gradients();
        for (index, (slot, before)) in written.into_iter().zip(before).enumerate() {
            let gradient = gradients.iter().find(|gradient| gradient.of == index).cloned();
            let slot = tape.record(slot, before, gradient, &*operation);
            tape.outputs.push(slot);
        }
        Slots::gather(tape.inputs.into_iter().chain(tape.outputs))
    }

    fn write_words(target: IntTensor<Self>, words: Vec<u32>) -> IntTensor<Self> {
        B::write_words(target, words)
    }

    fn read_words(source: IntTensor<Self>) -> Words {
        B::read_words(source)
    }
}

/// An operation's buffers while its outputs are put on the tape.
struct Tape<B: Run, C: CheckpointStrategy> {
    inputs: Vec<Slot<Autodiff<B, C>>>,
    plain_inputs: Vec<Slot<B>>,
    /// Those recorded so far.
    outputs: Vec<Slot<Autodiff<B, C>>>,
    plain_outputs: Vec<Slot<B>>,
}

impl<B: Run, C: CheckpointStrategy> Tape<B, C> {
    /// One output as a node, one of whose parents is what the buffer held `before`.
    fn record(
        &self,
        slot: Slot<B>,
        before: Option<NodeGuard>,
        gradient: Option<Gradient>,
        operation: &dyn Operation,
    ) -> Slot<Autodiff<B, C>> {
        let output = match slot {
            Slot::Float(output) => output,
            Slot::Int(ids) => return Slot::Int(ids),
            Slot::Empty => return Slot::Empty,
        };
        let Some(gradient) = gradient else {
            let is_tracked = self.inputs.iter().any(|input| matches!(input, Slot::Float(x) if x.is_tracked()));
            assert!(!is_tracked || !operation.gradients().is_empty(), "{operation:?} has no gradient");
            return Slot::Float(OnTape::<B>::new(output));
        };
        let parents = self.parents(&gradient);
        let held = parents.iter().map(|(value, parent)| (*value, parent.shape()));
        let held: Vec<(Value, Shape)> = held.chain(before.iter().map(|_| (Value::Before, output.shape()))).collect();
        let changed = before.iter().map(|_| Value::Before);
        let tracked = parents.iter().filter(|(_, parent)| parent.is_tracked()).map(|(value, _)| *value);
        let wanted: Vec<Value> = tracked.chain(changed).collect();
        let mut guards = parents.iter().map(|(_, parent)| parent.node()).chain(before);
        // Places without a parent get a leaf that wants nothing.
        let nodes = std::array::from_fn(|_| guards.next().unwrap_or_else(|| OnTape::<B>::new(output.clone()).node()));
        drop(guards);
        Slot::Float(match Step.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prepared) => {
                let values = self.values_for(&gradient, &wanted);
                prepared.finish(Kept { gradient, parents: held, values }, output)
            }
            OpsKind::UnTracked(prepared) => prepared.finish(output),
        })
    }

    fn parents(&self, gradient: &Gradient) -> Vec<(Value, OnTape<B>)> {
        let of_value = |value: Value| {
            let slot = match value {
                Value::Input(index) => self.inputs.get(index),
                Value::Output(index) => self.outputs.get(index),
                Value::Incoming | Value::Scratch(_) | Value::Before => None,
            };
            match slot {
                Some(Slot::Float(tensor)) => Some((value, tensor.clone())),
                _ => None,
            }
        };
        gradient.parents().into_iter().filter_map(of_value).collect()
    }

    /// The buffers that the launches for `wanted` read, and no others.
    fn values_for(&self, gradient: &Gradient, wanted: &[Value]) -> HashMap<Value, Slot<B>> {
        let mut values = HashMap::new();
        for value in gradient.launches_for(wanted).into_iter().flat_map(|launch| &launch.reads) {
            let slot = match *value {
                Value::Input(index) => self.plain_inputs.get(index).cloned(),
                Value::Output(index) => self.plain_outputs.get(index).cloned(),
                Value::Incoming | Value::Scratch(_) | Value::Before => None,
            };
            values.extend(slot.map(|slot| (*value, slot)));
        }
        values
    }
}

impl<B: Run> Backward<B, MAX_PARENTS> for Step {
    type State = Kept<B>;

    fn backward(self, ops: Ops<Kept<B>, MAX_PARENTS>, grads: &mut Gradients, _: &mut Checkpointer) {
        let incoming = grads.consume::<B>(&ops.node);
        let Kept { gradient, parents, values } = ops.state;
        let asked = parents.iter().zip(&ops.parents).filter(|(_, node)| node.is_some());
        let wanted: Vec<Value> = asked.map(|((value, _), _)| *value).collect();
        let mut results = Results { incoming: incoming.clone(), values, parents: &parents, made: HashMap::new() };
        for launch in gradient.launches_for(&wanted) {
            results.launch(launch);
        }
        for ((value, _), node) in parents.iter().zip(ops.parents) {
            let Some(node) = node else { continue };
            let made = results.made.remove(&Made::Of(*value));
            if gradient.passes_to.contains(value) || *value == Value::Before && made.is_none() {
                grads.register::<B>(node.id, incoming.clone());
            }
            if let Some(Slot::Float(result)) = made {
                grads.register::<B>(node.id, result);
            }
        }
    }
}

/// The buffers of a gradient while its launches run.
struct Results<'a, B: Backend> {
    incoming: FloatTensor<B>,
    values: HashMap<Value, Slot<B>>,
    parents: &'a [(Value, Shape)],
    made: HashMap<Made, Slot<B>>,
}

/// What names a buffer that a launch has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Made {
    Of(Value),
    Scratch(usize),
}

impl<B: Run> Results<'_, B> {
    fn launch(&mut self, launch: &crate::gradient::Backward) {
        let inputs: Vec<Slot<B>> = launch.reads.iter().map(|value| self.read(*value)).collect();
        let n_inputs = inputs.len();
        let names: Vec<Made> = launch.writes.iter().map(|target| Made::from(*target)).collect();
        let outputs: Vec<Slot<B>> = launch.writes.iter().map(|target| self.room(*target)).collect();
        let slots = Slots::gather(inputs.into_iter().chain(outputs));
        let written = B::run(slots, Arc::clone(&launch.operation)).into_vec().into_iter().skip(n_inputs);
        self.made.extend(names.into_iter().zip(written));
    }

    fn read(&self, value: Value) -> Slot<B> {
        match value {
            Value::Incoming => Slot::Float(self.incoming.clone()),
            Value::Scratch(index) => self.made.get(&Made::Scratch(index)).cloned().unwrap_or(Slot::Empty),
            Value::Input(_) | Value::Output(_) | Value::Before => {
                self.values.get(&value).cloned().unwrap_or(Slot::Empty)
            }
        }
    }

    /// The buffer for a target: the one that an earlier launch has begun to fill, or a new one.
    fn room(&mut self, target: Target) -> Slot<B> {
        if let Some(begun) = self.made.remove(&Made::from(target)) {
            return begun;
        }
        let shape = match target {
            Target::Scratch(_, n_values) => Shape::new([n_values]),
            Target::Of(value) => {
                let known = self.parents.iter().find(|(parent, _)| *parent == value);
                // The gradient of a parent that nobody asked for is computed beside a wanted one, and dropped.
                known.map_or_else(|| self.shape_of(value), |(_, shape)| shape.clone())
            }
        };
        Slot::Float(B::float_empty(shape, &self.incoming.device(), DType::F32.into()))
    }

    fn shape_of(&self, value: Value) -> Shape {
        match self.values.get(&value) {
            Some(Slot::Float(tensor)) => tensor.shape(),
            _ => self.incoming.shape(),
        }
    }
}

impl From<Target> for Made {
    fn from(target: Target) -> Self {
        match target {
            Target::Of(value) => Self::Of(value),
            Target::Scratch(index, _) => Self::Scratch(index),
        }
    }
}

impl<B: Backend> Clone for Kept<B> {
    fn clone(&self) -> Self {
        Self { gradient: self.gradient.clone(), parents: self.parents.clone(), values: self.values.clone() }
    }
}

/// The buffer of a slot, off the tape.
fn plain<B: Backend, C: CheckpointStrategy>(slot: &Slot<Autodiff<B, C>>) -> Slot<B> {
    match slot {
        Slot::Float(tensor) => Slot::Float(tensor.primitive().clone()),
        Slot::Int(ids) => Slot::Int(ids.clone()),
        Slot::Empty => Slot::Empty,
    }
}

/// The buffer of a slot that is about to be written, without a copy because nothing else refers to it, and the node that it
/// had, where that has a history.
fn split<B: Backend, C: CheckpointStrategy>(slot: Slot<Autodiff<B, C>>) -> (Slot<B>, Option<NodeGuard>) {
    match slot {
        Slot::Float(tensor) => {
            let is_tracked = tensor.is_tracked();
            let (primitive, node) = tensor.into_parts();
            (Slot::Float(primitive), is_tracked.then_some(node))
        }
        Slot::Int(ids) => (Slot::Int(ids), None),
        Slot::Empty => (Slot::Empty, None),
    }
}
