//! The syntax tree that the dialects share, and the normal forms of its assertions.

use smallvec::{SmallVec, smallvec};

use crate::ir::chars::{CharSet, all_chars};

/// A node of a [`Tree`]: its position in post-order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

impl NodeId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A pattern or a part of one.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// The empty text.
    Empty,
    /// One character of a set; the empty set matches nothing.
    Set(CharSet),
    /// One after the other.
    Concat(Box<[NodeId]>),
    /// Any one.
    Alt(Box<[NodeId]>),
    /// Between `min` and `max` times; [`crate::ir::UNBOUNDED`] is no maximum.
    Repeat { body: NodeId, min: u32, max: u32 },
    /// Asserts something about the two characters around a position.
    Look(Look),
    /// Asserts something about the whole text after or before a position.
    Around(Around),
}

/// A look-around assertion whose body is longer than one character.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    /// Looks at what follows, not at what came before.
    pub(crate) ahead: bool,
    /// Holds where the body does not match.
    pub(crate) negated: bool,
    /// What must match from (or up to) the position.
    pub(crate) body: NodeId,
}

/// A condition on one neighbour of a position: a character of a set, or an end of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    /// The neighbour may be an end of the text.
    pub(crate) edge: bool,
    /// The characters that the neighbour may be.
    pub(crate) set: CharSet,
}

impl Side {
    pub(crate) fn any() -> Self {
        Self { edge: true, set: all_chars() }
    }

    pub(crate) fn edge() -> Self {
        Self { edge: true, set: CharSet::empty() }
    }

    pub(crate) const fn of(set: CharSet) -> Self {
        Self { edge: false, set }
    }

    pub(crate) fn complement(&self) -> Self {
        let mut set = self.set.clone();
        set.negate();
        Self { edge: !self.edge, set }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut set = self.set.clone();
        set.union(&other.set);
        Self { edge: self.edge || other.edge, set }
    }

    fn intersection(&self, other: &Self) -> Self {
        let mut set = self.set.clone();
        set.intersect(&other.set);
        Self { edge: self.edge && other.edge, set }
    }

    pub(crate) fn is_none(&self) -> bool {
        !self.edge && self.set.ranges().is_empty()
    }

    pub(crate) fn is_any(&self) -> bool {
        self.edge && is_all(&self.set)
    }

    /// Returns whether the neighbour `c` (`None` is an end of the text) is allowed.
    pub(crate) fn allows(&self, c: Option<char>) -> bool {
        c.map_or(self.edge, |c| contains(&self.set, c))
    }
}

/// Returns the union of `sets`, in one go: one after the other takes quadratic time.
pub(super) fn union<'a>(sets: impl IntoIterator<Item = &'a CharSet>) -> CharSet {
    CharSet::new(sets.into_iter().flat_map(|set| set.ranges().iter().copied()))
}

/// Returns whether `set` has all characters. A range that ends before the surrogates may or may not
/// be joined with one that begins after them.
pub(super) fn is_all(set: &CharSet) -> bool {
    match set.ranges() {
        [all] => (all.start(), all.end()) == ('\0', char::MAX),
        [low, high] => {
            (low.start(), low.end()) == ('\0', '\u{d7ff}')
                && (high.start(), high.end()) == ('\u{e000}', char::MAX)
        }
        _ => false,
    }
}

/// Returns whether `c` is a member of `set`.
pub(crate) fn contains(set: &CharSet, c: char) -> bool {
    set.ranges()
        .binary_search_by(|r| {
            if r.end() < c {
                std::cmp::Ordering::Less
            } else if r.start() > c {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Equal
            }
        })
        .is_ok()
}

/// How many cases a [`Look`] may have to be complemented; an assertion with more keeps its body.
const MAX_CASES: usize = 4;

/// A condition on both neighbours of a position: it holds if some case does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Conditions on the character before and the character after.
    pub(crate) cases: SmallVec<[(Side, Side); 2]>,
}

impl Look {
    /// Asserts a condition on the character before.
    pub(crate) fn before(side: Side) -> Self {
        Self { cases: smallvec![(side, Side::any())] }
    }

    /// Asserts a condition on the character after.
    pub(crate) fn after(side: Side) -> Self {
        Self { cases: smallvec![(Side::any(), side)] }
    }

    /// Asserts that some of these conditions on both neighbours holds.
    pub(crate) fn any_of<const N: usize>(cases: [(Side, Side); N]) -> Self {
        Self { cases: cases.into_iter().collect() }
    }

    /// Asserts that exactly one of the neighbours is in `word`.
    pub(crate) fn word_boundary(word: &CharSet) -> Self {
        let word = Side::of(word.clone());
        let other = word.complement();
        Self { cases: smallvec![(word.clone(), other.clone()), (other, word)] }
    }

    /// Asserts that both neighbours are in `word`, or neither.
    pub(crate) fn no_word_boundary(word: &CharSet) -> Self {
        let word = Side::of(word.clone());
        let other = word.complement();
        Self { cases: smallvec![(word.clone(), word), (other.clone(), other)] }
    }

