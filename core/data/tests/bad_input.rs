//! Rows that broke other trainers: each is counted by kind and found by line, and none makes a panic or a label of nothing.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{CHATML, files, open, options, template, tokenizer};
use samara_data::{BadRow, Batch, DataError, DataOptions, Dataset, OnBadRow};

const GOOD: &[u8] = b"{\"text\": \"A good row.\"}\n";

/// Checks that `line`, the second of three, falls out as `expected`, and that the good rows around it stay.
fn check_falls(line: &[u8], expected: BadRow) {
    let bytes = [GOOD, line, b"\n", GOOD].concat();
    let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
    let dataset = open(&bytes, CHATML, &options()).unwrap();
    assert_eq!((dataset.n_documents(), dataset.report().n_lines), (2, 3), "{shown}");
    assert_eq!(dataset.report().fallen.keys().copied().collect::<Vec<_>>(), [expected], "{shown}");
    let place = &dataset.report().fallen[&expected].first[0];
    assert!(place.line == 2 && place.path.ends_with("0.jsonl") && !place.reason.is_empty(), "{shown}: {place:?}");
    check_refused(&bytes, &shown, expected);
}

fn check_refused(bytes: &[u8], shown: &str, expected: BadRow) {
    let fail = DataOptions { on_bad_row: OnBadRow::Fail, ..options() };
    match open(bytes, CHATML, &fail) {
        Ok(_) => assert_eq!(expected, BadRow::BlankLine, "{shown}"),
        Err(DataError::Row { place, kind }) => assert_eq!((place.line, kind), (2, expected), "{shown}"),
        Err(error) => panic!("{shown}: {error}"),
    }
}

#[test]
fn bad_rows_fall_out_by_kind_and_line() {
    let deep = [b"{\"text\": ".as_slice(), &[b'['; 5000]].concat();
    let cases: &[(&[u8], BadRow)] = &[
        (b"", BadRow::BlankLine),
        (b" \t ", BadRow::BlankLine),
        (b"\r", BadRow::BlankLine),
        (b"{\"text\": \"\xff\"}", BadRow::InvalidUtf8),
        (b"\xff\xfe{\x00}\x00", BadRow::InvalidUtf8),
        (b"{\"text\": \"a\"", BadRow::InvalidJson),
        (b"{\"text\": \"a\"} {\"text\": \"b\"}", BadRow::InvalidJson),
        (b"{\"text\": \"\\ud800\"}", BadRow::InvalidJson),
        (b"{\"text\": NaN}", BadRow::InvalidJson),
        (b"\0\0\0", BadRow::InvalidJson),
        (&deep, BadRow::InvalidJson),
        (b"[]", BadRow::NotAnObject),
        (b"null", BadRow::NotAnObject),
        (b"\"text\"", BadRow::NotAnObject),
        (b"{}", BadRow::MissingKey),
        (b"{\"Text\": \"a\"}", BadRow::MissingKey),
        (b"{\"prompt\": \"a\"}", BadRow::MissingKey),
        (b"{\"completion\": \"a\"}", BadRow::MissingKey),
        (b"{\"messages\": [{\"content\": \"a\"}]}", BadRow::MissingKey),
        (b"{\"text\": \"a\", \"messages\": []}", BadRow::AmbiguousKeys),
        (b"{\"text\": \"a\", \"prompt\": \"b\"}", BadRow::AmbiguousKeys),
        (b"{\"text\": 1}", BadRow::WrongType),
        (b"{\"text\": [\"a\"]}", BadRow::WrongType),
        (b"{\"prompt\": [], \"completion\": \"a\"}", BadRow::WrongType),
        (b"{\"messages\": \"a\"}", BadRow::WrongType),
        (b"{\"messages\": [1]}", BadRow::WrongType),
        (b"{\"messages\": [{\"role\": \"user\", \"content\": 1}]}", BadRow::WrongType),
        (b"{\"messages\": [{\"role\": \"user\"}], \"tools\": {}}", BadRow::WrongType),
        (b"{\"text\": null}", BadRow::Null),
        (b"{\"messages\": null}", BadRow::Null),
        (b"{\"prompt\": \"a\", \"completion\": null}", BadRow::Null),
        (b"{\"text\": \"\"}", BadRow::Empty),
        (b"{\"messages\": []}", BadRow::Empty),
        (b"{\"prompt\": \"a\", \"completion\": \"\"}", BadRow::Empty),
        (b"{\"text\": \"   \"}", BadRow::WhiteSpace),
        (b"{\"text\": \"\\n\\u00a0\\t\"}", BadRow::WhiteSpace),
        (b"{\"prompt\": \"a\", \"completion\": \" \"}", BadRow::WhiteSpace),
        (b"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}", BadRow::NothingToTrain),
        (
            b"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"\"}]}",
            BadRow::NothingToTrain,
        ),
        (
            b"{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": null}]}",
            BadRow::Template,
        ),
        (b"{\"messages\": [{\"role\": \"user\"}, {\"role\": \"assistant\", \"content\": \"b\"}]}", BadRow::Template),
    ];
    for (line, expected) in cases {
        check_falls(line, *expected);
    }
}

