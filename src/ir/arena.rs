//! Hash-consed expressions over bytes and calls, kept in a simplified normal form.
//!
//! Equal ids mean equal languages; because the smart constructors simplify, equal languages usually
//! get equal ids. That is what keeps the lazily built automaton small: its states are expressions.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::ids::{ExprId, FamilyId, RuleId};
use crate::ir::ByteSet;
use crate::ir::progression::{self, Progression};
use crate::limits::BudgetExceeded;

/// The maximum of a [`Expr::Repeat`] that has none.
pub const UNBOUNDED: u32 = u32::MAX;

/// An expression: a language over bytes, possibly through calls of rules.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Expr {
    /// The empty language.
    Empty,
    /// The language of the empty text.
    Epsilon,
    /// One byte of a set (never the empty set).
    Bytes(ByteSet),
    /// The first, then the second. The first is never itself a concatenation.
    Concat(ExprId, ExprId),
    /// Any of these (sorted by id, at least two).
    Alt(Box<[ExprId]>),
    /// All of these at once (sorted by id, at least two, regular).
    And(Box<[ExprId]>),
    /// Every byte string that is not in the language of this regular expression.
    Not(ExprId),
    /// Between `min` and `max` times `body`; [`UNBOUNDED`] is no maximum.
    Repeat {
        /// What is repeated.
        body: ExprId,
        /// The least number of times.
        min: u32,
        /// The greatest number of times, or [`UNBOUNDED`].
        max: u32,
    },
    /// The language of a rule.
    Call(RuleId),
    /// A member of a rule family, expanded by the grammar's [`crate::ir::Expander`] when the
    /// automaton first reaches it. Never nullable.
    Lazy(FamilyId),
    /// The strings of a literal set that lie below one node of its transducer.
    Literals {
        /// Which set.
        set: u32,
        /// Address of the node.
        node: u64,
    },
    /// The rests of the numbers of an arithmetic progression after the digits read so far.
    Progression {
        /// Which progression.
        table: u32,
        /// Which of its states.
        state: u32,
    },
    /// A text of this expression, which must not have been written before under the same activation of
    /// the rule around it: the history register of DESIGN section 4. The body must be prefix-free, and
    /// may not end with a call. Texts that end with different bytes of [`TERMINATORS`] count as equal
    /// if they are equal otherwise.
    Fresh(ExprId),
}

/// The bytes that may end an element of a JSON array: whichever does, it is the same element.
pub const TERMINATORS: [u8; 4] = *b",] \n";

/// An arena of expressions.
#[derive(Clone, Debug)]
pub struct Arena {
    exprs: Vec<Expr>,
    facts: Vec<Facts>,
    ids: HashMap<Expr, ExprId, foldhash::fast::RandomState>,
    literals: Vec<LiteralSet>,
    literal_ids: HashMap<LiteralSet, u32, foldhash::fast::RandomState>,
    progressions: Vec<progression::Table>,
    progression_ids: HashMap<Progression, u32, foldhash::fast::RandomState>,
    max_exprs: usize,
    overflow: bool,
}

/// A set of texts as a minimal transducer, compared by its bytes.
#[derive(Clone)]
struct LiteralSet(Arc<fst::raw::Fst<Vec<u8>>>);

impl PartialEq for LiteralSet {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes() == other.0.as_bytes()
    }
}

impl Eq for LiteralSet {}

impl std::hash::Hash for LiteralSet {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.as_bytes().hash(state);
    }
}

impl std::fmt::Debug for LiteralSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LiteralSet({} texts)", self.0.len())
    }
}

/// What is known of an expression from its parts alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Contains no call, lazy member or fresh text, so it may stand under `And` and `Not`.
    pub regular: bool,
    /// Contains the empty text; `None` if that depends on a rule's body.
    pub nullable: Option<bool>,
    /// Contains no intersection and no complement, so it has a text unless it is [`Expr::Empty`]
    /// (or calls a rule that has none).
    pub positive: bool,
    /// A lower bound of the number of bytes of its shortest text.
    pub least: u32,
}