    fn union(&self, other: &Self) -> Self {
        let mut cases = self.cases.clone();
        for (before, after) in &other.cases {
            match cases.iter_mut().find(|(b, _)| b == before) {
                Some((_, a)) => *a = a.union(after),
                None => match cases.iter_mut().find(|(_, a)| a == after) {
                    Some((b, _)) => *b = b.union(before),
                    None => cases.push((before.clone(), after.clone())),
                },
            }
        }
        Self { cases }
    }

    fn complement(&self) -> Self {
        let mut result = Self { cases: smallvec![(Side::any(), Side::any())] };
        for (before, after) in &self.cases {
            let mut cases: SmallVec<[(Side, Side); 2]> = SmallVec::new();
            for (b, a) in &result.cases {
                // not (before and after) = not before, or before and not after.
                cases.push((b.intersection(&before.complement()), a.clone()));
                cases.push((b.intersection(before), a.intersection(&after.complement())));
            }
            cases.retain(|(b, a)| !b.is_none() && !a.is_none());
            result = Self { cases };
        }
        result
    }

    /// Returns whether the assertion holds between these neighbours.
    pub(crate) fn holds(&self, before: Option<char>, after: Option<char>) -> bool {
        self.cases.iter().any(|(b, a)| b.allows(before) && a.allows(after))
    }
}

/// What is known of a node from its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeFacts {
    /// The first node of the subtree, which is contiguous.
    pub(crate) first: NodeId,
    /// The subtree has no assertion.
    pub(crate) plain: bool,
    /// Matches the empty text if all its assertions hold.
    pub(crate) nullable: bool,
    /// How deep look-around assertions nest inside.
    pub(crate) around_depth: u32,
    /// Has a look-behind assertion longer than one character.
    pub(crate) behind: bool,
    /// Is a plain concatenation inside a concatenation, which it is read as a part of.
    pub(crate) inlined: bool,
}

/// A pattern as a vector of nodes, children before parents.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    facts: Vec<NodeFacts>,
}

