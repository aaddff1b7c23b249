//! From files to batches: compression, truncation, splitting, and that what is spooled comes back.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::io::Write;

use common::{CHATML, files, open, options, tokenizer};
use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use samara_data::{Batch, Cursor, DataError, DataOptions, Dataset, IGNORE, Order, OrderOptions, Validation};
use samara_text::AddSpecial;

/// Rows of one to seven words.
fn rows(n_rows: usize) -> Vec<u8> {
    let row = |idx: usize| format!("{{\"text\": \"{}{idx}\"}}\n", "word ".repeat(idx % 7));
    (0..n_rows).map(row).collect::<String>().into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

#[test]
fn documents_are_those_of_the_lines_in_their_order() {
    let dataset = open(&rows(40), CHATML, &options()).unwrap();
    let tokenizer = tokenizer();
    for document_idx in [39, 0, 17, 17, 3] {
        let text = format!("{}{document_idx}", "word ".repeat(document_idx % 7));
        let expected = [tokenizer.encode(&text, AddSpecial::Yes).unwrap(), options().end_ids].concat();
        assert_eq!(dataset.document(document_idx).unwrap().ids, expected);
    }
    assert!(matches!(dataset.document(40), Err(DataError::NoDocument { document_idx: 40, n_documents: 40 })));
}

#[test]
fn compressed_files_and_parts_put_together_read_like_plain_ones() {
    let (bytes, empty) = (rows(3000), b"\x50\x2a\x4d\x18\x03\x00\x00\x00abc");
    let (one, other) = bytes.split_at(bytes.len() / 3);
    let plain = open(&bytes, CHATML, &options()).unwrap();
    let compressed = [
        gzip(&bytes),
        [gzip(one), gzip(other)].concat(),
        zstd(&bytes),
        [zstd(one), empty.to_vec(), zstd(other)].concat(),
        [empty.to_vec(), zstd(&bytes), empty.to_vec()].concat(),
    ];
    for bytes in compressed {
        let dataset = open(&bytes, CHATML, &options()).unwrap();
        assert_eq!(dataset.report(), plain.report());
        assert_eq!(dataset.document(2999).unwrap(), plain.document(2999).unwrap());
    }
}

#[test]
fn a_compressed_file_that_is_cut_off_or_damaged_is_an_error() {
    let bytes = rows(3000);
    for whole in [gzip(&bytes), zstd(&bytes)] {
        let mut damaged = whole.clone();
        let place = whole.len() - 2;
        damaged[place] ^= 0x55;
        for bytes in [&whole[..whole.len() / 2], &whole[..whole.len() - 1], &whole[..6], &damaged] {
            let error = open(bytes, CHATML, &options()).unwrap_err();
            assert!(matches!(error, DataError::Read { .. } | DataError::Open { .. }), "{error}");
        }
    }
}

#[test]
fn a_digest_tells_other_data() {
    let digest = |bytes: &[u8], options: &DataOptions| open(bytes, CHATML, options).unwrap().digest().to_owned();
    let plain = digest(b"{\"text\": \"ab\"}\n{\"text\": \"c\"}", &options());
    assert_eq!(plain.len(), 64);
    assert_eq!(plain, digest(b"\n{\"text\": \"ab\"}\r\n{}\n{\"text\": \"c\"}", &options()));
    assert_ne!(plain, digest(b"{\"text\": \"c\"}\n{\"text\": \"ab\"}", &options()));
    assert_ne!(plain, digest(b"{\"text\": \"a\"}\n{\"text\": \"bc\"}", &options()));
    assert_ne!(plain, digest(b"{\"prompt\": \"\", \"completion\": \"ab\"}", &options()));
}

#[test]
fn several_files_are_one_dataset() {
    let (_folder, paths) = files(&[&rows(5), &gzip(&rows(4)), b"\n{}\n{\"text\": \"z\"}"]);
    let dataset = Dataset::open(&paths, &tokenizer(), None, &options()).unwrap();
    assert_eq!((dataset.n_documents(), dataset.report().n_lines), (10, 12));
    let error = Dataset::open(&paths[..0], &tokenizer(), None, &options()).unwrap_err();
    assert!(matches!(error, DataError::NothingLeft { .. }));
}

#[test]
fn the_longest_length_follows_from_the_mean_unless_set() {
    // Bytes that merge with nothing, so that tokens can be counted: 27 of them over 3 rows, times 1.5.
    let text = |n: usize| format!("{{\"text\": \"{}\"}}\n", "\\u0001".repeat(n));
    let lengths = |options: &DataOptions| {
        let dataset = open((text(3) + &text(4) + &text(20)).as_bytes(), CHATML, options).unwrap();
        (dataset.lengths(), dataset.max_length(), dataset.report().n_truncated, dataset.n_tokens())
    };
    let by_mean = DataOptions { max_length: None, end_ids: vec![], ..options() };
    assert_eq!(lengths(&by_mean), (vec![3, 4, 14], 14, 1, 21));
    assert_eq!(lengths(&DataOptions { max_length: Some(4), ..by_mean.clone() }), (vec![3, 4, 4], 4, 1, 11));
    assert_eq!(lengths(&DataOptions { tokens_per_batch: Some(10), ..by_mean }), (vec![3, 4, 10], 10, 1, 17));
}

#[test]
fn a_split_parts_the_documents_by_seed() {
    let ids = |dataset: &Dataset| -> Vec<Vec<u32>> {
        (0..dataset.n_documents()).map(|idx| dataset.document(idx).unwrap().ids).collect()
    };
    let whole = open(&rows(50), CHATML, &options()).unwrap();
    let (train, validation) = whole.clone().split(Validation::Fraction(0.1), 3).unwrap();
    assert_eq!((train.n_documents(), validation.n_documents()), (45, 5));
    let mut both = [ids(&train), ids(&validation)].concat();
    let mut expected = ids(&whole);
    both.sort();
    expected.sort();
    assert_eq!(both, expected);
    let again = |seed| ids(&whole.clone().split(Validation::Count(5), seed).unwrap().1);
    assert_eq!(again(3), ids(&validation));
    assert_ne!(again(4), ids(&validation));
}

#[test]
fn a_split_that_leaves_nothing_is_an_error() {
    let whole = open(&rows(3), CHATML, &options()).unwrap();
    let cases = [Validation::Count(0), Validation::Count(3), Validation::Count(9)];
    for validation in cases.into_iter().chain([0.0, 1.0, -0.5, f64::NAN, 0.99].map(Validation::Fraction)) {
        assert!(whole.clone().split(validation, 0).is_err(), "{validation:?}");
    }
    assert_eq!(whole.split(Validation::Fraction(0.01), 0).unwrap().1.n_documents(), 1);
}

/// Every token of every document is in the epoch once, with the label that it has alone.
#[test]
fn packing_changes_neither_labels_nor_positions() {
    let dataset = open(&rows(200), CHATML, &options()).unwrap();
    let options = OrderOptions { seed: 1, tokens_per_batch: 40, shuffle: true, packing: true };
    let mut order = Order::new(dataset.lengths(), options, Cursor::default()).unwrap();
    let mut n_tokens = 0;
    for _ in 0..order.n_batches() {
        let idxs = order.next_batch().unwrap().to_vec();
        let packed = dataset.batch(&idxs).unwrap();
        let alone: Vec<Batch> = idxs.iter().map(|idx| dataset.batch(&[*idx]).unwrap()).collect();
        let joined = |field: fn(&Batch) -> &Vec<u32>| alone.iter().flat_map(field).copied().collect::<Vec<_>>();
        assert_eq!(packed.ids, joined(|batch| &batch.ids));
        assert_eq!(packed.labels, joined(|batch| &batch.labels));
        assert_eq!(packed.positions, joined(|batch| &batch.positions));
        assert!(packed.n_tokens() <= 40 && alone.iter().all(|batch| batch.labels.last() == Some(&IGNORE)));
        n_tokens += packed.n_tokens() as u64;
    }
    assert_eq!(n_tokens, dataset.n_tokens());
}
