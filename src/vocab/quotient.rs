//! Quotient tries: bytes that a part of a grammar cannot tell apart are one, so that tokens with the
//! same fate share a path (DESIGN.md section 5).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::vocab::Trie;

/// A partition of the 256 bytes: for each byte the least byte of its class.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Partition(Box<[u8; 256]>);

impl Partition {
    /// Returns the partition of the bytes by the values of `class_of`, with [`EXACT_FROM`] apart.
    #[must_use]
    pub fn new(class_of: &[u8; 256]) -> Self {
        Self(Box::new([0; 256])).meet(class_of)
    }

    /// Returns the least byte of the class of `byte`.
    #[must_use]
    pub fn least(&self, byte: u8) -> u8 {
        self.0[usize::from(byte)]
    }

    /// Returns whether bytes of one class here always have one value in `class_of`.
    #[must_use]
    pub fn refines(&self, class_of: &[u8; 256]) -> bool {
        (0..256).all(|byte| class_of[byte] == class_of[usize::from(self.0[byte])])
    }

    /// Returns the coarsest partition that refines this one and the one by `class_of`, with
    /// [`EXACT_FROM`] apart.
    #[must_use]
    pub fn meet(&self, class_of: &[u8; 256]) -> Self {
        let mut first: hashbrown::HashMap<(u8, u8, bool), u8> = hashbrown::HashMap::new();
        let mut least = Box::new([0; 256]);
        for byte in 0..=255_u8 {
            let key = (self.least(byte), class_of[usize::from(byte)], byte == EXACT_FROM);
            least[usize::from(byte)] = *first.entry(key).or_insert(byte);
        }
        Self(least)
    }
}

impl std::fmt::Debug for Partition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let classes = (0..=255).filter(|&byte| self.least(byte) == byte).count();
        write!(f, "Partition({classes} classes)")
    }
}

/// The byte from which on a quotient keeps all bytes apart: it ends JSON strings, and what follows is
/// for other states to read.
pub const EXACT_FROM: u8 = b'"';

/// Partitions whose quotient of one vocabulary is kept. Each takes about a megabyte for a vocabulary
/// of 128,000 tokens; the patterns of 500 public schemas need about thirty.
const KEPT: usize = 64;

/// The quotients of a vocabulary's trie, the least recently used last to go.
#[derive(Debug, Default)]
pub(super) struct Quotients {
    recent: Mutex<VecDeque<(Partition, Option<Arc<Trie>>)>>,
}

impl Quotients {
    /// Returns the quotient of `trie` by a partition. It is made when it is asked for the second time,
    /// since making it costs more than one walk; the first time the answer is `None`.
    pub(super) fn get(&self, trie: &Trie, partition: &Partition) -> Option<Arc<Trie>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let known = recent.iter().position(|(known, _)| known == partition);
        let Some((_, quotient)) = known.and_then(|index| recent.remove(index)) else {
            recent.push_front((partition.clone(), None));
            recent.truncate(KEPT);
            return None;
        };
        let quotient = quotient.unwrap_or_else(|| Arc::new(trie.quotient(partition)));
        recent.push_front((partition.clone(), Some(quotient.clone())));
        Some(quotient)
    }
}