#[test]
fn null_keys_beside_a_row_say_nothing() {
    let row = b"{\"text\": \"a\", \"messages\": null, \"prompt\": null, \"completion\": null, \"id\": 7}";
    let dataset = open(row, CHATML, &options()).unwrap();
    assert_eq!((dataset.n_documents(), dataset.report().fallen.len()), (1, 0));
}

#[test]
fn byte_order_mark_windows_line_ends_and_a_missing_last_line_end_change_nothing() {
    let plain = open(b"{\"text\": \"one\"}\n{\"text\": \"two\"}\n", CHATML, &options()).unwrap();
    let others: [&[u8]; 3] = [
        b"\xef\xbb\xbf{\"text\": \"one\"}\n{\"text\": \"two\"}\n",
        b"{\"text\": \"one\"}\r\n{\"text\": \"two\"}\r\n",
        b"{\"text\": \"one\"}\n{\"text\": \"two\"}",
    ];
    for bytes in others {
        let dataset = open(bytes, CHATML, &options()).unwrap();
        assert_eq!(dataset.report(), plain.report());
        assert_eq!(dataset.batch(&[0, 1]).unwrap(), plain.batch(&[0, 1]).unwrap());
    }
}

#[test]
fn a_line_of_five_megabytes_is_read_unless_it_is_over_the_limit() {
    let text = "The seed turned in the wind. ".repeat((5 << 20) / 29);
    let bytes = [GOOD, format!("{{\"text\": \"{text}\"}}\n").as_bytes(), GOOD].concat();
    let dataset = open(&bytes, CHATML, &options()).unwrap();
    assert_eq!((dataset.n_documents(), dataset.report().fallen.len()), (3, 0));
    let short = DataOptions { max_line_bytes: 1000, ..options() };
    let dataset = open(&bytes, CHATML, &short).unwrap();
    assert_eq!((dataset.n_documents(), dataset.report().n_fallen(BadRow::LineTooLong)), (2, 1));
    assert_eq!(dataset.report().fallen[&BadRow::LineTooLong].first[0].line, 2);
}

#[test]
fn the_limit_of_a_line_counts_neither_its_end_nor_a_carriage_return() {
    let row = b"{\"text\": \"a\"}";
    for (max_line_bytes, end, fits) in
        [(13, "", true), (13, "\n", true), (13, "\r\n", true), (12, "\r\n", false), (12, "", false)]
    {
        let result = open(&[row, end.as_bytes()].concat(), CHATML, &DataOptions { max_line_bytes, ..options() });
        assert_eq!(result.is_ok(), fits, "{max_line_bytes} {end:?}");
    }
}

#[test]
fn nothing_left_says_why() {
    let cases: [(&[u8], &str); 3] = [
        (b"", "no row is left of 0 lines: there was no line"),
        (b"\n\n", "no row is left of 2 lines: 2 blank line (first at "),
        (b"{\"text\": null}\n{\"text\": \"\"}\n{\"text\": null}\n", "no row is left of 3 lines: 2 null (first at "),
    ];
    for (bytes, expected) in cases {
        let error = open(bytes, CHATML, &options()).unwrap_err();
        assert!(matches!(error, DataError::NothingLeft { .. }) && error.to_string().starts_with(expected), "{error}");
    }
}

#[test]
fn only_the_first_places_of_a_kind_are_kept() {
    let dataset = open(&[GOOD, &b"{}\n".repeat(100)].concat(), CHATML, &options()).unwrap();
    let fallen = &dataset.report().fallen[&BadRow::MissingKey];
    assert_eq!(fallen.n_rows, 100);
    assert_eq!(fallen.first.iter().map(|place| place.line).collect::<Vec<_>>(), [2, 3, 4, 5, 6]);
    let json = serde_json::to_value(dataset.report()).unwrap();
    assert_eq!((&json["fallen"]["missing_key"]["n_rows"], &json["n_lines"]), (&100.into(), &101.into()));
}

