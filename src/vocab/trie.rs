//! Tries over token bytes: the tokens of a vocabulary, or the rests of tokens, each node with the
//! tokens that end there. The token automaton walks them.
//!
//! A trie is flat: nodes stand depth first, a node's children follow it, and `end` is where the next
//! node outside its subtree stands. Walking forward and skipping subtrees touches memory in order.

use std::hash::{BuildHasher, Hash, Hasher};

use hashbrown::HashMap;

use crate::ids::TokenId;
use crate::vocab::Vocabulary;
use crate::vocab::quotient::{Partition, is_exact_from};

/// A flat depth-first trie. Node 0 is the root, which has no byte and no tokens.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Trie {
    /// The byte that leads to each node.
    bytes: Vec<u8>,
    /// For each node the first node after its subtree.
    ends: Vec<u32>,
    /// For each node where its tokens end in `tokens`; they start where those of the node before end.
    token_ends: Vec<u32>,
    /// The tokens of all nodes, one after another.
    tokens: Vec<TokenId>,
    /// The root's children by byte; 0 is none.
    roots: Box<[u32]>,
}

impl Trie {
    /// Returns the trie of all text tokens of a vocabulary. Costs a sort of the tokens.
    #[must_use]
    pub fn new(vocabulary: &Vocabulary) -> Self {
        let entries = vocabulary.ids().map(|id| (vocabulary.bytes(id), id));
        Self::from_entries(entries.filter(|(bytes, _)| !bytes.is_empty()).collect())
    }

    /// Returns the trie of these texts (none empty) with the tokens that have them.
    #[must_use]
    pub fn from_entries(mut entries: Vec<(&[u8], TokenId)>) -> Self {
        entries.sort_unstable();
        let mut builder = Builder::new();
        let mut path: &[u8] = &[];
        for (text, token) in entries {
            let common = path.iter().zip(text).take_while(|(a, b)| a == b).count();
            builder.close_to(common);
            for &byte in &text[common..] {
                builder.open(byte);
            }
            builder.token(token);
            path = text;
        }
        builder.finish()
    }

