//! Best fit: each document goes where it leaves the least room.

use std::collections::BTreeSet;

/// Batches of at most `tokens_per_batch` tokens that hold these documents, given by number and length, each once.
///
/// Among batches with equal room the one that was opened first is taken, so the result is the same everywhere.
/// No document is longer than a batch.
pub(super) fn best_fit(documents: &[(u32, u32)], tokens_per_batch: usize) -> Vec<Vec<u32>> {
    let mut batches: Vec<Vec<u32>> = Vec::new();
    let mut rooms: BTreeSet<(usize, usize)> = BTreeSet::new();
    for &(document_idx, length) in documents {
        let length = length as usize;
        let found = rooms.range((length, 0)..).next().copied();
        let (room, batch_idx) = found.unwrap_or((tokens_per_batch, batches.len()));
        rooms.remove(&(room, batch_idx));
        match batches.get_mut(batch_idx) {
            Some(batch) => batch.push(document_idx),
            None => batches.push(vec![document_idx]),
        }
        if room > length {
            rooms.insert((room - length, batch_idx));
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::best_fit;

    #[test]
    fn a_document_goes_where_the_least_room_is_left() {
        let cases: [(&[u32], Vec<Vec<u32>>); 4] = [
            (&[], vec![]),
            (&[10, 10], vec![vec![0], vec![1]]),
            (&[6, 7, 3, 4], vec![vec![0, 3], vec![1, 2]]),
            (&[5, 5, 5, 1, 4], vec![vec![0, 1], vec![2, 3, 4]]),
        ];
        for (lengths, expected) in cases {
            let documents: Vec<_> = (0..).zip(lengths.iter().copied()).collect();
            assert_eq!(best_fit(&documents, 10), expected, "{lengths:?}");
        }
    }
}