impl Default for Arena {
    fn default() -> Self {
        Self::new(usize::MAX)
    }
}

impl Arena {
    /// The id of [`Expr::Empty`] in every arena.
    pub const EMPTY: ExprId = ExprId::new(0);
    /// The id of [`Expr::Epsilon`] in every arena.
    pub const EPSILON: ExprId = ExprId::new(1);
    /// The id of the language of all byte strings in every arena.
    pub const ALL: ExprId = ExprId::new(2);

    /// Returns an arena that holds at most `max_exprs` expressions.
    #[must_use]
    pub fn new(max_exprs: usize) -> Self {
        let mut arena = Self {
            exprs: Vec::new(),
            facts: Vec::new(),
            ids: HashMap::default(),
            literals: Vec::new(),
            literal_ids: HashMap::default(),
            progressions: Vec::new(),
            progression_ids: HashMap::default(),
            max_exprs: max_exprs.max(16),
            overflow: false,
        };
        arena.intern(Expr::Empty);
        arena.intern(Expr::Epsilon);
        arena.intern(Expr::Not(Self::EMPTY));
        arena
    }

    /// Returns the number of expressions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Returns whether there is no expression (never).
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// Returns an error once an expression did not fit under the limit.
    ///
    /// The constructors cannot fail, so that front ends stay readable: past the limit they return
    /// [`Arena::EMPTY`], and whoever builds must call this before using the result.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] of `Limits::expressions`.
    pub fn check(&self) -> Result<(), BudgetExceeded> {
        if self.overflow {
            return Err(BudgetExceeded::new("expressions", self.max_exprs as u64));
        }
        Ok(())
    }

    /// Returns the expression `id`.
    #[must_use]
    pub fn get(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// Returns what is known of `id` from its parts.
    #[must_use]
    pub fn facts(&self, id: ExprId) -> Facts {
        self.facts[id.index()]
    }

    /// Returns the literal set number `set`.
    #[must_use]
    pub fn literal_set(&self, set: u32) -> &fst::raw::Fst<Vec<u8>> {
        &self.literals[set as usize].0
    }

    fn intern(&mut self, expr: Expr) -> ExprId {
        if let Some(&id) = self.ids.get(&expr) {
            return id;
        }
        let Some(id) =
            ExprId::from_index(self.exprs.len()).filter(|id| id.index() < self.max_exprs)
        else {
            self.overflow = true;
            return Self::EMPTY;
        };
        self.facts.push(self.derive_facts(&expr));
        self.exprs.push(expr.clone());
        self.ids.insert(expr, id);
        id
    }

    fn derive_facts(&self, expr: &Expr) -> Facts {
        let leaf = |nullable, least| Facts {
            regular: true,
            nullable: Some(nullable),
            positive: true,
            least,
        };
        match expr {
            Expr::Empty => leaf(false, u32::MAX),
            Expr::Bytes(_) => leaf(false, 1),
            Expr::Epsilon => leaf(true, 0),
            Expr::Concat(a, b) => {
                let (a, b) = (self.facts(*a), self.facts(*b));
                let nullable = match (a.nullable, b.nullable) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                };
                Facts {
                    regular: a.regular && b.regular,
                    nullable,
                    positive: a.positive && b.positive,
                    least: a.least.saturating_add(b.least),
                }
            }
            Expr::Alt(parts) => {
                let facts = || parts.iter().map(|&p| self.facts(p));
                let nullable = if facts().any(|f| f.nullable == Some(true)) {
                    Some(true)
                } else if facts().all(|f| f.nullable == Some(false)) {
                    Some(false)
                } else {
                    None
                };
                Facts {
                    regular: facts().all(|f| f.regular),
                    nullable,
                    positive: facts().all(|f| f.positive),
                    least: facts().map(|f| f.least).min().unwrap_or(0),
                }
            }
            Expr::And(parts) => Facts {
                regular: true,
                nullable: Some(parts.iter().all(|&p| self.facts(p).nullable == Some(true))),
                positive: false,
                least: parts.iter().map(|&p| self.facts(p).least).max().unwrap_or(0),
            },
            Expr::Not(inner) => {
                let nullable = self.facts(*inner).nullable == Some(false);
                Facts { positive: false, ..leaf(nullable, u32::from(!nullable)) }
            }
            Expr::Repeat { body, min, .. } => {
                let body = self.facts(*body);
                Facts {
                    regular: body.regular,
                    nullable: if *min == 0 { Some(true) } else { body.nullable },
                    positive: body.positive,
                    least: body.least.saturating_mul(*min),
                }
            }
            Expr::Call(_) => Facts { regular: false, nullable: None, positive: true, least: 0 },
            Expr::Lazy(_) => {
                Facts { regular: false, nullable: Some(false), positive: true, least: 1 }
            }
            Expr::Fresh(body) => {
                let body = self.facts(*body);
                Facts { regular: false, nullable: Some(false), ..body }
            }
            Expr::Literals { set, node } => {
                let last = usize::try_from(*node)
                    .is_ok_and(|node| self.literal_set(*set).node(node).is_final());
                leaf(last, u32::from(!last))
            }
            Expr::Progression { table, state } => {
                let table = &self.progressions[*table as usize];
                leaf(table.is_accepting(*state), table.least(*state))
            }
        }
    }