    /// Returns the number of nodes, the root included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether no token is in the trie.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == 1
    }

    /// Returns the byte that leads to `node`.
    #[must_use]
    pub fn byte(&self, node: usize) -> u8 {
        self.bytes[node]
    }

    /// Returns the first node after the subtree of `node`.
    #[must_use]
    pub fn end(&self, node: usize) -> usize {
        self.ends[node] as usize
    }

    /// Returns the tokens that end at `node`.
    #[must_use]
    pub fn tokens(&self, node: usize) -> &[TokenId] {
        self.tokens_between(node, node + 1)
    }

    /// Returns the tokens that end in the subtree of `node`, its own included.
    #[must_use]
    pub fn subtree_tokens(&self, node: usize) -> &[TokenId] {
        self.tokens_between(node, self.end(node))
    }

    /// Returns the tokens that end at the nodes from `first` up to, not including, `end`.
    pub(crate) fn tokens_between(&self, first: usize, end: usize) -> &[TokenId] {
        if first >= end {
            return &[];
        }
        let start = first.checked_sub(1).map_or(0, |before| self.token_ends[before] as usize);
        &self.tokens[start..self.token_ends[end - 1] as usize]
    }

    /// Returns the root's child on `byte`.
    #[must_use]
    pub fn root_child(&self, byte: u8) -> Option<usize> {
        match self.roots[usize::from(byte)] {
            0 => None,
            node => Some(node as usize),
        }
    }

    /// Returns the node that `text` leads to.
    #[must_use]
    pub fn find(&self, text: &[u8]) -> Option<usize> {
        let (&first, rest) = text.split_first()?;
        let mut node = self.root_child(first)?;
        for &byte in rest {
            node = self.children(node).find(|&child| self.bytes[child] == byte)?;
        }
        Some(node)
    }

    /// Returns the children of `node` in the order of their bytes.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.end(node);
        let mut next = node + 1;
        std::iter::from_fn(move || {
            (next < end).then(|| {
                let child = next;
                next = self.end(child);
                child
            })
        })
    }

    /// Returns the trie of everything strictly below any of `nodes`: the rests of the tokens that
    /// pass through them.
    #[must_use]
    pub fn below(&self, nodes: &[usize]) -> Self {
        Self::merge(&nodes.iter().map(|&node| (self, node)).collect::<Vec<_>>())
    }

    /// Returns the trie of everything strictly below any of these nodes of tries.
    #[must_use]
    pub fn merge(nodes: &[(&Self, usize)]) -> Self {
        let mut builder = Builder::new();
        // For each depth the sets of children that are still to be visited, last first.
        let mut pending: Vec<Vec<Vec<(&Self, usize)>>> = vec![Self::grouped_children(nodes)];
        while let Some(level) = pending.last_mut() {
            let Some(group) = level.pop() else {
                pending.pop();
                if !pending.is_empty() {
                    builder.close_to(pending.len() - 1);
                }
                continue;
            };
            if let [(trie, node)] = group[..] {
                builder.copy(trie, node);
                continue;
            }
            let Some(&(first, node)) = group.first() else { continue };
            builder.open(first.bytes[node]);
            for &(trie, node) in &group {
                trie.tokens(node).iter().for_each(|&token| builder.token(token));
            }
            pending.push(Self::grouped_children(&group));
        }
        builder.finish()
    }

    /// Returns the trie in which every byte stands for its class, but for the bytes from the first
    /// one of a text that [is read exactly](is_exact_from) on, which stay apart. Costs a look-up for each node.
    #[must_use]
    pub fn quotient(&self, partition: &Partition) -> Self {
        struct Node {
            byte: u8,
            children: Vec<u32>,
            tokens: Vec<TokenId>,
        }
        let node = |byte| Node { byte, children: Vec::new(), tokens: Vec::new() };
        let mut nodes = vec![node(0)];
        let mut ids: HashMap<(u32, u8), u32, foldhash::fast::RandomState> = HashMap::default();
        // For each open node of this trie: its end, its image, and whether bytes stay apart below it.
        let mut open: Vec<(usize, u32, bool)> = vec![(self.len(), 0, false)];
        for index in 1..self.len() {
            while open.last().is_some_and(|&(end, ..)| end <= index) {
                open.pop();
            }
            let (_, parent, exact) = open.last().copied().unwrap_or((0, 0, false));
            let own = self.bytes[index];
            let exact = exact || is_exact_from(own);
            let byte = if exact { own } else { partition.least(own) };
            let image = *ids.entry((parent, byte)).or_insert_with(|| {
                nodes.push(node(byte));
                let id = u32::try_from(nodes.len() - 1).unwrap_or(u32::MAX);
                nodes[parent as usize].children.push(id);
                id
            });
            nodes[image as usize].tokens.extend_from_slice(self.tokens(index));
            open.push((self.end(index), image, exact));
        }
        let mut builder = Builder::new();
        let mut pending: Vec<(u32, usize)> =
            nodes[0].children.iter().map(|&child| (child, 0)).collect();
        pending.sort_by_key(|&(child, _)| std::cmp::Reverse(nodes[child as usize].byte));
        while let Some((id, depth)) = pending.pop() {
            builder.close_to(depth);
            let Node { byte, children, tokens } = &mut nodes[id as usize];
            builder.open(*byte);
            tokens.iter().for_each(|&token| builder.token(token));
            let mut children = std::mem::take(children);
            children.sort_by_key(|&child| std::cmp::Reverse(nodes[child as usize].byte));
            pending.extend(children.into_iter().map(|child| (child, depth + 1)));
        }
        builder.finish()
    }

    /// Returns the children of all nodes grouped by byte, the smallest byte last.
    fn grouped_children<'a>(nodes: &[(&'a Self, usize)]) -> Vec<Vec<(&'a Self, usize)>> {
        let mut children: Vec<(u8, (&Self, usize))> = nodes
            .iter()
            .flat_map(|&(trie, node)| {
                trie.children(node).map(move |child| (trie.bytes[child], (trie, child)))
            })
            .collect();
        children.sort_by_key(|&(byte, _)| std::cmp::Reverse(byte));
        let mut groups: Vec<Vec<(&Self, usize)>> = Vec::new();
        let mut last = None;
        for (byte, child) in children {
            match groups.last_mut() {
                Some(group) if last == Some(byte) => group.push(child),
                _ => groups.push(vec![child]),
            }
            last = Some(byte);
        }
        groups
    }

    /// Returns whether the nodes are nested as a trie's must be; of a stored trie, check this first.
    #[must_use]
    pub fn is_well_formed(&self) -> bool {
        let count = self.bytes.len();
        if count == 0
            || self.ends.len() != count
            || self.token_ends.len() != count
            || self.roots.len() != 256
        {
            return false;
        }
        let mut open: Vec<usize> = Vec::new();
        for node in 0..count {
            while open.last().is_some_and(|&end| end <= node) {
                open.pop();
            }
            let end = self.end(node);
            let inside = open.last().map_or(node == 0 && end == count, |&outer| end <= outer);
            if end <= node || !inside {
                return false;
            }
            let root = open.len() == 1 && node > 0;
            if root && self.roots[usize::from(self.bytes[node])] as usize != node {
                return false;
            }
            open.push(end);
        }
        let roots = self.roots.iter().filter(|&&node| node != 0).count();
        roots == self.children(0).count()
            && self.token_ends.is_sorted()
            && self.token_ends.last().is_some_and(|&last| last as usize == self.tokens.len())
    }

    /// Returns a hash of the content: equal tries have equal hashes within one process.
    #[must_use]
    pub fn content_hash(&self, hasher: &impl BuildHasher) -> u64 {
        let mut state = hasher.build_hasher();
        self.bytes.hash(&mut state);
        self.ends.hash(&mut state);
        self.token_ends.hash(&mut state);
        self.tokens.hash(&mut state);
        state.finish()
    }

    /// Returns the bytes of memory that the trie takes.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.bytes.len() * 9 + self.tokens.len() * 4 + self.roots.len() * 4
    }
}

