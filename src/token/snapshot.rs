//! The token automaton as data, for artifacts: byte automaton, local masks and rests. The vocabulary is
//! not part of it.

use std::sync::Arc;

use crate::automaton::AutomatonSnapshot;
use crate::error::{Error, ErrorKind};
use crate::ids::{StateId, TokenId};
use crate::ir::{Departure, Expander};
use crate::limits::Limits;
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
    pub(crate) bases: Vec<Vec<u64>>,
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
    mask: MaskSnapshot,
    ends: bool,
    closers: Vec<(TokenId, u8)>,
}

/// A mask as stored.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
enum MaskSnapshot {
    Sparse(Vec<TokenId>),
    /// The base alone is a dense mask.
    Delta {
        base: usize,
        added: Vec<TokenId>,
        removed: Vec<TokenId>,
    },
}

/// Collects the dense words that masks share.
#[derive(Debug, Default)]
pub(crate) struct Bases {
    pub(crate) words: Vec<Vec<u64>>,
    known: hashbrown::HashMap<*const u64, usize>,
}

impl Bases {
    fn number(&mut self, words: &Arc<[u64]>) -> usize {
        *self.known.entry(words.as_ptr()).or_insert_with(|| {
            self.words.push(words.to_vec());
            self.words.len() - 1
        })
    }

    fn mask(&mut self, mask: &TokenMask) -> MaskSnapshot {
        match mask.form() {
            Form::Sparse(ids) => MaskSnapshot::Sparse(ids.to_vec()),
            Form::Dense(words) => MaskSnapshot::Delta {
                base: self.number(words),
                added: Vec::new(),
                removed: Vec::new(),
            },
            Form::Delta { base, added, removed } => MaskSnapshot::Delta {
                base: self.number(base),
                added: added.to_vec(),
                removed: removed.to_vec(),
            },
        }
    }
}

impl LocalSnapshot {
    pub(crate) fn new(
        (state, rest, framed, below): LocalKey,
        local: &Local,
        bases: &mut Bases,
    ) -> Self {
        Self {
            state,
            rest,
            framed,
            below,
            mask: bases.mask(&local.mask),
            ends: local.ends,
            closers: local.closers.clone(),
        }
    }

    pub(crate) fn restore(self, width: usize, bases: &[Arc<[u64]>]) -> Option<Local> {
        let form = match self.mask {
            MaskSnapshot::Sparse(ids) => Form::Sparse(ids.into()),
            MaskSnapshot::Delta { base, added, removed } => {
                let base = bases.get(base)?.clone();
                match (&added[..], &removed[..]) {
                    ([], []) => Form::Dense(base),
                    _ => Form::Delta { base, added: added.into(), removed: removed.into() },
                }
            }
        };
        let inside = self.closers.iter().all(|(token, _)| token.index() < width);
        let mask = TokenMask::from_form(width, form).filter(|_| inside)?;
        Some(Local { mask, ends: self.ends, closers: self.closers })
    }
}

impl TokenAutomatonSnapshot {
    /// Returns the token automaton over `vocabulary` under `limits`, with `decode` to read the expander
    /// of its grammar.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Artifact`] if anything is out of range.
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
        let bases: Vec<Arc<[u64]>> = self.bases.into_iter().map(Into::into).collect();
        let mut locals = Vec::with_capacity(self.locals.len());
        for stored in self.locals {
            let key = (stored.state, stored.rest, stored.framed, stored.below);
            locals.push((key, stored.restore(width, &bases).ok_or_else(damaged)?));
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