    /// Returns the language of one byte of `set`.
    pub fn bytes(&mut self, set: ByteSet) -> ExprId {
        if set.is_empty() { Self::EMPTY } else { self.intern(Expr::Bytes(set)) }
    }

    /// Returns the language of exactly this byte.
    pub fn byte(&mut self, byte: u8) -> ExprId {
        self.bytes(ByteSet::single(byte))
    }

    /// Returns the language of exactly this text.
    pub fn literal(&mut self, text: &[u8]) -> ExprId {
        self.literal_then(text, Self::EPSILON)
    }

    /// Returns the language of `text` followed by `rest`.
    pub fn literal_then(&mut self, text: &[u8], rest: ExprId) -> ExprId {
        let mut result = rest;
        for &byte in text.iter().rev() {
            let head = self.byte(byte);
            result = self.concat2(head, result);
        }
        result
    }

    /// Returns the concatenation of `first` and `second`.
    pub fn concat2(&mut self, first: ExprId, second: ExprId) -> ExprId {
        if first == Self::EMPTY || second == Self::EMPTY {
            return Self::EMPTY;
        }
        if first == Self::EPSILON {
            return second;
        }
        if second == Self::EPSILON {
            return first;
        }
        // Re-associate to the right: the first part of a concatenation is never a concatenation.
        let mut heads = Vec::new();
        let mut last = first;
        while let Expr::Concat(head, tail) = *self.get(last) {
            heads.push(head);
            last = tail;
        }
        let mut result = self.concat_atom(last, second);
        while let Some(head) = heads.pop() {
            result = self.concat_atom(head, result);
        }
        result
    }

    /// Concatenates a non-concatenation with anything, joining neighbouring repetitions of one body.
    fn concat_atom(&mut self, head: ExprId, tail: ExprId) -> ExprId {
        let (next, rest) = match *self.get(tail) {
            Expr::Concat(next, rest) => (next, rest),
            _ => (tail, Self::EPSILON),
        };
        if let (Some((a, min_a, max_a)), Some((b, min_b, max_b))) = (self.as_repeat(head), self.as_repeat(next))
            && a == b
            // Joining two single bodies into a counter would hide plain literals such as "aa".
            && (matches!(self.get(head), Expr::Repeat { .. }) || matches!(self.get(next), Expr::Repeat { .. }))
            && let Some(min) = min_a.checked_add(min_b)
        {
            let max = if max_a == UNBOUNDED || max_b == UNBOUNDED {
                UNBOUNDED
            } else {
                max_a.saturating_add(max_b)
            };
            if max != UNBOUNDED || max_a == UNBOUNDED || max_b == UNBOUNDED {
                let joined = self.repeat(a, min, max);
                return if rest == Self::EPSILON {
                    joined
                } else {
                    self.intern(Expr::Concat(joined, rest))
                };
            }
        }
        self.intern(Expr::Concat(head, tail))
    }

