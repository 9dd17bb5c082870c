//! Where tokens leave plain JSON text, as positions in the trie of a vocabulary: a state that loops on
//! plain text takes a whole subtree at once, but for these places.

use crate::vocab::{RunClass, Trie};

/// A node at which a text that was plain so far is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    /// The node.
    pub(crate) node: usize,
    /// The bytes of an unfinished character before it.
    partial: [u8; 3],
    /// How many those are.
    partial_len: u8,
}

impl Exit {
    /// Returns the bytes of an unfinished character right before the node, which its byte does not
    /// continue: none where the byte is a character outside the class.
    pub(crate) fn partial(&self) -> &[u8] {
        &self.partial[..usize::from(self.partial_len)]
    }
}

/// The exits of a trie in ascending order.
#[derive(Debug)]
pub(crate) struct Exits {
    exits: Vec<Exit>,
    /// Nodes from which on the tokens start in the middle of a character, and the first after them.
    unaligned: (usize, usize),
}

/// Where in a character the bytes so far stand: how many are to come, and the bounds of the next.
#[derive(Clone, Copy)]
struct Utf8 {
    left: u8,
    low: u8,
    high: u8,
    /// The bytes of the character so far, and how many they are.
    partial: [u8; 3],
    len: u8,
}

impl Utf8 {
    const START: Self = Self { left: 0, low: 0, high: 0, partial: [0; 3], len: 0 };

    /// Returns where `byte` leads, or `None` if it leaves the class or is not well formed (RFC 3629
    /// section 4).
    fn next(self, byte: u8, class: &RunClass) -> Option<Self> {
        if self.left > 0 {
            let inside = (self.low..=self.high).contains(&byte);
            return inside.then(|| self.with(byte, self.left - 1, 0x80, 0xbf));
        }
        let (left, low, high) = match byte {
            0..=0x7f => return class.ascii.contains(byte).then_some(Self::START),
            0xc2..=0xdf => (1, 0x80, 0xbf),
            0xe0 => (2, 0xa0, 0xbf),
            0xed => (2, 0x80, 0x9f),
            0xe1..=0xef => (2, 0x80, 0xbf),
            0xf0 => (3, 0x90, 0xbf),
            0xf1..=0xf3 => (3, 0x80, 0xbf),
            0xf4 => (3, 0x80, 0x8f),
            _ => return None,
        };
        class.others.then(|| Self::START.with(byte, left, low, high))
    }

    /// Returns where one more byte leads, after which `left` are to come.
    fn with(mut self, byte: u8, left: u8, low: u8, high: u8) -> Self {
        if left == 0 {
            return Self::START;
        }
        self.partial[usize::from(self.len)] = byte;
        Self { left, low, high, len: self.len + 1, ..self }
    }
}

impl Exits {
    /// Returns the exits of `trie`. Costs one pass over it.
    pub(crate) fn new(trie: &Trie) -> Self {
        let class = RunClass::json_text();
        let mut exits = Vec::new();
        let mut open: Vec<(usize, Utf8)> = Vec::new();
        for node in 1..trie.len() {
            while open.last().is_some_and(|&(end, _)| end <= node) {
                open.pop();
            }
            let before = open.last().map_or(Utf8::START, |&(_, at)| at);
            match before.next(trie.byte(node), &class) {
                Some(at) => open.push((trie.end(node), at)),
                None => {
                    exits.push(Exit { node, partial: before.partial, partial_len: before.len });
                    // What follows an exit is plain text or not on its own account.
                    open.push((trie.end(node), Utf8::START));
                }
            }
        }
        let first = (0x80..=0xbf).find_map(|byte| trie.root_child(byte)).unwrap_or(trie.len());
        let last = (0x80..=0xbf).rev().find_map(|byte| trie.root_child(byte));
        Self { exits, unaligned: (first, last.map_or(first, |node| trie.end(node))) }
    }

    /// Returns whether the tokens through `node` start with a whole character.
    pub(crate) fn is_aligned(&self, node: usize) -> bool {
        node < self.unaligned.0 || node >= self.unaligned.1
    }

    /// Returns the exits strictly below `node`, whose subtree ends at `end`.
    pub(crate) fn between(&self, node: usize, end: usize) -> &[Exit] {
        let start = self.exits.partition_point(|exit| exit.node <= node);
        let stop = self.exits.partition_point(|exit| exit.node < end);
        &self.exits[start..stop]
    }
}
