//! Sets documents apart for validation.

use super::{Dataset, Entry};
use crate::error::DataError;
use crate::random::{Purpose, generator, shuffle};

/// How many documents are set apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Validation {
    /// This part of all, between 0 and 1, rounded to the nearest whole document and at least one.
    Fraction(f64),
    /// So many.
    Count(usize),
}

impl Dataset {
    /// Training and validation, each in the order of lines. Which documents go where depends on the seed and their number alone.
    ///
    /// # Errors
    /// The fraction is not between 0 and 1, or one of the two would be empty.
    pub fn split(self, validation: Validation, seed: u64) -> Result<(Self, Self), DataError> {
        let n_documents = self.n_documents();
        let n_validation = count(validation, n_documents)?;
        if n_validation == 0 || n_validation >= n_documents {
            return Err(DataError::Split { n_documents, n_validation });
        }
        let chosen = chosen(n_documents, n_validation, seed);
        let part = |wanted: bool| -> Vec<Entry> {
            let entries = self.index.iter().zip(&chosen).filter(|(_, chosen)| **chosen == wanted);
            entries.map(|(entry, _)| *entry).collect()
        };
        let (train, validation) = (part(false), part(true));
        Ok((Self { index: train, ..self.clone() }, Self { index: validation, ..self }))
    }
}

fn count(validation: Validation, n_documents: usize) -> Result<usize, DataError> {
    match validation {
        Validation::Count(n_validation) => Ok(n_validation),
        Validation::Fraction(fraction) if fraction > 0.0 && fraction < 1.0 => {
            Ok(((n_documents as f64 * fraction).round() as usize).max(1))
        }
        Validation::Fraction(fraction) => Err(DataError::Option {
            option: "validation",
            found: fraction.to_string(),
            expected: "a fraction between 0 and 1".to_owned(),
        }),
    }
}

/// For each document whether it is among the `n_chosen`.
fn chosen(n_documents: usize, n_chosen: usize, seed: u64) -> Vec<bool> {
    let mut chosen: Vec<bool> = (0..n_documents).map(|document_idx| document_idx < n_chosen).collect();
    shuffle(&mut chosen, &mut generator(Purpose::Split, seed, 0, 0));
    chosen
}