    fn as_repeat(&self, id: ExprId) -> Option<(ExprId, u32, u32)> {
        match *self.get(id) {
            Expr::Repeat { body, min, max } => Some((body, min, max)),
            Expr::Empty | Expr::Epsilon => None,
            _ => Some((id, 1, 1)),
        }
    }

    /// Returns the concatenation of all parts, in order.
    pub fn concat(&mut self, parts: &[ExprId]) -> ExprId {
        let mut result = Self::EPSILON;
        for &part in parts.iter().rev() {
            result = self.concat2(part, result);
        }
        result
    }

    /// Returns the union of two languages.
    pub fn alt2(&mut self, a: ExprId, b: ExprId) -> ExprId {
        if a == b || b == Self::EMPTY {
            return a;
        }
        if a == Self::EMPTY {
            return b;
        }
        self.alt(&[a, b])
    }

    /// Returns the union of the languages `parts`.
    pub fn alt(&mut self, parts: &[ExprId]) -> ExprId {
        let mut flat = Vec::with_capacity(parts.len());
        let mut bytes = ByteSet::EMPTY;
        let mut add = |arena: &Self, id: ExprId| match arena.get(id) {
            Expr::Empty => {}
            Expr::Bytes(set) => bytes = bytes.union(set),
            _ => flat.push(id),
        };
        for &part in parts {
            if part == Self::ALL {
                return Self::ALL;
            }
            match self.get(part) {
                Expr::Alt(inner) => inner.iter().for_each(|&id| add(self, id)),
                _ => add(self, part),
            }
        }
        flat.push(self.bytes(bytes));
        flat.retain(|&id| id != Self::EMPTY);
        flat.sort_unstable();
        flat.dedup();
        self.join_repeats(&mut flat);
        if let Some(position) = flat.iter().position(|&id| id == Self::EPSILON)
            && flat.iter().any(|&id| id != Self::EPSILON && self.facts(id).nullable == Some(true))
        {
            flat.remove(position);
        }
        match flat[..] {
            [] => Self::EMPTY,
            [one] => one,
            _ => self.intern(Expr::Alt(flat.into())),
        }
    }

    /// Replaces `x{a,b} t | x{c,d} t` by `x{min,max} t` where the two intervals touch, so that an
    /// ambiguous counted loop holds intervals of counts and not one count for each parse.
    fn join_repeats(&mut self, parts: &mut Vec<ExprId>) {
        let key = |arena: &Self, id: ExprId| match *arena.get(id) {
            Expr::Repeat { body, min, max } => Some((body, Self::EPSILON, min, max)),
            Expr::Concat(head, tail) => match *arena.get(head) {
                Expr::Repeat { body, min, max } => Some((body, tail, min, max)),
                _ => None,
            },
            _ => None,
        };
        let mut counted: Vec<_> = parts.iter().filter_map(|&id| key(self, id)).collect();
        if counted.is_empty() {
            return;
        }
        let single = |body: ExprId| parts.binary_search(&body).is_ok();
        let with_single: Vec<_> = counted
            .iter()
            .filter(|&&(body, tail, ..)| tail == Self::EPSILON && single(body))
            .map(|&(body, ..)| body)
            .collect();
        counted.extend(with_single.iter().map(|&body| (body, Self::EPSILON, 1, 1)));
        if parts.contains(&Self::EPSILON) {
            // The empty text is zero copies of anything.
            let zero: Vec<_> =
                counted.iter().filter(|c| c.1 == Self::EPSILON).map(|c| (c.0, c.1, 0, 0)).collect();
            counted.extend(zero);
        }
        counted.sort_unstable();
        counted.dedup();
        let mut joined: Vec<(ExprId, ExprId, u32, u32)> = Vec::with_capacity(counted.len());
        for (body, tail, min, max) in counted {
            match joined.last_mut() {
                Some(last)
                    if last.0 == body && last.1 == tail && min <= last.3.saturating_add(1) =>
                {
                    last.3 = last.3.max(max);
                }
                _ => joined.push((body, tail, min, max)),
            }
        }
        parts.retain(|&id| key(self, id).is_none() && !with_single.contains(&id));
        for (body, tail, min, max) in joined {
            if max == 0 {
                continue; // The empty text is still in `parts`.
            }
            let repeat = self.repeat(body, min, max);
            parts.push(self.concat2(repeat, tail));
        }
        parts.sort_unstable();
        parts.dedup();
    }