impl Tree {
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    pub(crate) fn facts(&self, id: NodeId) -> NodeFacts {
        self.facts[id.index()]
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the nodes of the subtree of `id`, children before parents. Nodes that a normal form
    /// left unused may be among them.
    pub(crate) fn subtree(&self, id: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        (self.facts(id).first.0..=id.0).map(NodeId)
    }

    fn is_concat(&self, id: NodeId) -> bool {
        matches!(self.node(id), Node::Concat(_))
    }

    /// Returns the parts of a concatenation, with those of inlined ones in their place.
    ///
    /// Groups may nest to the left, `(((ab)c)d)`, where concatenating level by level would take
    /// quadratic time.
    pub(crate) fn flat_parts(&self, parts: &[NodeId]) -> Vec<NodeId> {
        let mut flat = Vec::with_capacity(parts.len());
        let mut stack: Vec<_> = parts.iter().rev().copied().collect();
        while let Some(id) = stack.pop() {
            match self.node(id) {
                Node::Concat(parts) if self.facts(id).plain => stack.extend(parts.iter().rev()),
                _ => flat.push(id),
            }
        }
        flat
    }

    fn push(&mut self, node: Node, first: Option<NodeId>) -> NodeId {
        // A source text has fewer nodes than bytes, and those are bounded far below 2^32.
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        let all =
            |parts: &[NodeId], f: fn(NodeFacts) -> bool| parts.iter().all(|&p| f(self.facts(p)));
        let mut facts = NodeFacts {
            first: first.unwrap_or(id),
            plain: true,
            nullable: true,
            around_depth: 0,
            behind: false,
            inlined: false,
        };
        let children: &[NodeId] = match &node {
            Node::Empty | Node::Set(_) | Node::Look(_) => &[],
            Node::Concat(parts) | Node::Alt(parts) => parts,
            Node::Repeat { body, .. } => std::slice::from_ref(body),
            Node::Around(around) => std::slice::from_ref(&around.body),
        };
        for &child in children {
            let child = self.facts(child);
            facts.plain &= child.plain;
            facts.around_depth = facts.around_depth.max(child.around_depth);
            facts.behind |= child.behind;
        }
        match &node {
            Node::Empty => {}
            Node::Look(_) => facts.plain = false,
            Node::Set(_) => facts.nullable = false,
            Node::Concat(parts) => facts.nullable = all(parts, |f| f.nullable),
            Node::Alt(parts) => facts.nullable = !all(parts, |f| !f.nullable),
            Node::Repeat { body, min, .. } => {
                facts.nullable = *min == 0 || self.facts(*body).nullable;
            }
            Node::Around(around) => {
                facts.plain = false;
                facts.around_depth += 1;
                facts.behind |= !around.ahead;
            }
        }
        self.nodes.push(node);
        self.facts.push(facts);
        id
    }

    /// Adds the empty text.
    pub(crate) fn empty(&mut self) -> NodeId {
        self.push(Node::Empty, None)
    }

    /// Adds one character of `set`.
    pub(crate) fn set(&mut self, set: CharSet) -> NodeId {
        self.push(Node::Set(set), None)
    }

    /// Adds an assertion about the neighbours of a position.
    pub(crate) fn look(&mut self, look: Look) -> NodeId {
        self.push(Node::Look(look), None)
    }

    /// Adds a concatenation; the parts must be the latest subtrees, in order.
    pub(crate) fn concat(&mut self, parts: Vec<NodeId>) -> NodeId {
        match parts[..] {
            [] => self.empty(),
            [one] => one,
            [first, ..] => {
                let first = self.facts(first).first;
                for &part in &parts {
                    let inlined = self.is_concat(part) && self.facts(part).plain;
                    self.facts[part.index()].inlined = inlined;
                }
                self.push(Node::Concat(parts.into()), Some(first))
            }
        }
    }

    /// Adds an alternation; the parts must be the latest subtrees, in order.
    pub(crate) fn alt(&mut self, parts: Vec<NodeId>) -> NodeId {
        match parts[..] {
            [] => self.set(CharSet::empty()),
            [one] => one,
            [first, ..] => {
                let first = self.facts(first).first;
                let sets: Option<Vec<&CharSet>> = parts
                    .iter()
                    .map(|&part| match self.node(part) {
                        Node::Set(set) => Some(set),
                        _ => None,
                    })
                    .collect();
                let node = match sets {
                    Some(sets) => Node::Set(union(sets)),
                    None => Node::Alt(parts.into()),
                };
                self.push(node, Some(first))
            }
        }
    }

    /// Adds a repetition of the latest subtree.
    pub(crate) fn repeat(&mut self, body: NodeId, min: u32, max: u32) -> NodeId {
        let first = self.facts(body).first;
        match self.node(body) {
            _ if max == 0 => self.push(Node::Empty, Some(first)),
            Node::Empty => body,
            // An assertion consumes nothing: once is as good as often.
            Node::Look(_) | Node::Around(_) if min == 0 => self.push(Node::Empty, Some(first)),
            Node::Look(_) | Node::Around(_) => body,
            _ if (min, max) == (1, 1) => body,
            _ => self.push(Node::Repeat { body, min, max }, Some(first)),
        }
    }

    /// Adds a look-around assertion about the latest subtree, in its simplest form.
    pub(crate) fn around(&mut self, ahead: bool, negated: bool, body: NodeId) -> NodeId {
        let first = self.facts(body).first;
        let node = match self.one_character(body, ahead) {
            // The complement of n cases has up to 2^n.
            Some(look) if look.cases.len() <= MAX_CASES => {
                Node::Look(if negated { look.complement() } else { look })
            }
            _ => Node::Around(Around { ahead, negated, body }),
        };
        self.push(node, Some(first))
    }

    /// Returns the condition on the neighbours of a position that says the same as looking for
    /// `body` there, if it is that simple.
    fn one_character(&self, body: NodeId, ahead: bool) -> Option<Look> {
        let Node::Alt(parts) = self.node(body) else { return self.one_character_of(body, ahead) };
        let mut looks = parts.iter().map(|&part| self.one_character_of(part, ahead));
        let first = looks.next()??;
        looks.try_fold(first, |all, look| {
            Some(all.union(&look?)).filter(|all| all.cases.len() <= MAX_CASES)
        })
    }

    fn one_character_of(&self, body: NodeId, ahead: bool) -> Option<Look> {
        let neighbour = |side| if ahead { Look::after(side) } else { Look::before(side) };
        match self.node(body) {
            Node::Look(look) => Some(look.clone()),
            Node::Concat(parts) => {
                // What may be empty next to any text asserts nothing.
                let (nearest, others) =
                    if ahead { parts.split_first()? } else { parts.split_last()? };
                let idle = |&p: &NodeId| self.facts(p).plain && self.facts(p).nullable;
                let set = others.iter().all(idle).then(|| self.one_set(*nearest))??;
                Some(neighbour(Side::of(set)))
            }
            _ if self.facts(body).plain && self.facts(body).nullable => {
                Some(neighbour(Side::any()))
            }
            _ => Some(neighbour(Side::of(self.one_set(body)?))),
        }
    }

    /// Returns the characters of a node that is one or more characters of one set.
    fn one_set(&self, node: NodeId) -> Option<CharSet> {
        match *self.node(node) {
            Node::Set(ref set) => Some(set.clone()),
            Node::Repeat { body, min: 1, .. } => match self.node(body) {
                Node::Set(set) => Some(set.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the text that `node` matches, if it is exactly one and has no assertion.
    pub(crate) fn literal(&self, node: NodeId) -> Option<String> {
        let one = |id: NodeId| match self.node(id) {
            Node::Set(set) => match set.ranges() {
                [range] if range.start() == range.end() => Some(range.start()),
                _ => None,
            },
            _ => None,
        };
        match self.node(node) {
            Node::Empty => Some(String::new()),
            Node::Concat(parts) => parts.iter().map(|&part| one(part)).collect(),
            _ => one(node).map(String::from),
        }
    }
}