/// Builds a trie depth first.
struct Builder {
    trie: Trie,
    open: Vec<u32>,
}

impl Builder {
    fn new() -> Self {
        let trie = Trie {
            bytes: vec![0],
            ends: vec![0],
            token_ends: vec![0],
            tokens: Vec::new(),
            roots: vec![0; 256].into(),
        };
        Self { trie, open: Vec::new() }
    }

    fn position(&self) -> u32 {
        // Nodes and tokens are counted in 32 bits because the bytes of a vocabulary are.
        u32::try_from(self.trie.bytes.len()).unwrap_or(u32::MAX)
    }

    /// Opens a child of the node that is open.
    fn open(&mut self, byte: u8) {
        let node = self.position();
        if self.open.is_empty() {
            self.trie.roots[usize::from(byte)] = node;
        }
        self.open.push(node);
        self.trie.bytes.push(byte);
        self.trie.ends.push(0);
        self.trie.token_ends.push(u32::try_from(self.trie.tokens.len()).unwrap_or(u32::MAX));
    }

    /// Adds a token to the node opened last, which has no children yet.
    fn token(&mut self, token: TokenId) {
        self.trie.tokens.push(token);
        if let Some(last) = self.trie.token_ends.last_mut() {
            *last += 1;
        }
    }

    /// Closes open nodes until `depth` are open.
    fn close_to(&mut self, depth: usize) {
        while self.open.len() > depth {
            let end = self.position();
            if let Some(node) = self.open.pop() {
                self.trie.ends[node as usize] = end;
            }
        }
    }

