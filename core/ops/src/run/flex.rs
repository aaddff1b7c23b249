//! The CPU's side of the door: operations run their reference bodies on slices of Burn's `Flex` tensors.

use super::{Run, Slot, Slots, Words};
use crate::operation::{Host, HostMut, Operation};
use burn::backend::Flex;
use burn::backend::tensor::IntTensor;
use burn::tensor::DType;
use burn_flex::FlexTensor;
use std::future::ready;
use std::sync::Arc;

impl Run for Flex {
    fn run(slots: Slots<Self>, operation: Arc<dyn Operation>) -> Slots<Self> {
        let mut all = slots.into_vec();
        let mut written = all.split_off(operation.launch().kernel.n_inputs());
        let inputs: Vec<FlexTensor> = all.iter().map(contiguous).collect();
        let hosts: Vec<Host<'_>> = inputs.iter().map(host).collect();
        let mut hosts_mut: Vec<HostMut<'_>> = written.iter_mut().filter_map(host_mut).collect();
        operation.reference(&hosts, &mut hosts_mut);
        all.append(&mut written);
        Slots::gather(all.into_iter())
    }

    fn write_words(mut target: IntTensor<Self>, words: Vec<u32>) -> IntTensor<Self> {
        let storage = target.storage_mut::<u32>();
        storage.iter_mut().zip(words).for_each(|(slot, word)| *slot = word);
        target
    }

    fn read_words(source: IntTensor<Self>) -> Words {
        let words = source.to_contiguous().as_slice().unwrap_or_default().to_vec();
        Box::pin(ready(Ok(words)))
    }
}

#[expect(clippy::panic, reason = "empty slots are dropped before")]
fn contiguous(slot: &Slot<Flex>) -> FlexTensor {
    match slot {
        Slot::Float(tensor) | Slot::Int(tensor) => tensor.to_contiguous(),
        Slot::Empty => panic!("an empty slot is no input"),
    }
}

fn host(tensor: &FlexTensor) -> Host<'_> {
    match tensor.dtype() {
        DType::F32 => Host::F32(tensor.as_slice().unwrap_or_default()),
        _ => Host::U32(tensor.as_slice().unwrap_or_default()),
    }
}

fn host_mut(slot: &mut Slot<Flex>) -> Option<HostMut<'_>> {
    match slot {
        Slot::Float(tensor) => Some(HostMut::F32(tensor.storage_mut())),
        Slot::Int(tensor) => Some(HostMut::U32(tensor.storage_mut())),
        Slot::Empty => None,
    }
}
