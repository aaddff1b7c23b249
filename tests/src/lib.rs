//! Cross-crate tests; they are in `tests/`, and this library is empty.
