//! Walks of two states side by side: a state that leads into another one by all but a few ways, such
//! as that after a key's first letters where additional keys are open and a few are declared, has the
//! mask of that other one but for the tokens on those ways.

use crate::ids::{StateId, TokenId};
use crate::token::walk::{At, Record, Stop, Walker};
use crate::vocab::Trie;

/// Where the two walks stand at a node: the state's own, and the other's.
type Pair<'a> = (Option<At<'a>>, Option<At<'a>>);

/// How the mask of a state differs from that of another one. What [`Walker::finish`] says besides is of
/// the state, for those tokens only.
#[derive(Debug, Default)]
pub(in crate::token) struct Difference {
    /// The tokens on whose way the two differ, where the state is live at their end or the other is:
    /// what is known of them from the other does not hold.
    pub(in crate::token) tokens: Vec<TokenId>,
    /// The tokens among them that are illegal.
    pub(in crate::token) illegal: Vec<TokenId>,
}

impl<'a> Walker<'a, '_> {
    /// Walks the whole trie from `state` and from `other`, and leaves out what is below nodes where
    /// the two have come to be the same. No rule may end inside a token on the other's ways.
    pub(in crate::token) fn walk_beside(
        &mut self,
        state: StateId,
        other: StateId,
        trie: &'a Trie,
    ) -> Result<Difference, Stop> {
        let mut difference = Difference::default();
        let start = (Some(self.start(state)?), Some(self.start(other)?));
        let mut levels: Vec<(usize, Pair<'a>)> = vec![(trie.len(), start)];
        let mut node = 1;
        while node < trie.len() {
            while levels.len() > 1 && levels.last().is_some_and(|&(end, _)| end <= node) {
                levels.pop();
            }
            let Some((_, (own, other))) = levels.last() else { break };
            self.budget.spend(1)?;
            self.nodes = self.nodes.checked_sub(1).ok_or(Stop::TooMany)?;
            let byte = trie.byte(node);
            let end = trie.end(node);
            if end == node + 1 {
                let tokens = trie.tokens(node);
                node = end;
                if lead_alike(own, other, byte) {
                    continue;
                }
                let legal = match own {
                    Some(own) => self.take_leaf(own, byte, true, tokens)?,
                    None => false,
                };
                if !legal && !self.may_go(other, byte)? {
                    continue;
                }
                difference.tokens.extend_from_slice(tokens);
                if !legal {
                    difference.illegal.extend_from_slice(tokens);
                }
                continue;
            }
            let mut go = |at: &Option<At<'a>>| match at {
                Some(at) => self.advance(at, byte, true),
                None => Ok(None),
            };
            let (own, other) = (go(own)?, go(other)?);
            if own == other {
                node = end;
                continue;
            }
            let Some(own) = own else {
                difference.tokens.extend_from_slice(trie.subtree_tokens(node));
                difference.illegal.extend_from_slice(trie.subtree_tokens(node));
                node = end;
                continue;
            };
            difference.tokens.extend_from_slice(trie.tokens(node));
            self.arrive(&own, trie, node, true, levels.len())?;
            node += 1;
            if end > node {
                levels.push((end, (Some(own), other)));
            }
        }
        Ok(difference)
    }

    /// Returns whether `byte` is legal where a walk stands.
    fn may_go(&mut self, at: &Option<At<'a>>, byte: u8) -> Result<bool, Stop> {
        Ok(match at {
            None => false,
            Some(At::One { row, .. }) => !row.moves(byte).is_empty(),
            Some(At::Many(threads)) => !self.moved(threads, byte, true)?.is_empty(),
        })
    }

    /// Returns where a walk from `state` stands before the first byte.
    fn start(&mut self, state: StateId) -> Result<At<'a>, Stop> {
        let row = self.row(state, true)?;
        Ok(At::One { row, state, record: Record::start(row) })
    }
}

/// Returns whether `byte` leads two walks to the same place by single moves.
fn lead_alike(own: &Option<At<'_>>, other: &Option<At<'_>>, byte: u8) -> bool {
    let (Some(At::One { row: a, record: x, .. }), Some(At::One { row: b, record: y, .. })) =
        (own, other)
    else {
        return false;
    };
    let same = a.simple(byte).is_some() && a.simple(byte) == b.simple(byte);
    same && x.then(a.records(byte)) == y.then(b.records(byte))
}

impl PartialEq for At<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::One { state: a, record: x, .. }, Self::One { state: b, record: y, .. }) => {
                a == b && x == y
            }
            (Self::Many(a), Self::Many(b)) => a == b,
            _ => false,
        }
    }
}
