//! Linear forms: an expression in, its first bytes and what is left after each out. The state table
//! makes rows from them.
//!
//! This is Antimirov's linear form (Theor. Comput. Sci. 155, 1996) over byte sets, extended to calls:
//! what is left after the first byte of a callee is the callee's rest, under the frames that the
//! callers must return to. Regular parts are merged into one rest (Brzozowski's derivative), so that
//! only calls can make an expression ambiguous. Memoised; computed with an explicit stack.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use crate::automaton::clamp::Rooms;
use crate::automaton::solve::Answers;
use crate::error::{Error, ErrorKind};
use crate::ids::{ExprId, FamilyId};
use crate::ir::{Arena, ByteSet, Expr, Grammar, Scope, UNBOUNDED};
use crate::limits::{Budget, Limits};

/// What a byte does to the history register of the activation that it belongs to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Action {
    /// Nothing: any text being recorded is dropped.
    None,
    /// The byte belongs to a text that must be fresh.
    Record,
    /// The byte ends a text that must be fresh.
    Close,
}

/// Some first bytes of an expression, and what is left after any one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The first bytes.
    pub(crate) bytes: ByteSet,
    /// What is left of the innermost activation.
    pub(crate) target: ExprId,
    /// The rests to return to, outermost first.
    pub(crate) pushes: SmallVec<[ExprId; 2]>,
    /// Whether the target belongs to another activation than the expression (a rule was called).
    pub(crate) fresh: bool,
    /// Whether the outermost of `pushes` belongs to the activation of the expression itself.
    pub(crate) keep: bool,
    /// What the byte does to the register of the target's activation.
    pub(crate) action: Action,
    /// Whether the byte, which a callee reads, belongs to a text of the expression's own activation
    /// that must be fresh.
    pub(crate) record: bool,
}

impl Part {
    fn plain(bytes: ByteSet, target: ExprId) -> Self {
        Self {
            bytes,
            target,
            pushes: SmallVec::new(),
            fresh: false,
            keep: false,
            action: Action::None,
            record: false,
        }
    }
}

/// Grows everything that is known of a grammar: expansions, linear forms, and which expressions have
/// a text. One thread at a time uses it; what it finds is published in lock-free tables.
#[derive(Debug)]
pub(crate) struct Grower {
    pub(crate) grammar: Grammar,
    pub(crate) limits: Limits,
    /// What is left of the work that the present call may do.
    pub(crate) budget: Budget,
    linear: Vec<Option<Arc<[Part]>>>,
    expansions: HashMap<FamilyId, ExprId, foldhash::fast::RandomState>,
    pub(crate) answers: Answers,
    pub(crate) rooms: Rooms,
}

impl Grower {
    pub(crate) fn new(grammar: Grammar, limits: Limits) -> Self {
        let budget = Budget::new("compile_work", limits.compile_work);
        Self {
            grammar,
            limits,
            budget,
            linear: Vec::new(),
            expansions: HashMap::default(),
            answers: Answers::default(),
            rooms: Rooms::default(),
        }
    }

    /// Returns a grower that knows these expansions already.
    pub(crate) fn restore(
        grammar: Grammar,
        limits: Limits,
        expansions: Vec<(FamilyId, ExprId)>,
    ) -> Self {
        let mut grower = Self::new(grammar, limits);
        grower.expansions.extend(expansions);
        grower
    }

    /// Returns the expansions so far.
    pub(crate) fn expansions(&self) -> Vec<(FamilyId, ExprId)> {
        let mut expansions: Vec<_> =
            self.expansions.iter().map(|(&family, &expr)| (family, expr)).collect();
        expansions.sort_unstable();
        expansions
    }

    pub(crate) fn arena(&mut self) -> &mut Arena {
        &mut self.grammar.arena
    }

    /// Returns the expansion of a family member.
    pub(crate) fn expansion(&mut self, family: FamilyId) -> Result<ExprId, Error> {
        if let Some(&expr) = self.expansions.get(&family) {
            return Ok(expr);
        }
        self.budget.spend(1)?;
        let Grammar { arena, rules, expander, .. } = &mut self.grammar;
        let Some(expander) = expander else {
            return Err(Error::new(
                ErrorKind::Artifact,
                "a lazy part of the grammar has no expander",
            ));
        };
        let expr = expander.expand(family, &mut Scope { arena, rules })?;
        self.budget.spend(expander.take_work())?;
        self.grammar.arena.check()?;
        self.expansions.insert(family, expr);
        Ok(expr)
    }