    /// Adds a copy of the whole subtree of a node, the node included.
    fn copy(&mut self, from: &Trie, node: usize) {
        let here = self.position();
        if self.open.is_empty() {
            self.trie.roots[usize::from(from.bytes[node])] = here;
        }
        let end = from.end(node);
        let shift = |index: u32| index - u32::try_from(node).unwrap_or(0) + here;
        self.trie.bytes.extend_from_slice(&from.bytes[node..end]);
        self.trie.ends.extend(from.ends[node..end].iter().map(|&e| shift(e)));
        let token_start = node.checked_sub(1).map_or(0, |before| from.token_ends[before]);
        let token_here = u32::try_from(self.trie.tokens.len()).unwrap_or(u32::MAX);
        self.trie
            .token_ends
            .extend(from.token_ends[node..end].iter().map(|&t| t - token_start + token_here));
        self.trie.tokens.extend_from_slice(from.subtree_tokens(node));
    }

    fn finish(mut self) -> Trie {
        self.close_to(0);
        self.trie.ends[0] = self.position();
        self.trie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trie(texts: &[&'static str]) -> Trie {
        let entries =
            texts.iter().zip(0..).map(|(text, id)| (text.as_bytes(), TokenId::new(id))).collect();
        Trie::from_entries(entries)
    }

    fn texts(trie: &Trie) -> Vec<(String, Vec<u32>)> {
        let mut path: Vec<(usize, u8)> = Vec::new();
        let mut result = Vec::new();
        for node in 1..trie.len() {
            while path.last().is_some_and(|&(end, _)| end <= node) {
                path.pop();
            }
            path.push((trie.end(node), trie.byte(node)));
            let tokens: Vec<u32> = trie.tokens(node).iter().map(|t| t.get()).collect();
            if !tokens.is_empty() {
                let text = path.iter().map(|&(_, byte)| byte as char).collect();
                result.push((text, tokens));
            }
        }
        result
    }

    #[test]
    fn tokens_stand_at_the_ends_of_their_texts() {
        let trie = trie(&["b", "ab", "a", "abc", "ab"]);
        let expected: Vec<(String, Vec<u32>)> = vec![
            ("a".into(), vec![2]),
            ("ab".into(), vec![1, 4]),
            ("abc".into(), vec![3]),
            ("b".into(), vec![0]),
        ];
        assert_eq!(texts(&trie), expected);
        assert_eq!(trie.find(b"ab").map(|node| trie.subtree_tokens(node).len()), Some(3));
        assert_eq!(trie.find(b"abd"), None);
        assert_eq!(trie.root_child(b'b'), trie.find(b"b"));
    }

    #[test]
    fn bytes_of_one_class_share_a_path_until_a_quote() {
        let quote = Partition::new(&[crate::byteset::ByteSet::single(b'"')]);
        let trie = trie(&["ab", "cd", "ba\"a", "ab\"b", "a", "\"x"]).quotient(&quote);
        let expected: Vec<(String, Vec<u32>)> = vec![
            ("\0".into(), vec![4]),
            ("\0\0".into(), vec![0, 1]),
            ("\0\0\"a".into(), vec![2]),
            ("\0\0\"b".into(), vec![3]),
            ("\"x".into(), vec![5]),
        ];
        assert_eq!(texts(&trie), expected);
        assert!(trie.is_well_formed());
    }

    #[test]
    fn rests_below_several_nodes_are_merged() {
        let trie = trie(&["x\"", "x\",", "yy\",", "yy\"}", "z", "\"", "\", "]);
        let nodes: Vec<usize> =
            ["x\"", "yy\"", "\""].iter().filter_map(|text| trie.find(text.as_bytes())).collect();
        let expected: Vec<(String, Vec<u32>)> =
            vec![(",".into(), vec![1, 2]), (", ".into(), vec![6]), ("}".into(), vec![3])];
        assert_eq!(texts(&trie.below(&nodes)), expected);
        assert!(trie.below(&[trie.find(b"z").unwrap()]).is_empty());
    }
}