    /// Returns the language of `body` or the empty text.
    pub fn optional(&mut self, body: ExprId) -> ExprId {
        self.alt2(body, Self::EPSILON)
    }

    /// Returns zero or more times `body`.
    pub fn star(&mut self, body: ExprId) -> ExprId {
        self.repeat(body, 0, UNBOUNDED)
    }

    /// Returns between `min` and `max` times `body`; [`UNBOUNDED`] is no maximum. A `min` above `max`
    /// is the empty language.
    pub fn repeat(&mut self, body: ExprId, min: u32, max: u32) -> ExprId {
        if min > max {
            return Self::EMPTY;
        }
        if max == 0 || body == Self::EPSILON {
            return Self::EPSILON;
        }
        if body == Self::EMPTY {
            return if min == 0 { Self::EPSILON } else { Self::EMPTY };
        }
        if min == 1 && max == 1 {
            return body;
        }
        if body == Self::ALL {
            return Self::ALL;
        }
        let nullable = self.facts(body).nullable == Some(true);
        let min = if nullable { 0 } else { min };
        match *self.get(body) {
            Expr::Repeat { body: inner, min: low, max: UNBOUNDED } if low <= 1 => {
                // (x*){m,n} and (x+){m,n}.
                let least = if low == 0 { 0 } else { min };
                return self.repeat(inner, least, UNBOUNDED);
            }
            Expr::Repeat { body: inner, min: 0, max: 1 } => return self.repeat(inner, 0, max),
            _ => {}
        }
        self.intern(Expr::Repeat { body, min, max })
    }

    /// Returns the intersection of regular languages.
    ///
    /// # Panics
    ///
    /// In debug builds, if a part is not regular.
    pub fn and(&mut self, parts: &[ExprId]) -> ExprId {
        let mut flat = Vec::with_capacity(parts.len());
        let mut bytes: Option<ByteSet> = None;
        let mut epsilon = false;
        let mut stack: Vec<ExprId> = parts.to_vec();
        while let Some(id) = stack.pop() {
            debug_assert!(self.facts(id).regular, "intersection of an expression with calls");
            match self.get(id) {
                Expr::Empty => return Self::EMPTY,
                Expr::And(inner) => stack.extend_from_slice(inner),
                Expr::Bytes(set) => bytes = Some(bytes.map_or(*set, |b| b.intersection(set))),
                Expr::Epsilon => epsilon = true,
                _ if id == Self::ALL => {}
                _ => flat.push(id),
            }
        }
        if epsilon {
            let all =
                bytes.is_none() && flat.iter().all(|&id| self.facts(id).nullable == Some(true));
            return if all { Self::EPSILON } else { Self::EMPTY };
        }
        if let Some(set) = bytes {
            let one = self.bytes(set);
            if one == Self::EMPTY {
                return Self::EMPTY;
            }
            flat.push(one);
        }
        flat.sort_unstable();
        flat.dedup();
        let contradiction = flat.iter().any(|&id| match self.get(id) {
            Expr::Not(inner) => flat.binary_search(inner).is_ok(),
            _ => false,
        });
        match flat[..] {
            _ if contradiction => Self::EMPTY,
            [] => Self::ALL,
            [one] => one,
            _ => self.intern(Expr::And(flat.into())),
        }
    }

