//! The token automaton as data, for artifacts: byte automaton, local masks and rests. The vocabulary is
//! not part of it.

use std::sync::Arc;

use crate::automaton::AutomatonSnapshot;
use crate::error::{Error, ErrorKind};
use crate::ids::{StateId, TokenId};
use crate::ir::{Departure, Expander};
use crate::limits::{BudgetExceeded, Limits};
use crate::mask::{Form, TokenMask};
use crate::token::local::Local;
use crate::token::tables::LocalKey;
use crate::vocab::{Trie, Vocabulary};

/// A token automaton as stored.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct TokenAutomatonSnapshot {
    pub(crate) automaton: AutomatonSnapshot,
    pub(crate) departures: Vec<Departure>,
    /// Dense words that several masks share.
    pub(crate) bases: Vec<BaseSnapshot>,
    /// The masks that differ from each other.
    pub(crate) masks: Vec<MaskSnapshot>,
    pub(crate) locals: Vec<LocalSnapshot>,
    pub(crate) rests: Vec<Trie>,
}

/// A local mask as stored.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct LocalSnapshot {
    pub(crate) state: StateId,
    /// 0 for the vocabulary, else one more than a position in the tries of rests.
    pub(crate) rest: u32,
    pub(crate) framed: bool,
    pub(crate) below: Option<u32>,
    /// A position in the masks.
    mask: usize,
    ends: bool,
    closers: Vec<(TokenId, u8)>,
}

/// Dense words as stored: where they differ from others, or from zeros.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct BaseSnapshot {
    /// How many bases before this one stands the other, or 0 for none.
    back: usize,
    /// Words that differ: how many equal ones come before each, and its exclusive or with the other.
    changes: Vec<(u32, u64)>,
}

impl BaseSnapshot {
    /// Bases before this one that are tried as the other.
    const TRIED: usize = 8;

    fn new(words: &[u64], before: &[Arc<[u64]>]) -> Self {
        let differing = |other: &[u64]| words.iter().zip(other).filter(|(a, b)| a != b).count();
        let tried = before.iter().rev().take(Self::TRIED).enumerate();
        let nearest = tried.min_by_key(|(_, other)| differing(other));
        let zeros = words.iter().filter(|&&word| word != 0).count();
        let (back, other) = match nearest {
            Some((i, other)) if differing(other) < zeros => (i + 1, &other[..]),
            _ => (0, &[][..]),
        };
        let mut changes = Vec::new();
        let mut equal = 0;
        for (i, &word) in words.iter().enumerate() {
            match word ^ other.get(i).copied().unwrap_or(0) {
                0 => equal += 1,
                change => {
                    changes.push((equal, change));
                    equal = 0;
                }
            }
        }
        Self { back, changes }
    }

    /// Returns the words, `len` of them, or `None` if they go on past that or the other is missing.
    fn restore(&self, len: usize, before: &[Arc<[u64]>]) -> Option<Arc<[u64]>> {
        let mut words = match self.back {
            0 => vec![0; len],
            back => before.get(before.len().checked_sub(back)?)?.to_vec(),
        };
        let mut at = 0_usize;
        for &(equal, change) in &self.changes {
            at = at.checked_add(equal as usize)?;
            *words.get_mut(at)? ^= change;
            at += 1;
        }
        Some(words.into())
    }
}

/// Sorted ids as stored: how far each is from the one before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct Gaps(Vec<u32>);

impl Gaps {
    fn new(ids: &[TokenId]) -> Self {
        let mut before = 0;
        let gap = |id: &TokenId| id.get() - std::mem::replace(&mut before, id.get());
        Self(ids.iter().map(gap).collect())
    }

    fn restore(&self) -> Option<Arc<[TokenId]>> {
        let mut id = 0_u32;
        let next = |gap: &u32| {
            id = id.checked_add(*gap)?;
            Some(TokenId::new(id))
        };
        self.0.iter().map(next).collect()
    }
}

