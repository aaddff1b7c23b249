//! A document of token ids, and documents laid end to end as one batch.
//!
//! A batch is one row of `T` tokens. Where a document begins, positions restart at 0; that is all that attention needs to
//! keep documents apart. Padding does not exist.

/// The label of a token after which nothing is to be predicted.
pub const IGNORE: u32 = u32::MAX;

/// The token ids of one row of data, and which of them are to be predicted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    pub ids: Vec<u32>,
    /// Whether `ids[i]` is to be predicted from the ids before it. The first never is, whatever stands here.
    pub trained: Vec<bool>,
}

impl Document {
    /// A document of which every token is to be predicted.
    pub fn all_trained(ids: Vec<u32>) -> Self {
        Self { trained: vec![true; ids.len()], ids }
    }

    /// How many of its tokens are to be predicted.
    pub fn n_trained(&self) -> usize {
        self.labels().filter(|label| *label != IGNORE).count()
    }

    /// For each token the id of the next one where that is to be predicted, else [`IGNORE`].
    fn labels(&self) -> impl Iterator<Item = u32> {
        let next = self.ids.iter().zip(&self.trained).skip(1).map(|(id, trained)| if *trained { *id } else { IGNORE });
        next.chain(std::iter::repeat(IGNORE)).take(self.ids.len())
    }
}

/// Documents laid end to end. The three lists have the same length, `T`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    pub ids: Vec<u32>,
    /// The place of each token in its own document, from 0.
    pub positions: Vec<u32>,
    /// The id that follows in the same document where that one is trained on, else [`IGNORE`].
    pub labels: Vec<u32>,
}

impl Batch {
    /// The batch that holds these documents in their order.
    pub fn from_documents(documents: &[Document]) -> Self {
        let mut batch = Self::default();
        for document in documents {
            batch.ids.extend(&document.ids);
            batch.positions.extend((0..).take(document.ids.len()));
            batch.labels.extend(document.labels());
        }
        batch
    }

    /// How many tokens the model sees.
    pub fn n_tokens(&self) -> usize {
        self.ids.len()
    }

    /// How many tokens count towards the loss.
    pub fn n_trained(&self) -> usize {
        self.labels.iter().filter(|label| **label != IGNORE).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(ids: &[u32], trained: &[bool]) -> Document {
        Document { ids: ids.to_vec(), trained: trained.to_vec() }
    }

    #[test]
    fn labels_and_positions_stay_inside_a_document() {
        let documents =
            [document(&[5, 6, 7], &[true, false, true]), document(&[8], &[true]), document(&[9, 1], &[false, true])];
        let batch = Batch::from_documents(&documents);
        assert_eq!(batch.ids, [5, 6, 7, 8, 9, 1]);
        assert_eq!(batch.positions, [0, 1, 2, 0, 0, 1]);
        assert_eq!(batch.labels, [IGNORE, 7, IGNORE, IGNORE, 1, IGNORE]);
        assert_eq!((batch.n_tokens(), batch.n_trained()), (6, 2));
        assert_eq!(documents.each_ref().map(Document::n_trained), [1, 0, 1]);
    }

    #[test]
    fn a_batch_of_nothing_is_empty() {
        assert_eq!(Batch::from_documents(&[]), Batch::default());
        assert_eq!(Batch::from_documents(&[Document::default()]).n_tokens(), 0);
    }
}