    /// Returns every byte string that is not in the regular language `inner`.
    ///
    /// # Panics
    ///
    /// In debug builds, if `inner` is not regular.
    pub fn not(&mut self, inner: ExprId) -> ExprId {
        debug_assert!(self.facts(inner).regular, "complement of an expression with calls");
        match *self.get(inner) {
            Expr::Not(twice) => twice,
            _ => self.intern(Expr::Not(inner)),
        }
    }

    /// Returns the language of the rule `rule`.
    pub fn call(&mut self, rule: RuleId) -> ExprId {
        self.intern(Expr::Call(rule))
    }

    /// Returns the language of the family member `family`.
    pub fn lazy(&mut self, family: FamilyId) -> ExprId {
        self.intern(Expr::Lazy(family))
    }

    /// Returns the texts of `body` that were not written before under the same rule activation.
    pub fn fresh(&mut self, body: ExprId) -> ExprId {
        if body == Self::EMPTY || body == Self::EPSILON {
            body
        } else {
            self.intern(Expr::Fresh(body))
        }
    }

    /// Returns the language of exactly these texts, as a minimal automaton when there are many.
    pub fn literals<I, T>(&mut self, texts: I) -> ExprId
    where
        I: IntoIterator<Item = T>,
        T: Into<Vec<u8>>,
    {
        /// Fewer than this many stay plain alternatives: their derivatives are cheaper than a
        /// transducer is to build.
        const FEW: usize = 8;
        let mut texts: Vec<Vec<u8>> = texts.into_iter().map(Into::into).collect();
        texts.sort_unstable();
        texts.dedup();
        if texts.len() < FEW {
            let parts: Vec<_> = texts.iter().map(|text| self.literal(text)).collect();
            return self.alt(&parts);
        }
        // Building in memory from sorted distinct keys cannot fail.
        let mut builder = fst::raw::Builder::memory();
        for text in &texts {
            if builder.add(text).is_err() {
                let parts: Vec<_> = texts.iter().map(|text| self.literal(text)).collect();
                return self.alt(&parts);
            }
        }
        let set = builder.into_fst();
        self.add_literal_set(set)
    }

    fn add_literal_set(&mut self, set: fst::raw::Fst<Vec<u8>>) -> ExprId {
        let root = set.root().addr() as u64;
        let set = LiteralSet(Arc::new(set));
        if let Some(&index) = self.literal_ids.get(&set) {
            return self.literal_node(index, root);
        }
        let Ok(index) = u32::try_from(self.literals.len()) else {
            self.overflow = true;
            return Self::EMPTY;
        };
        self.literals.push(set.clone());
        self.literal_ids.insert(set, index);
        self.literal_node(index, root)
    }

    /// Returns the rests of the texts of literal set `set` below its node at address `node`.
    pub fn literal_node(&mut self, set: u32, node: u64) -> ExprId {
        let Ok(address) = usize::try_from(node) else { return Self::EMPTY };
        let at = self.literal_set(set).node(address);
        match (at.is_empty(), at.is_final()) {
            (true, true) => Self::EPSILON,
            (true, false) => Self::EMPTY,
            (false, _) => self.intern(Expr::Literals { set, node }),
        }
    }

