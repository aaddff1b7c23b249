//! Batches of an epoch: every document once, none over its room, and a run that goes on meets what it would have met.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use samara_data::{Cursor, DataError, Order, OrderOptions, Plan};

const OPTIONS: OrderOptions = OrderOptions { seed: 7, tokens_per_batch: 64, shuffle: true, packing: true };

/// Lengths from 1 to 64, many short and few long, from a small generator.
fn lengths(n_documents: usize, seed: u64) -> Vec<u32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..n_documents).map(|_| 1 + (next() % 8 * (next() % 9 + 1) % 64) as u32).collect()
}

fn take(order: &mut Order, n_batches: usize) -> Vec<Vec<u32>> {
    (0..n_batches).map(|_| order.next_batch().unwrap().to_vec()).collect()
}

#[test]
fn an_epoch_has_every_document_once_and_no_batch_over_its_room() {
    for (n_documents, seed) in [(0, 1), (1, 2), (2, 3), (500, 4), (3000, 5)] {
        for (shuffle, packing) in [(true, true), (true, false), (false, true), (false, false)] {
            let options = OrderOptions { seed, shuffle, packing, ..OPTIONS };
            let lengths = lengths(n_documents, seed);
            let plan = Plan::new(&lengths, &options, seed).unwrap();
            let mut seen: Vec<u32> = plan.batches().flatten().copied().collect();
            let n_tokens = |batch: &[u32]| batch.iter().map(|idx| lengths[*idx as usize]).sum::<u32>();
            assert!(plan.batches().all(|batch| !batch.is_empty() && n_tokens(batch) <= 64));
            assert!(packing || plan.batches().all(|batch| batch.len() == 1));
            assert!(shuffle || packing || seen.is_sorted());
            seen.sort_unstable();
            assert_eq!(seen, (0..n_documents as u32).collect::<Vec<_>>());
        }
    }
}

#[test]
fn batches_are_nearly_full() {
    let lengths = lengths(3000, 5);
    let plan = Plan::new(&lengths, &OPTIONS, 0).unwrap();
    let needed = lengths.iter().sum::<u32>().div_ceil(64) as usize;
    assert!(plan.n_batches() <= needed + needed / 20, "{} batches, {needed} if all were full", plan.n_batches());
}

#[test]
fn epochs_and_seeds_differ_and_repeat() {
    let lengths = lengths(200, 1);
    let plan = |seed, epoch| Plan::new(&lengths, &OrderOptions { seed, ..OPTIONS }, epoch).unwrap();
    assert_eq!(plan(1, 0), plan(1, 0));
    assert_ne!(plan(1, 0), plan(1, 1));
    assert_ne!(plan(1, 0), plan(2, 0));
    assert_ne!(plan(1, 2), plan(2, 1));
}

#[test]
fn the_order_is_the_same_on_every_machine() {
    let plan = Plan::new(&[5, 30, 12, 64, 9, 33, 40, 1], &OPTIONS, 3).unwrap();
    let batches: Vec<&[u32]> = plan.batches().collect();
    assert_eq!(batches, [[3].as_slice(), &[5], &[6], &[0, 2, 4, 1, 7]]);
}

#[test]
fn going_on_equals_a_straight_run_from_every_place() {
    let lengths = lengths(60, 9);
    let n_batches = 3 * Plan::new(&lengths, &OPTIONS, 0).unwrap().n_batches() + 2;
    let straight = take(&mut Order::new(lengths.clone(), OPTIONS, Cursor::default()).unwrap(), n_batches);
    let mut order = Order::new(lengths.clone(), OPTIONS, Cursor::default()).unwrap();
    for n_taken in 0..n_batches {
        let json = serde_json::to_string(&order.cursor()).unwrap();
        let cursor: Cursor = serde_json::from_str(&json).unwrap();
        let mut resumed = Order::new(lengths.clone(), OPTIONS, cursor).unwrap();
        assert_eq!(resumed.cursor(), order.cursor());
        assert_eq!(take(&mut resumed, n_batches - n_taken), straight[n_taken..], "after {n_taken}");
        order.next_batch().unwrap();
    }
}

#[test]
fn between_two_epochs_a_cursor_is_at_the_start_of_the_second() {
    let lengths = lengths(60, 9);
    let n_batches = Plan::new(&lengths, &OPTIONS, 0).unwrap().n_batches();
    let mut order = Order::new(lengths.clone(), OPTIONS, Cursor::default()).unwrap();
    take(&mut order, n_batches);
    assert_eq!(order.cursor(), Cursor { epoch: 1, batch_idx: 0 });
    let at_end = Cursor { epoch: 0, batch_idx: n_batches as u64 };
    let mut resumed = Order::new(lengths.clone(), OPTIONS, at_end).unwrap();
    assert_eq!(take(&mut resumed, 3), take(&mut order, 3));
    let beyond = Cursor { epoch: 0, batch_idx: n_batches as u64 + 1 };
    assert!(matches!(Order::new(lengths, OPTIONS, beyond), Err(DataError::Cursor { .. })));
}

#[test]
fn what_cannot_be_ordered_is_an_error() {
    let long = Plan::new(&[3, 65], &OPTIONS, 0).unwrap_err();
    assert_eq!(long.to_string(), "document 1 has 65 tokens, more than the 64 of a batch");
    assert!(Order::new(vec![], OPTIONS, Cursor::default()).is_err());
}
