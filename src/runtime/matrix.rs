//! The masks of many sequences at once: sequences in, a matrix of words out, and which rows need it.
//! For those who apply masks elsewhere, such as on a GPU, to the logits of a whole batch.

use std::borrow::Cow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::mask::TokenMask;
use crate::runtime::phases::PhasedSampler;
use crate::runtime::sampler::ConstrainedSampler;
use crate::step_error::StepError;
use crate::token::Matcher;

/// A sequence that may need a mask before its next token.
pub trait Masked: Sync {
    /// Returns the tokens that are legal next, `None` if all are, or [`StepError::Finished`].
    ///
    /// # Errors
    ///
    /// As [`Matcher::mask`].
    fn next_mask(&self) -> Result<Option<Cow<'_, TokenMask>>, StepError>;
}

impl Masked for Matcher {
    fn next_mask(&self) -> Result<Option<Cow<'_, TokenMask>>, StepError> {
        self.mask().map(Some)
    }
}

impl Masked for ConstrainedSampler {
    fn next_mask(&self) -> Result<Option<Cow<'_, TokenMask>>, StepError> {
        if self.is_finished() {
            return Err(StepError::Finished);
        }
        self.mask().map(Some)
    }
}

impl Masked for PhasedSampler {
    fn next_mask(&self) -> Result<Option<Cow<'_, TokenMask>>, StepError> {
        self.parts().last().map_or(Err(StepError::Finished), |(_, part)| part.next_mask())
    }
}

/// A sequence of the batch that may be without a grammar.
impl<S: Masked> Masked for Option<S> {
    fn next_mask(&self) -> Result<Option<Cow<'_, TokenMask>>, StepError> {
        self.as_ref().map_or(Ok(None), Masked::next_mask)
    }
}

impl<S: Masked> Masked for &S {
    fn next_mask(&self) -> Result<Option<Cow<'_, TokenMask>>, StepError> {
        (*self).next_mask()
    }
}

/// What there is to do with a row of logits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum RowState {
    /// The row of the matrix applies.
    Masked,
    /// All tokens are legal: nothing to apply.
    Free,
    /// The sequence has ended: its logits are not needed.
    Finished,
    /// The mask could not be computed. The other rows are not affected.
    Failed(StepError),
}

/// Masks as rows of one matrix. Kept from step to step, it allocates only when the batch grows.
///
/// ```
/// use schemac::runtime::{MaskMatrix, RowState};
/// use schemac::{Compiler, Matcher, Vocabulary};
///
/// let compiler = Compiler::new(Vocabulary::embedded());
/// let yes = Matcher::new(compiler.compile_regex("yes")?);
/// let batch = [Some(yes.clone()), None, Some(yes)];
/// let mut matrix = MaskMatrix::new(compiler.vocabulary().len());
/// let states = matrix.fill(&batch, 2);
/// assert!(matches!(states, [RowState::Masked, RowState::Free, RowState::Masked]));
/// assert_eq!(matrix.row(0), matrix.row(2));
/// # Ok::<(), schemac::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MaskMatrix {
    per_row: usize,
    words: Vec<u64>,
    states: Vec<RowState>,
}

impl MaskMatrix {
    /// Returns a matrix without rows, for masks of `width` tokens.
    #[must_use]
    pub const fn new(width: usize) -> Self {
        Self { per_row: width.div_ceil(64), words: Vec::new(), states: Vec::new() }
    }