/// A mask as stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) enum MaskSnapshot {
    Sparse(Gaps),
    /// The base alone is a dense mask.
    Delta {
        base: usize,
        added: Gaps,
        removed: Gaps,
    },
}

impl MaskSnapshot {
    fn restore(&self, width: usize, bases: &[Arc<[u64]>]) -> Option<TokenMask> {
        let form = match self {
            Self::Sparse(ids) => Form::Sparse(ids.restore()?),
            Self::Delta { base, added, removed } => {
                let base = bases.get(*base)?.clone();
                let (added, removed) = (added.restore()?, removed.restore()?);
                if added.is_empty() && removed.is_empty() {
                    Form::Dense(base)
                } else {
                    Form::Delta { base, added, removed }
                }
            }
        };
        TokenMask::from_form(width, form)
    }
}

/// Collects the masks, and the dense words that they share, each once.
#[derive(Debug, Default)]
pub(crate) struct Masks {
    words: Vec<Arc<[u64]>>,
    known_words: hashbrown::HashMap<Arc<[u64]>, usize>,
    masks: Vec<MaskSnapshot>,
    known_masks: hashbrown::HashMap<MaskSnapshot, usize>,
}

impl Masks {
    /// Returns the bases and the masks.
    pub(crate) fn finish(self) -> (Vec<BaseSnapshot>, Vec<MaskSnapshot>) {
        let words = self.words.iter().enumerate();
        let bases = words.map(|(i, words)| BaseSnapshot::new(words, &self.words[..i])).collect();
        (bases, self.masks)
    }

    fn base(&mut self, words: &Arc<[u64]>) -> usize {
        *self.known_words.entry(Arc::clone(words)).or_insert_with(|| {
            self.words.push(Arc::clone(words));
            self.words.len() - 1
        })
    }

    fn number(&mut self, mask: &TokenMask) -> usize {
        let snapshot = match mask.form() {
            Form::Sparse(ids) => MaskSnapshot::Sparse(Gaps::new(ids)),
            Form::Dense(words) => MaskSnapshot::Delta {
                base: self.base(words),
                added: Gaps::new(&[]),
                removed: Gaps::new(&[]),
            },
            Form::Delta { base, added, removed } => MaskSnapshot::Delta {
                base: self.base(base),
                added: Gaps::new(added),
                removed: Gaps::new(removed),
            },
        };
        if let Some(&known) = self.known_masks.get(&snapshot) {
            return known;
        }
        self.masks.push(snapshot.clone());
        self.known_masks.insert(snapshot, self.masks.len() - 1);
        self.masks.len() - 1
    }
}

impl LocalSnapshot {
    pub(crate) fn new(
        (state, rest, framed, below): LocalKey,
        local: &Local,
        masks: &mut Masks,
    ) -> Self {
        Self {
            state,
            rest,
            framed,
            below,
            mask: masks.number(&local.mask),
            ends: local.ends,
            closers: local.closers.clone(),
        }
    }

    fn restore(self, width: usize, masks: &[TokenMask]) -> Option<Local> {
        let inside = self.closers.iter().all(|(token, _)| token.index() < width);
        let mask = masks.get(self.mask).filter(|_| inside)?.clone();
        Some(Local { mask, ends: self.ends, closers: self.closers })
    }
}