#[test]
fn a_row_whose_labels_are_all_cut_off_falls_out_and_is_never_refused() {
    let long_prompt = "word ".repeat(50);
    let rows = format!(
        "{{\"prompt\": \"{long_prompt}\", \"completion\": \"yes\"}}\n{{\"prompt\": \"Well?\", \"completion\": \"no\"}}\n"
    );
    for on_bad_row in [OnBadRow::Skip, OnBadRow::Fail] {
        let options = DataOptions { max_length: Some(20), on_bad_row, ..options() };
        let dataset = open(rows.as_bytes(), CHATML, &options).unwrap();
        assert_eq!((dataset.n_documents(), dataset.report().n_fallen(BadRow::TruncatedAway)), (1, 1));
        assert_eq!(dataset.report().fallen[&BadRow::TruncatedAway].first[0].line, 1);
        assert!(dataset.batch(&[0]).unwrap().n_trained() > 0);
    }
}

#[test]
fn token_ids_stay_below_the_vocabulary() {
    let n_tokens = tokenizer().n_tokens();
    let dataset = open(GOOD, CHATML, &options()).unwrap();
    let Batch { ids, .. } = dataset.batch(&[0]).unwrap();
    assert!(ids.iter().all(|id| (*id as usize) < n_tokens));
    let fewer = DataOptions { vocab_size: 10, ..options() };
    let error = open(GOOD, CHATML, &fewer).unwrap_err();
    assert!(matches!(&error, DataError::NothingLeft { report } if report.n_fallen(BadRow::TokenId) == 1), "{error}");
}

#[test]
fn options_that_cannot_be_meant_are_errors() {
    let good = options();
    let cases = [
        ("vocab_size", DataOptions { vocab_size: 0, ..good.clone() }),
        ("vocab_size", DataOptions { vocab_size: 1 << 40, ..good.clone() }),
        ("max_length", DataOptions { max_length: Some(1), ..good.clone() }),
        ("tokens_per_batch", DataOptions { tokens_per_batch: Some(0), ..good.clone() }),
        ("max_line_bytes", DataOptions { max_line_bytes: 0, ..good }),
    ];
    for (name, options) in cases {
        let error = open(GOOD, CHATML, &options).unwrap_err();
        assert!(matches!(error, DataError::Option { option, .. } if option == name), "{error}");
    }
}

/// Bytes put into, taken out of and changed in good rows: a dataset or an error, and every document fit to train on.
#[test]
fn damaged_files_never_panic() {
    let rows = b"{\"text\": \"a\"}\n{\"prompt\": \"b\", \"completion\": \"c\"}\r\n\
        {\"messages\": [{\"role\": \"user\", \"content\": \"d\"}, {\"role\": \"assistant\", \"content\": \"e\"}]}\n";
    for place in 0..rows.len() {
        for byte in [b'\n', b'"', b'}', b'\\', 0, 0xff, 0xef, 0x1f, 0x28] {
            let (before, after) = rows.split_at(place);
            let changed = [before, &[byte], &after[1..]].concat();
            for bytes in [changed, [before, &[byte], after].concat(), [before, &after[1..]].concat(), before.to_vec()] {
                let Ok(dataset) = open(&bytes, CHATML, &options()) else { continue };
                let n_documents = dataset.n_documents() as u32;
                assert!((0..n_documents).all(|idx| dataset.batch(&[idx]).unwrap().n_trained() > 0));
                let n_fallen: u64 = dataset.report().fallen.values().map(|fallen| fallen.n_rows).sum();
                assert_eq!(u64::from(n_documents) + n_fallen, dataset.report().n_lines);
            }
        }
    }
}

#[test]
fn a_file_that_is_missing_or_a_folder_is_named() {
    let (folder, paths) = files(&[GOOD]);
    let tokenizer = tokenizer();
    for path in [folder.path().join("none.jsonl"), folder.path().to_owned()] {
        let error = Dataset::open(&[&paths[0], &path], &tokenizer, Some(&template(CHATML)), &options()).unwrap_err();
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn a_conversation_without_a_template_falls_out() {
    let (_folder, paths) = files(&[GOOD, b"{\"messages\": [{\"role\": \"assistant\", \"content\": \"a\"}]}"]);
    let dataset = Dataset::open(&paths, &tokenizer(), None, &options()).unwrap();
    assert_eq!((dataset.n_documents(), dataset.report().n_fallen(BadRow::Template)), (1, 1));
    assert!(dataset.report().fallen[&BadRow::Template].first[0].path.ends_with("1.jsonl"));
}