    /// Computes the masks of all sequences on up to `threads` threads, this one included, and returns
    /// what there is to do with each row.
    ///
    /// Masks that are known cost less than a thread does to start: more threads than one pay where masks
    /// are yet to be made.
    ///
    /// # Panics
    ///
    /// If a mask is wider than the matrix.
    pub fn fill<S: Masked>(&mut self, sequences: &[S], threads: usize) -> &[RowState] {
        let per_row = self.per_row.max(1);
        self.words.resize(sequences.len() * per_row, 0);
        self.states.clear();
        self.states.resize(sequences.len(), RowState::Free);
        let rows = self.words.chunks_mut(per_row).zip(&mut self.states).zip(sequences);
        let threads = threads.clamp(1, sequences.len().max(1));
        if threads == 1 {
            rows.for_each(|((words, state), sequence)| *state = fill_row(sequence, words));
            return &self.states;
        }
        // Rows differ in cost by a thousand times, so that each thread takes the next that is left.
        let rows: Vec<_> = rows.map(|row| Mutex::new(Some(row))).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                let row = row.lock().ok().and_then(|mut row| row.take());
                if let Some(((words, state), sequence)) = row {
                    *state = fill_row(sequence, words);
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        drop(rows);
        &self.states
    }

    /// Returns what there is to do with each row.
    #[must_use]
    pub fn states(&self) -> &[RowState] {
        &self.states
    }

    /// Returns the words of all rows, one row after another: bit `i % 64` of word `i / 64` is token
    /// `i`, 1 is legal. Rows that are free have all bits set, finished and failed ones none.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the words of one row.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    #[must_use]
    pub fn row(&self, row: usize) -> &[u64] {
        &self.words[row * self.per_row..][..self.per_row]
    }
}

fn fill_row<S: Masked>(sequence: &S, words: &mut [u64]) -> RowState {
    let (state, word) = match sequence.next_mask() {
        Ok(Some(mask)) => {
            mask.write_words(words);
            return RowState::Masked;
        }
        Ok(None) => (RowState::Free, !0),
        Err(StepError::Finished) => (RowState::Finished, 0),
        Err(error) => (RowState::Failed(error), 0),
    };
    words.fill(word);
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Compiler;
    use crate::ids::TokenId;
    use crate::runtime::policy::Policy;
    use crate::vocab::{Token, Vocabulary};

    /// All single bytes and one end token.
    fn compiler() -> Compiler {
        let mut tokens: Vec<_> = (0..=255).map(|byte| Token::Text([byte].into())).collect();
        tokens.push(Token::Special("<end>".into()));
        Compiler::new(Vocabulary::new(tokens, [TokenId::new(256)]).unwrap().into())
    }

    fn matcher(compiler: &Compiler, pattern: &str, text: &str) -> Matcher {
        let mut matcher = Matcher::new(compiler.compile_regex(pattern).unwrap());
        matcher.accept_bytes(text.as_bytes()).unwrap();
        matcher
    }

    #[test]
    fn each_row_is_the_mask_of_its_sequence_however_many_threads_there_are() {
        let compiler = compiler();
        let batch: Vec<Option<Matcher>> = (0..50)
            .map(|i| (i % 7 != 3).then(|| matcher(&compiler, "[a-z]{3}[0-9]+", &"abc12"[..i % 6])))
            .collect();
        let mut matrix = MaskMatrix::new(257);
        for threads in [0, 1, 2, 3, 64] {
            let states = matrix.fill(&batch, threads).to_vec();
            for (i, sequence) in batch.iter().enumerate() {
                match sequence {
                    Some(matcher) => {
                        assert!(matches!(states[i], RowState::Masked), "row {i}");
                        assert_eq!(*matrix.row(i), *matcher.mask().unwrap().words(), "row {i}");
                    }
                    None => {
                        assert!(matches!(states[i], RowState::Free), "row {i}");
                        assert!(matrix.row(i).iter().all(|&word| word == !0));
                    }
                }
            }
        }
        assert_eq!(matrix.words().len(), 50 * 5);
    }

    #[test]
    fn finished_and_failed_rows_are_reported_and_empty() {
        let compiler = compiler();
        let mut done = matcher(&compiler, "ab", "ab");
        done.accept(TokenId::new(256)).unwrap();
        let mut stopped =
            ConstrainedSampler::new(compiler.compile_regex("a").unwrap(), Policy::greedy())
                .unwrap();
        stopped.accept(TokenId::new(97)).unwrap();
        stopped.accept(TokenId::new(256)).unwrap();
        // A vocabulary that cannot spell the grammar.
        let letters = vec![Token::Text(b"a".as_slice().into()), Token::Special("<end>".into())];
        let letters = Vocabulary::new(letters, [TokenId::new(1)]).unwrap();
        let stuck = Matcher::new(Compiler::new(letters.into()).compile_regex("b").unwrap());
        let mut matrix = MaskMatrix::new(257);
        assert!(matches!(matrix.fill(&[stopped], 2), [RowState::Finished]));
        let states = matrix.fill(&[&done, &stuck], 2);
        assert!(matches!(states[0], RowState::Finished));
        assert!(matches!(states[1], RowState::Failed(StepError::AllTokensIllegal { .. })));
        assert!(matrix.words().iter().all(|&word| word == 0));
        assert!(matrix.fill::<Matcher>(&[], 2).is_empty());
        assert!(matrix.words().is_empty());
    }
}