    /// Returns the body of a rule.
    pub(crate) fn body(&self, rule: crate::ids::RuleId) -> Result<ExprId, Error> {
        let body = self.grammar.rules.get(rule.index()).and_then(|rule| rule.body);
        body.ok_or_else(|| {
            Error::new(ErrorKind::UnresolvedReference, "a rule is called and not defined")
        })
    }

    /// Returns the linear form of `expr`.
    pub(crate) fn linear(&mut self, expr: ExprId) -> Result<Arc<[Part]>, Error> {
        if let Some(Some(parts)) = self.linear.get(expr.index()) {
            return Ok(parts.clone());
        }
        let mut needs = Vec::new();
        self.linear_needs(expr, &mut needs)?;
        if needs.iter().all(|&need| self.has_linear(need)) {
            self.make_linear(expr)?;
            return self.linear_of(expr);
        }
        // Depth first with an explicit stack; an expression met again while it is open calls itself
        // before its first byte.
        let mut stack = vec![(expr, false)];
        let mut open = HashSet::<ExprId, foldhash::fast::RandomState>::default();
        while let Some((top, entered)) = stack.pop() {
            needs.clear();
            if !self.has_linear(top) {
                self.linear_needs(top, &mut needs)?;
                needs.retain(|&need| !self.has_linear(need));
                if needs.is_empty() {
                    self.make_linear(top)?;
                }
            }
            if needs.is_empty() {
                open.remove(&top);
                continue;
            }
            open.insert(top);
            if entered || needs.iter().any(|need| open.contains(need)) {
                return Err(left_recursion());
            }
            self.budget.spend(1)?;
            stack.push((top, true));
            stack.extend(needs.iter().map(|&need| (need, false)));
        }
        self.linear_of(expr)
    }

    fn has_linear(&self, expr: ExprId) -> bool {
        matches!(self.linear.get(expr.index()), Some(Some(_)))
    }

    /// Returns a linear form that was made before.
    fn linear_of(&self, expr: ExprId) -> Result<Arc<[Part]>, Error> {
        match self.linear.get(expr.index()) {
            Some(Some(parts)) => Ok(parts.clone()),
            _ => Err(left_recursion()),
        }
    }

    fn make_linear(&mut self, expr: ExprId) -> Result<(), Error> {
        let parts = self.linear_form(expr)?;
        self.grammar.arena.check()?;
        self.budget.spend(1 + parts.len() as u64)?;
        if self.linear.len() <= expr.index() {
            self.linear.resize(self.grammar.arena.len().max(expr.index() + 1), None);
        }
        self.linear[expr.index()] = Some(parts.into());
        Ok(())
    }

    /// Appends the expressions whose linear forms that of `expr` is made of.
    pub(super) fn linear_needs(
        &mut self,
        expr: ExprId,
        needs: &mut Vec<ExprId>,
    ) -> Result<(), Error> {
        match self.grammar.arena.get(expr) {
            Expr::Empty
            | Expr::Epsilon
            | Expr::Bytes(_)
            | Expr::Literals { .. }
            | Expr::Progression { .. } => {}
            &Expr::Concat(first, second) => {
                needs.push(first);
                if self.nullable(first)? {
                    needs.push(second);
                }
            }
            Expr::Alt(parts) | Expr::And(parts) => needs.extend_from_slice(parts),
            &Expr::Not(inner) | &Expr::Fresh(inner) | &Expr::Repeat { body: inner, .. } => {
                needs.push(inner)
            }
            &Expr::Call(rule) => needs.push(self.body(rule)?),
            &Expr::Lazy(family) => needs.push(self.expansion(family)?),
        }
        Ok(())
    }