    /// Returns the decimal texts of the numbers of `spec`.
    ///
    /// # Panics
    ///
    /// In debug builds, if `spec` is not [valid](Progression::is_valid).
    pub fn progression(&mut self, spec: Progression) -> ExprId {
        debug_assert!(spec.is_valid(), "progression without a step or a member: {spec:?}");
        let table = match self.progression_ids.get(&spec) {
            Some(&table) => table,
            None => {
                let Ok(table) = u32::try_from(self.progressions.len()) else {
                    self.overflow = true;
                    return Self::EMPTY;
                };
                self.progressions.push(progression::Table::new(spec.clone()));
                self.progression_ids.insert(spec, table);
                table
            }
        };
        self.intern(Expr::Progression { table, state: 0 })
    }

    /// Returns the ways on from state `state` of progression `table`: disjoint sets of bytes, each
    /// with what may follow it, never [`Arena::EMPTY`] within the limit on expressions.
    pub fn progression_transitions(&mut self, table: u32, state: u32) -> Vec<(ByteSet, ExprId)> {
        let transitions = self.progressions[table as usize].transitions(state);
        let next = |(bytes, state)| (bytes, self.intern(Expr::Progression { table, state }));
        transitions.into_iter().map(next).collect()
    }

    /// Returns the least number of bytes that may follow state `state` of progression `table`.
    #[must_use]
    pub fn progression_least(&self, table: u32, state: u32) -> u32 {
        self.progressions[table as usize].least(state)
    }

    /// Returns all expressions in the order of their ids.
    pub(crate) fn exprs(&self) -> &[Expr] {
        &self.exprs
    }

    /// Returns the sorted texts of every literal set.
    pub(crate) fn literal_texts(&self) -> Vec<Vec<Vec<u8>>> {
        use fst::Streamer;
        let texts = |set: &LiteralSet| {
            let mut texts = Vec::new();
            let mut stream = set.0.stream();
            while let Some((text, _)) = stream.next() {
                texts.push(text.to_vec());
            }
            texts
        };
        self.literals.iter().map(texts).collect()
    }

    /// Adds a stored expression, which has been checked.
    pub(crate) fn restore(&mut self, expr: Expr) -> ExprId {
        self.intern(expr)
    }

    /// Adds a stored literal set; `None` if its texts are not sorted and distinct.
    pub(crate) fn restore_literals(&mut self, texts: &[Vec<u8>]) -> Option<()> {
        let mut builder = fst::raw::Builder::memory();
        for text in texts {
            builder.add(text).ok()?;
        }
        let set = LiteralSet(Arc::new(builder.into_fst()));
        let index = u32::try_from(self.literals.len()).ok()?;
        self.literals.push(set.clone());
        self.literal_ids.insert(set, index);
        Some(())
    }

    /// Returns the tables of all progressions.
    pub(super) fn progressions(&self) -> &[progression::Table] {
        &self.progressions
    }

    /// Adds the stored table of a progression; `None` if it stands twice.
    pub(super) fn restore_progression(&mut self, table: progression::Table) -> Option<()> {
        let index = u32::try_from(self.progressions.len()).ok()?;
        let known = self.progression_ids.insert(table.spec().clone(), index);
        self.progressions.push(table);
        known.is_none().then_some(())
    }

    /// Returns whether progression `table` has a state `state`.
    pub(crate) fn has_progression_state(&self, table: u32, state: u32) -> bool {
        self.progressions.get(table as usize).is_some_and(|table| (state as usize) < table.len())
    }

    /// Returns the addresses of all nodes of each literal set. Only these are safe to read.
    pub(crate) fn literal_nodes(&self) -> Vec<HashSet<u64>> {
        let nodes = |set: &LiteralSet| {
            let mut seen = HashSet::new();
            let mut open = vec![set.0.root().addr()];
            while let Some(address) = open.pop() {
                if seen.insert(address as u64) {
                    open.extend(set.0.node(address).transitions().map(|t| t.addr));
                }
            }
            seen
        };
        self.literals.iter().map(nodes).collect()
    }
}
