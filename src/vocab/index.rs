//! What is derived of a vocabulary once and shared by all grammars: its trie, and the runs of the
//! usual classes of characters.

use std::sync::OnceLock;

use crate::vocab::exits::Exits;
use crate::vocab::quotient::{Partition, QUOTIENTS};
use crate::vocab::{RunClass, Runs, Trie, Vocabulary};

/// The derived tables of a vocabulary. Each is made when it is first asked for.
#[derive(Debug, Default)]
pub struct Index {
    trie: OnceLock<Trie>,
    runs: [OnceLock<Runs>; 3],
    exits: OnceLock<Exits>,
    partitions: OnceLock<[Partition; QUOTIENTS]>,
    quotients: [OnceLock<Trie>; QUOTIENTS],
}

impl Index {
    /// Returns the trie of all text tokens.
    pub fn trie(&self, vocabulary: &Vocabulary) -> &Trie {
        self.trie.get_or_init(|| Trie::new(vocabulary))
    }

    /// Returns the classes for which runs are kept, the most usual first.
    #[must_use]
    pub fn classes() -> [RunClass; 3] {
        [RunClass::json_text(), RunClass::line(), RunClass::any()]
    }

    /// Returns the runs of class number `class` of [`Index::classes`].
    pub fn runs(&self, vocabulary: &Vocabulary, class: usize) -> Option<&Runs> {
        let wanted = *Self::classes().get(class)?;
        Some(self.runs.get(class)?.get_or_init(|| Runs::new(vocabulary, wanted)))
    }

    /// Returns where tokens leave plain JSON text.
    pub(crate) fn text_exits(&self, vocabulary: &Vocabulary) -> &Exits {
        self.exits.get_or_init(|| Exits::new(self.trie(vocabulary)))
    }

    /// Returns usual partition number `number` of the bytes, and the quotient of the trie by it.
    pub fn quotient(&self, vocabulary: &Vocabulary, number: usize) -> Option<(&Partition, &Trie)> {
        let partition = self.partitions.get_or_init(Partition::usual).get(number)?;
        let make = || self.trie(vocabulary).quotient(partition);
        Some((partition, self.quotients.get(number)?.get_or_init(make)))
    }
}