    /// Computes a linear form from those of its needs.
    fn linear_form(&mut self, expr: ExprId) -> Result<Vec<Part>, Error> {
        match self.grammar.arena.get(expr).clone() {
            Expr::Empty | Expr::Epsilon => Ok(Vec::new()),
            Expr::Bytes(set) => Ok(vec![Part::plain(set, Arena::EPSILON)]),
            Expr::Literals { set, node } => Ok(self.literal_parts(set, node)),
            Expr::Progression { table, state } => {
                let parts = self.arena().progression_transitions(table, state);
                Ok(parts.into_iter().map(|(bytes, rest)| Part::plain(bytes, rest)).collect())
            }
            Expr::Concat(first, second) => {
                let mut parts = self.followed_by(first, second)?;
                if self.nullable(first)? {
                    parts.extend_from_slice(&self.linear_of(second)?);
                    parts = self.merge(parts)?;
                }
                Ok(parts)
            }
            Expr::Alt(members) => {
                let mut parts = Vec::new();
                for member in members {
                    parts.extend_from_slice(&self.linear_of(member)?);
                }
                self.merge(parts)
            }
            Expr::Repeat { body, min, max } => {
                let max = if max == UNBOUNDED { max } else { max - 1 };
                let rest = self.arena().repeat(body, min.saturating_sub(1), max);
                self.followed_by(body, rest)
            }
            Expr::And(members) => self.intersection(&members),
            Expr::Not(inner) => {
                let parts = self.linear_of(inner)?;
                let mut left = ByteSet::ALL;
                let mut result = Vec::with_capacity(parts.len() + 1);
                for part in parts.iter() {
                    left = left.difference(&part.bytes);
                    let target = self.arena().not(part.target);
                    result.push(Part::plain(part.bytes, target));
                }
                result.push(Part::plain(left, Arena::ALL));
                self.merge(result)
            }
            Expr::Call(rule) => {
                let parts = self.linear_of(self.body(rule)?)?;
                if parts.iter().any(|part| part.record) {
                    return Err(not_fresh(
                        "a rule begins with a text that must be fresh and a call",
                    ));
                }
                Ok(parts
                    .iter()
                    .map(|part| Part { fresh: true, keep: false, ..part.clone() })
                    .collect())
            }
            Expr::Lazy(family) => {
                let expansion = self.expansion(family)?;
                Ok(self.linear_of(expansion)?.to_vec())
            }
            Expr::Fresh(text) => self.fresh_parts(text),
        }
    }

    fn literal_parts(&mut self, set: u32, node: u64) -> Vec<Part> {
        let Ok(address) = usize::try_from(node) else { return Vec::new() };
        let arena = self.arena();
        let next: Vec<_> = arena
            .literal_set(set)
            .node(address)
            .transitions()
            .map(|t| (t.inp, t.addr as u64))
            .collect();
        let mut parts: Vec<Part> = Vec::new();
        for (byte, address) in next {
            let target = arena.literal_node(set, address);
            match parts.iter_mut().find(|part| part.target == target) {
                Some(part) => part.bytes.insert(byte),
                None => parts.push(Part::plain(ByteSet::single(byte), target)),
            }
        }
        parts
    }

    /// Returns the linear form of `first` with `second` after every rest.
    fn followed_by(&mut self, first: ExprId, second: ExprId) -> Result<Vec<Part>, Error> {
        let parts = self.linear_of(first)?;
        let mut result = Vec::with_capacity(parts.len());
        for part in parts.iter() {
            let mut part = part.clone();
            if !part.fresh {
                part.target = self.arena().concat2(part.target, second);
            } else if part.keep {
                part.pushes[0] = self.arena().concat2(part.pushes[0], second);
            } else if second != Arena::EPSILON {
                part.pushes.insert(0, second);
                part.keep = true;
            }
            result.push(part);
        }
        // Rests that became equal, as those of (a|b)c, are one part again.
        self.merge(result)
    }

    /// Returns the parts of regular members that agree on the byte, with the members' rests met.
    fn intersection(&mut self, members: &[ExprId]) -> Result<Vec<Part>, Error> {
        let mut result: Vec<(ByteSet, SmallVec<[ExprId; 8]>)> =
            vec![(ByteSet::ALL, SmallVec::new())];
        for &member in members {
            let parts = self.linear_of(member)?;
            let mut next = Vec::with_capacity(result.len());
            for (bytes, rests) in &result {
                for part in parts.iter() {
                    let both = bytes.intersection(&part.bytes);
                    if !both.is_empty() {
                        let mut rests = rests.clone();
                        rests.push(part.target);
                        next.push((both, rests));
                    }
                }
            }
            self.budget.spend(next.len() as u64)?;
            result = next;
        }
        let mut parts = Vec::with_capacity(result.len());
        for (bytes, rests) in result {
            let target = self.arena().and(&rests);
            parts.push(Part::plain(bytes, target));
        }
        self.merge(parts)
    }

