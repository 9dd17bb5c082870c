//! Nodes without assertions: their expressions, and how they go in front of a rest.

use crate::frontend::pattern::lower::{Lower, Rest};
use crate::frontend::pattern::tree::{is_all, union};
use crate::frontend::pattern::{Node, NodeId};
use crate::ids::ExprId;
use crate::ir::chars::{CharSet, Encoding, all_chars, write_json_canonical};
use crate::ir::{Arena, Expr, UNBOUNDED};

impl Lower<'_> {
    /// Puts any text in front of `rest`, for a pattern that may match anywhere.
    pub(super) fn after_anything(&mut self, rest: &Rest) -> ExprId {
        let (first, others) = (rest[0], &rest[1..]);
        if others.is_empty() {
            let first = self.without_idle_start(first);
            return self.arena.concat2(self.any, first);
        }
        let last: Vec<_> = (0..self.classes.len())
            .map(|class| self.classes.sets[class].clone())
            .zip(rest.iter().copied())
            .collect();
        let mut parts = Vec::new();
        for (set, rest) in join_equal(last) {
            let one = self.set(&set);
            let moved = self.arena.concat2(self.any, one);
            if is_all(&set) {
                return self.star_or_start(self.any, moved, rest, first);
            }
            parts.push(self.arena.concat2(moved, rest));
        }
        parts.push(first);
        self.alt(&parts)
    }

    /// Returns `all rest | start`, given that `all` is `moved` or the empty text, as `moved rest |
    /// start` or, where `start` has all that `rest` has, as `all rest` and what `start` has more.
    fn star_or_start(&mut self, all: ExprId, moved: ExprId, rest: ExprId, start: ExprId) -> ExprId {
        let more = {
            let parts = |id: ExprId| match self.arena.get(id) {
                Expr::Alt(parts) => parts.to_vec(),
                Expr::Empty => Vec::new(),
                _ => vec![id],
            };
            // Both are in order, as the parts of every union are.
            let (less, more) = (parts(rest), parts(start));
            less.iter().all(|part| more.binary_search(part).is_ok()).then(|| {
                more.into_iter()
                    .filter(|part| less.binary_search(part).is_err())
                    .collect::<Vec<_>>()
            })
        };
        match more {
            Some(mut parts) => {
                let rest = if all == self.any { self.without_idle_start(rest) } else { rest };
                parts.push(self.arena.concat2(all, rest));
                self.alt(&parts)
            }
            None => {
                let moved = self.arena.concat2(moved, rest);
                self.alt(&[moved, start])
            }
        }
    }

    /// Returns `id` without what may be empty at its start: after any text it asks for nothing.
    fn without_idle_start(&mut self, id: ExprId) -> ExprId {
        let parts = match self.arena.get(id) {
            Expr::Alt(parts) => parts.to_vec(),
            _ => vec![id],
        };
        let parts: Vec<_> =
            parts.into_iter().map(|part| self.part_without_idle_start(part)).collect();
        self.alt(&parts)
    }

    fn part_without_idle_start(&mut self, mut id: ExprId) -> ExprId {
        while let Expr::Concat(head, tail) = *self.arena.get(id) {
            if self.arena.facts(head).nullable == Some(true) {
                id = tail;
            } else if let Expr::Repeat { body, min, max } = *self.arena.get(head)
                && min < max
            {
                let least = self.arena.repeat(body, min, min);
                return self.arena.concat2(least, tail);
            } else {
                break;
            }
        }
        id
    }

    /// Puts the concatenation of nodes without assertions in front of `rest`.
    pub(super) fn plain_before(&mut self, nodes: &[NodeId], rest: &Rest) -> Rest {
        let first = rest[0];
        if rest.iter().all(|&r| r == first) {
            let result = if first == self.any || first == Arena::ALL {
                self.plain_before_anything(nodes, first)
            } else {
                let head = self.plain_concat(nodes);
                self.arena.concat2(head, first)
            };
            return vec![result; self.classes.len()].into();
        }
        let nullable = nodes.iter().all(|&node| self.tree.facts(node).nullable);
        let groups =
            join_equal(self.classes.sets.iter().cloned().zip(rest.iter().copied()).collect());
        if let [(_, rest_after)] = groups[..] {
            // No assertion can tell the characters apart, only the start of the text.
            let all = self.plain_concat(nodes);
            if !nullable {
                return vec![self.arena.concat2(all, rest_after); self.classes.len()].into();
            }
            let moved = self.concat_ending_in(nodes, &all_chars());
            return rest.iter().map(|&r| self.star_or_start(all, moved, rest_after, r)).collect();
        }
        let mut moved = Vec::new();
        for (set, rest) in groups {
            let head = self.concat_ending_in(nodes, &set);
            moved.push(self.arena.concat2(head, rest));
        }
        let moved = self.alt(&moved);
        rest.iter().map(|&r| if nullable { self.alt(&[r, moved]) } else { moved }).collect()
    }

    /// Puts plain nodes in front of all texts, leaving out what their end may leave out.
    fn plain_before_anything(&mut self, nodes: &[NodeId], rest: ExprId) -> ExprId {
        let tree = self.tree;
        let mut left = nodes;
        let mut heads = Vec::new();
        let mut result = rest;
        loop {
            let idle = left.iter().rev().take_while(|&&node| tree.facts(node).nullable).count();
            let Some((last, before)) = left[..left.len() - idle].split_last() else { break };
            heads.extend(before.iter().map(|&part| self.plain(part)));
            match tree.node(*last) {
                Node::Concat(parts) => left = parts,
                Node::Repeat { body, min, .. } => {
                    let copies = self.plain(*body);
                    heads.push(self.arena.repeat(copies, min - 1, min - 1));
                    left = std::slice::from_ref(body);
                }
                _ => {
                    let last = self.plain(*last);
                    result = self.arena.concat2(last, rest);
                    break;
                }
            }
        }
        heads.push(result);
        self.arena.concat(&heads)
    }

    fn plain_concat(&mut self, nodes: &[NodeId]) -> ExprId {
        let parts = self.tree.flat_parts(nodes);
        let parts: Vec<_> = parts.into_iter().map(|node| self.plain(node)).collect();
        self.arena.concat(&parts)
    }

    /// Returns the expression of a node without assertions.
    fn plain(&mut self, node: NodeId) -> ExprId {
        if let Some(id) = self.plain[node.index()] {
            return id;
        }
        for id in self.tree.subtree(node) {
            let facts = self.tree.facts(id);
            let needed = facts.plain && (!facts.inlined || id == node);
            if needed && self.plain[id.index()].is_none() {
                let expr = self.plain_of_parts(id);
                self.plain[id.index()] = Some(expr);
            }
        }
        self.plain[node.index()].unwrap_or(Arena::EMPTY)
    }

    /// The expression of a plain node whose parts have theirs.
    fn plain_of_parts(&mut self, node: NodeId) -> ExprId {
        let part = |lower: &Self, id: NodeId| lower.plain[id.index()].unwrap_or(Arena::EMPTY);
        match self.tree.node(node) {
            Node::Empty | Node::Look(_) | Node::Around(_) => Arena::EPSILON,
            Node::Set(set) => self.set(set),
            Node::Concat(parts) => {
                let parts = self.tree.flat_parts(parts);
                let parts: Vec<_> = parts.into_iter().map(|id| part(self, id)).collect();
                self.arena.concat(&parts)
            }
            Node::Alt(parts) => {
                let mut literals = Vec::new();
                let mut others = Vec::new();
                for &id in parts {
                    match self.spelling(id) {
                        Some(text) => literals.push(text),
                        None => others.push(part(self, id)),
                    }
                }
                others.push(self.arena.literals(literals));
                self.alt(&others)
            }
            &Node::Repeat { body, min, max } => {
                let body = part(self, body);
                self.arena.repeat(body, min, max)
            }
        }
    }

    /// Returns the only spelling of a node that is one text, if the encoding has only one.
    fn spelling(&self, node: NodeId) -> Option<Vec<u8>> {
        match self.encoding {
            Encoding::Utf8 => self.tree.literal(node).map(String::into_bytes),
            Encoding::JsonCanonical => {
                let mut bytes = Vec::new();
                write_json_canonical(&self.tree.literal(node)?, &mut bytes);
                Some(bytes)
            }
            Encoding::JsonAny => None,
        }
    }

    /// Returns the texts of a concatenation of plain nodes that end in a character of `set`.
    fn concat_ending_in(&mut self, nodes: &[NodeId], set: &CharSet) -> ExprId {
        let nodes = self.tree.flat_parts(nodes);
        let parts: Vec<_> = nodes.iter().map(|&node| (node, self.ending_in(node, set))).collect();
        self.concat_ending(&parts)
    }

    /// Returns the texts of a concatenation of plain nodes that end as wanted, given those of each
    /// node: the last part that is not empty ends the text, those after it are empty.
    fn concat_ending(&mut self, parts: &[(NodeId, ExprId)]) -> ExprId {
        let mut ends = Arena::EMPTY;
        let mut after_may_be_empty = true;
        for &(node, ending) in parts.iter().rev() {
            let head = self.plain(node);
            ends = self.arena.concat2(head, ends);
            if after_may_be_empty {
                ends = self.arena.alt2(ends, ending);
            }
            after_may_be_empty &= self.tree.facts(node).nullable;
        }
        ends
    }

    /// Returns the texts of a plain node that end in a character of `set`.
    fn ending_in(&mut self, node: NodeId, set: &CharSet) -> ExprId {
        self.plain(node);
        let start = self.tree.facts(node).first.index();
        let mut ending: Vec<ExprId> = Vec::new();
        for id in self.tree.subtree(node) {
            if !self.charge(4) {
                return Arena::EMPTY;
            }
            let ends = match self.tree.node(id) {
                // An inlined concatenation is read by the one around it.
                _ if self.tree.facts(id).inlined && id != node => Arena::EMPTY,
                Node::Empty | Node::Look(_) | Node::Around(_) => Arena::EMPTY,
                Node::Set(own) => {
                    let mut own = own.clone();
                    own.intersect(set);
                    self.set(&own)
                }
                Node::Concat(parts) => {
                    let parts = self.tree.flat_parts(parts);
                    let parts: Vec<_> =
                        parts.into_iter().map(|p| (p, ending[p.index() - start])).collect();
                    self.concat_ending(&parts)
                }
                Node::Alt(parts) => {
                    let ways: Vec<_> = parts.iter().map(|p| ending[p.index() - start]).collect();
                    self.alt(&ways)
                }
                &Node::Repeat { body, min, max } => {
                    let copies = self.plain(body);
                    let least = if self.tree.facts(body).nullable { 0 } else { min.max(1) - 1 };
                    let most = if max == UNBOUNDED { max } else { max - 1 };
                    let before = self.arena.repeat(copies, least, most);
                    self.arena.concat2(before, ending[body.index() - start])
                }
            };
            ending.push(ends);
        }
        ending.last().copied().unwrap_or(Arena::EMPTY)
    }
}

/// Unites the sets that have the same rest, and leaves out those without characters.
fn join_equal(mut sets: Vec<(CharSet, ExprId)>) -> Vec<(CharSet, ExprId)> {
    sets.retain(|(set, _)| !set.ranges().is_empty());
    sets.sort_by_key(|&(_, rest)| rest);
    sets.chunk_by(|(_, a), (_, b)| a == b)
        .map(|group| (union(group.iter().map(|(set, _)| set)), group[0].1))
        .collect()
}
