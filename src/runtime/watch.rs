//! The texts that end an output and the phrases that must not be in it: a policy and the tokens of one
//! sequence in; which tokens are banned, and whether and where the output has stopped, out.

use std::sync::Arc;

use crate::ids::TokenId;
use crate::runtime::phrases::{Phrases, START};
use crate::runtime::policy::Policy;
use crate::vocab::Vocabulary;

/// What is looked for, shared by all sequences of a policy.
#[derive(Debug)]
struct Texts {
    stop: Phrases,
    ban: Phrases,
}

/// Where one sequence stands.
#[derive(Clone, Debug, Default)]
pub(super) struct Watch {
    /// `None` if nothing is looked for.
    texts: Option<Arc<Texts>>,
    /// The places after each token.
    places: Vec<Place>,
    /// The number of bytes before the text that ended the output.
    stopped: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    stop: u32,
    ban: u32,
    bytes: usize,
}

impl Watch {
    pub(super) fn new(policy: &Policy) -> Self {
        let needed = !policy.stop.is_empty() || !policy.ban.is_empty();
        let texts = needed.then(|| {
            let (stop, ban) = (Phrases::new(&policy.stop), Phrases::new(&policy.ban));
            Arc::new(Texts { stop, ban })
        });
        Self { texts, ..Self::default() }
    }

    fn place(&self) -> Place {
        self.places.last().copied().unwrap_or(Place { stop: START, ban: START, bytes: 0 })
    }

    /// Returns the tokens that would complete a banned phrase, ascending.
    pub(super) fn banned(&self, vocabulary: &Vocabulary) -> Option<Arc<[TokenId]>> {
        let texts = self.texts.as_ref()?;
        Some(texts.ban.completing(self.place().ban, vocabulary))
    }

    /// Returns whether these bytes would complete a banned phrase.
    pub(super) fn bans(&self, bytes: &[u8]) -> bool {
        let texts = self.texts.as_ref();
        texts.is_some_and(|texts| texts.ban.read(self.place().ban, bytes).1.is_some())
    }

    /// Returns the number of bytes before the text that ended the output, if one did.
    pub(super) const fn stopped(&self) -> Option<usize> {
        self.stopped
    }

    /// Follows a token that was accepted.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let Some(texts) = &self.texts else { return };
        let before = self.place();
        let (stop, found) = texts.stop.read(before.stop, bytes);
        let (ban, _) = texts.ban.read(before.ban, bytes);
        if let Some(offset) = found {
            self.stopped = before.bytes.checked_add_signed(offset);
        }
        self.places.push(Place { stop, ban, bytes: before.bytes + bytes.len() });
    }

    /// Goes back by `tokens` tokens, or to the start.
    pub(super) fn truncate(&mut self, tokens: usize) {
        if tokens > 0 {
            self.places.truncate(self.places.len().saturating_sub(tokens));
            self.stopped = None;
        }
    }
}