impl TokenAutomatonSnapshot {
    /// Returns the token automaton over `vocabulary` under `limits`, with `decode` to read the expander
    /// of its grammar.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Artifact`] if anything is out of range, and [`ErrorKind::BudgetExceeded`] if the masks
    /// take more than [`Limits::mask_bytes`].
    pub fn restore(
        self,
        vocabulary: Arc<Vocabulary>,
        limits: Limits,
        decode: impl FnOnce(&[u8]) -> Result<Box<dyn Expander>, Error>,
    ) -> Result<crate::token::TokenAutomaton, Error> {
        let damaged = || Error::new(ErrorKind::Artifact, "the stored masks are damaged");
        let automaton = self.automaton.restore(limits, decode)?;
        let width = vocabulary.len();
        let tries_ok = self.rests.iter().all(|trie| {
            trie.is_well_formed() && trie.subtree_tokens(0).iter().all(|id| id.index() < width)
        });
        let rest_ok = |rest: u32| rest as usize <= self.rests.len();
        let locals_ok = self.locals.iter().all(|local| {
            local.state.index() < automaton.state_count()
                && rest_ok(local.rest)
                && local.below.is_none_or(|below| below > 0 && rest_ok(below))
        });
        if !tries_ok || !locals_ok {
            return Err(damaged());
        }
        // A few bytes of a file can stand for a whole base, so that their number is bounded.
        let len = width.div_ceil(64);
        let bytes = self.bases.len().saturating_mul(len * 8);
        let limit = automaton.limits().mask_bytes;
        if bytes > limit {
            return Err(BudgetExceeded::new("mask_bytes", limit as u64).into());
        }
        let mut bases: Vec<Arc<[u64]>> = Vec::with_capacity(self.bases.len());
        for base in &self.bases {
            bases.push(base.restore(len, &bases).ok_or_else(damaged)?);
        }
        let masks = self.masks.iter().map(|mask| mask.restore(width, &bases));
        let masks = masks.collect::<Option<Vec<TokenMask>>>().ok_or_else(damaged)?;
        let mut locals = Vec::with_capacity(self.locals.len());
        for stored in self.locals {
            let key = (stored.state, stored.rest, stored.framed, stored.below);
            locals.push((key, stored.restore(width, &masks).ok_or_else(damaged)?));
        }
        Ok(crate::token::TokenAutomaton::restore(
            automaton,
            vocabulary,
            self.departures,
            locals,
            self.rests,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(all: &[u64]) -> Arc<[u64]> {
        all.into()
    }

    #[test]
    fn bases_come_back_and_near_ones_are_stored_by_their_difference() {
        let bases = [words(&[!0, 1, 0, 5]), words(&[!0, 1, 0, 7]), words(&[0, 0, 0, 0])];
        let stored: Vec<BaseSnapshot> =
            (0..3).map(|i| BaseSnapshot::new(&bases[i], &bases[..i])).collect();
        assert_eq!((stored[0].back, stored[0].changes.len()), (0, 3));
        // 5 becomes 7 by one bit; three words are equal before it.
        assert_eq!((stored[1].back, &stored[1].changes[..]), (1, &[(3, 2)][..]));
        assert_eq!((stored[2].back, stored[2].changes.len()), (0, 0));
        for i in 0..3 {
            assert_eq!(stored[i].restore(4, &bases[..i]).unwrap(), bases[i]);
        }
    }

    #[test]
    fn bases_that_go_on_past_their_end_or_lean_on_none_are_refused() {
        let before = [words(&[1, 2])];
        let base = |back, changes| BaseSnapshot { back, changes };
        assert!(base(1, vec![(1, 9)]).restore(2, &before).is_some());
        assert!(base(2, vec![]).restore(2, &before).is_none());
        assert!(base(0, vec![(2, 9)]).restore(2, &before).is_none());
        assert!(base(0, vec![(0, 1), (u32::MAX, 1)]).restore(2, &before).is_none());
    }

    #[test]
    fn ids_come_back_from_their_gaps_and_too_large_ones_are_refused() {
        let ids: Vec<TokenId> = [0, 1, 7, 4_000_000_000].map(TokenId::new).into();
        let gaps = Gaps::new(&ids);
        assert_eq!(gaps.0, [0, 1, 6, 3_999_999_993]);
        assert_eq!(*gaps.restore().unwrap(), *ids);
        assert!(Gaps(vec![u32::MAX, 1]).restore().is_none());
    }
}
