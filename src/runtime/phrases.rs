//! Phrases in the output, across the borders of tokens: an automaton of texts and a vocabulary in, the
//! tokens that would complete a banned one, and where a text to stop at has appeared, out.
//!
//! The automaton is that of Aho and Corasick, "Efficient string matching" (1975). The tokens that
//! complete a phrase depend on its state alone; they are found by a walk of the vocabulary's trie when
//! the state is first met, and then kept for all sequences.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use hashbrown::HashMap;

use crate::ids::TokenId;
use crate::vocab::Vocabulary;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// Texts that are looked for.
#[derive(Debug)]
pub(super) struct Phrases {
    nodes: Vec<Node>,
    /// The tokens that complete a phrase, by the state before them.
    completing: RwLock<Map<u32, Arc<[TokenId]>>>,
}

#[derive(Debug, Default)]
struct Node {
    next: Map<u8, u32>,
    /// The longest end of this text with which a phrase begins.
    fallback: u32,
    /// The length of the longest phrase that ends here.
    found: usize,
}

/// The state before the first byte.
pub(super) const START: u32 = 0;

impl Phrases {
    /// Returns the automaton of these texts, of which none is empty.
    pub(super) fn new(texts: &[String]) -> Self {
        let mut nodes = vec![Node::default()];
        for text in texts {
            let mut at = START;
            for &byte in text.as_bytes() {
                let new = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
                let next = *nodes[at as usize].next.entry(byte).or_insert(new);
                if next == new {
                    nodes.push(Node::default());
                }
                at = next;
            }
            nodes[at as usize].found = text.len();
        }
        // Shorter texts before longer ones, so that fallbacks of fallbacks are known.
        let mut queue: VecDeque<u32> = nodes[0].next.values().copied().collect();
        while let Some(at) = queue.pop_front() {
            let children: Vec<(u8, u32)> =
                nodes[at as usize].next.iter().map(|(&b, &n)| (b, n)).collect();
            for (byte, child) in children {
                let fallback = follow(&nodes, nodes[at as usize].fallback, byte);
                nodes[child as usize].fallback = fallback;
                let found = nodes[fallback as usize].found;
                let own = &mut nodes[child as usize].found;
                *own = (*own).max(found);
                queue.push_back(child);
            }
        }
        Self { nodes, completing: RwLock::default() }
    }

    /// Returns the state after `byte`.
    pub(super) fn step(&self, state: u32, byte: u8) -> u32 {
        follow(&self.nodes, state, byte)
    }

    /// Returns the length of the longest phrase that ends in `state`; 0 if none does.
    pub(super) fn found(&self, state: u32) -> usize {
        self.nodes[state as usize].found
    }

    /// Returns the state after `bytes`, and, if a phrase ended on the way, where the first that did
    /// began: the number of bytes of `bytes` before it, negative if it began before them.
    pub(super) fn read(&self, mut state: u32, bytes: &[u8]) -> (u32, Option<isize>) {
        for (index, &byte) in bytes.iter().enumerate() {
            state = self.step(state, byte);
            let found = self.found(state);
            if found > 0 {
                let end = index.cast_signed() + 1;
                return (state, Some(end - found.cast_signed()));
            }
        }
        (state, None)
    }

    /// Returns the tokens with which a phrase would be completed after `state`, ascending.
    pub(super) fn completing(&self, state: u32, vocabulary: &Vocabulary) -> Arc<[TokenId]> {
        let read = self.completing.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = read.get(&state) {
            return known.clone();
        }
        drop(read);
        let trie = vocabulary.trie();
        let mut found: Vec<TokenId> = Vec::new();
        let mut pending: Vec<(usize, u32)> =
            (0..=u8::MAX).filter_map(|byte| trie.root_child(byte)).map(|n| (n, state)).collect();
        while let Some((node, before)) = pending.pop() {
            let after = self.step(before, trie.byte(node));
            if self.found(after) > 0 {
                found.extend_from_slice(trie.subtree_tokens(node));
            } else {
                pending.extend(trie.children(node).map(|child| (child, after)));
            }
        }
        found.sort_unstable();
        let found: Arc<[TokenId]> = found.into();
        let mut write = self.completing.write().unwrap_or_else(PoisonError::into_inner);
        write.entry(state).or_insert(found).clone()
    }
}

fn follow(nodes: &[Node], mut state: u32, byte: u8) -> u32 {
    loop {
        let node = &nodes[state as usize];
        if let Some(&next) = node.next.get(&byte) {
            return next;
        }
        if state == START {
            return START;
        }
        state = node.fallback;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrases(texts: &[&str]) -> Phrases {
        Phrases::new(&texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn phrases_are_found_wherever_they_end() {
        let texts = ["he", "she", "hers", "aab", "é"];
        let all = phrases(&texts);
        for text in ["ushers", "aaab", "aaaaab", "caféx", "hher", "", "shshe", "hershe"] {
            let mut state = START;
            for (end, &byte) in text.as_bytes().iter().enumerate() {
                state = all.step(state, byte);
                let so_far = &text.as_bytes()[..=end];
                let longest =
                    texts.iter().filter(|t| so_far.ends_with(t.as_bytes())).map(|t| t.len()).max();
                assert_eq!(all.found(state), longest.unwrap_or(0), "{text} {end}");
            }
        }
        assert_eq!(all.read(START, b"xxshe").1, Some(2));
        let (state, none) = all.read(START, b"xs");
        assert_eq!(none, None);
        assert_eq!(all.read(state, b"hers").1, Some(-1), "`she` began a byte before");
    }

    #[test]
    fn tokens_that_complete_a_phrase_are_those_whose_bytes_do() {
        let vocabulary = Vocabulary::embedded();
        let all = phrases(&["the", "\": \"", "{}"]);
        for before in ["", "t", "xth", "\":", "{", "oth\""] {
            let (state, _) = all.read(START, before.as_bytes());
            let found = all.completing(state, &vocabulary);
            let expected: Vec<TokenId> = vocabulary
                .ids()
                .filter(|&id| all.read(state, vocabulary.bytes(id)).1.is_some())
                .collect();
            assert_eq!(*found, expected, "{before}");
            assert!(expected.len() > 1);
        }
    }
}
