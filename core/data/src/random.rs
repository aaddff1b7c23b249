//! Random numbers that depend on nothing but their seed and stream, and are the same on every platform and in every version.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// What a stream of random numbers is for; two purposes with the same seed have nothing in common.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Shuffle = 1,
    Split = 2,
    Objective = 3,
    Spans = 4,
    Negatives = 5,
    Chance = 6,
}

/// The generator of this purpose: `major` and `minor` number its streams, such as an epoch and a document.
pub(crate) fn generator(purpose: Purpose, seed: u64, major: u64, minor: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    let words = [seed, purpose as u64, major, minor];
    for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(key)
}

/// A number below `n`, each equally likely; 0 where `n` is 0.
pub(crate) fn below(rng: &mut ChaCha8Rng, n: u64) -> u64 {
    // The numbers from the largest multiple of `n` on would favour the small remainders.
    let limit = u64::MAX - u64::MAX.checked_rem(n).unwrap_or(0);
    loop {
        let draw = rng.next_u64();
        if draw < limit {
            return draw.checked_rem(n).unwrap_or(0);
        }
    }
}

/// A number in `[0, 1)`.
pub(crate) fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    // The 53 bits that an f64 between 0 and 1 can hold.
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A number in `[0, 1)` for what a trainer leaves to chance: it depends on nothing but the seed and the numbers of step and item.
pub fn chance(seed: u64, step: u64, item_idx: u64) -> f64 {
    uniform(&mut generator(Purpose::Chance, seed, step, item_idx))
}

/// Puts a list into a random order, each equally likely.
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for last in (1..items.len()).rev() {
        let other = below(rng, last as u64 + 1) as usize;
        items.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_of_three_is_equally_likely() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..6000 {
            let mut items = [0, 1, 2];
            shuffle(&mut items, &mut generator(Purpose::Shuffle, seed, 0, 0));
            *counts.entry(items).or_insert(0) += 1;
        }
        // Five standard deviations of a count with p = 1/6 are about 145.
        assert!(counts.len() == 6 && counts.values().all(|n| (855..1145).contains(n)), "{counts:?}");
    }

    #[test]
    fn the_stream_is_the_same_everywhere() {
        let mut items: Vec<u32> = (0..8).collect();
        shuffle(&mut items, &mut generator(Purpose::Shuffle, 7, 3, 0));
        assert_eq!(items, [0, 3, 2, 4, 6, 1, 5, 7]);
    }
}