    fn fresh_parts(&mut self, text: ExprId) -> Result<Vec<Part>, Error> {
        let parts = self.linear_of(text)?;
        let mut result = Vec::with_capacity(parts.len());
        for part in parts.iter() {
            let mut part = part.clone();
            // What is left of the text itself, which a callee's rest may stand before.
            let rest = match (part.fresh, part.keep) {
                (false, _) => part.target,
                (true, true) => part.pushes[0],
                (true, false) => Arena::EPSILON,
            };
            let ends = self.nullable(rest)?;
            if ends && part.fresh {
                return Err(not_fresh("a text that must be fresh ends with a call"));
            }
            if ends && self.live_after_byte(rest)? {
                return Err(not_fresh("a text that must be fresh is a prefix of another"));
            }
            if part.fresh {
                part.pushes[0] = self.arena().fresh(rest);
                part.record = true;
            } else if ends {
                part.target = Arena::EPSILON;
                part.action = Action::Close;
            } else {
                part.target = self.arena().fresh(rest);
                part.action = Action::Record;
            }
            result.push(part);
        }
        self.merge(result)
    }

    /// Returns whether a regular expression has a text that is not empty.
    fn live_after_byte(&mut self, expr: ExprId) -> Result<bool, Error> {
        if expr == Arena::EPSILON {
            return Ok(false);
        }
        for part in self.linear(expr)?.iter() {
            if self.live(part.target)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Merges parts that differ only in bytes and target into parts with disjoint bytes, whose
    /// targets are the unions of those that share a byte.
    fn merge(&mut self, mut parts: Vec<Part>) -> Result<Vec<Part>, Error> {
        parts.retain(|part| {
            !part.bytes.is_empty()
                && part.target != Arena::EMPTY
                && !part.pushes.contains(&Arena::EMPTY)
        });
        if parts.len() < 2 {
            return Ok(parts);
        }
        let mut result = Vec::with_capacity(parts.len());
        while let Some(first) = parts.first() {
            let kind =
                |part: &Part| (part.fresh, part.keep, part.record, part.action == Action::Close);
            let key = (first.pushes.clone(), kind(first));
            let same = |part: &Part| part.pushes == key.0 && kind(part) == key.1;
            // Mostly all are alike.
            if parts.iter().all(same) {
                self.overlay(&parts, &mut result)?;
                break;
            }
            let (group, rest): (Vec<_>, Vec<_>) = parts.into_iter().partition(same);
            parts = rest;
            self.overlay(&group, &mut result)?;
        }
        Ok(result)
    }

    /// Appends the disjoint refinement of parts that return to the same frames.
    fn overlay(&mut self, group: &[Part], result: &mut Vec<Part>) -> Result<(), Error> {
        let Some(first) = group.first() else { return Ok(()) };
        let start = result.len();
        let mut union = ByteSet::EMPTY;
        let mut disjoint = true;
        for part in group {
            disjoint &= union.intersection(&part.bytes).is_empty();
            union = union.union(&part.bytes);
        }
        if disjoint {
            self.budget.spend(group.len() as u64)?;
            for part in group {
                match result[start..]
                    .iter_mut()
                    .find(|known| known.target == part.target && known.action == part.action)
                {
                    Some(known) => known.bytes = known.bytes.union(&part.bytes),
                    None => result.push(part.clone()),
                }
            }
            return Ok(());
        }
        let mut pieces: Vec<(ByteSet, SmallVec<[ExprId; 4]>, Action)> =
            Vec::with_capacity(group.len());
        for part in group {
            let mut left = part.bytes;
            for index in 0..pieces.len() {
                let both = pieces[index].0.intersection(&left);
                if both.is_empty() {
                    continue;
                }
                left = left.difference(&both);
                let mut targets = pieces[index].1.clone();
                targets.push(part.target);
                let action = pieces[index].2.max(part.action);
                let only = pieces[index].0.difference(&both);
                if only.is_empty() {
                    pieces[index] = (both, targets, action);
                } else {
                    pieces[index].0 = only;
                    pieces.push((both, targets, action));
                }
            }
            self.budget.spend(1 + pieces.len() as u64 / 8)?;
            if !left.is_empty() {
                pieces.push((left, SmallVec::from_slice(&[part.target]), part.action));
            }
        }
        for (bytes, targets, action) in pieces {
            let target = if targets.len() == 1 { targets[0] } else { self.arena().alt(&targets) };
            match result[start..]
                .iter_mut()
                .find(|part| part.target == target && part.action == action)
            {
                Some(part) => part.bytes = part.bytes.union(&bytes),
                None => result.push(Part { bytes, target, action, ..first.clone() }),
            }
        }
        Ok(())
    }
}

fn not_fresh(text: &str) -> Error {
    Error::new(ErrorKind::UnsupportedFeature { feature: "fresh".into() }, text)
}

fn left_recursion() -> Error {
    Error::new(ErrorKind::LeftRecursion, "a rule calls itself before it consumes anything")
}
