//! Facts that depend on rules: which expressions contain the empty text, which have any text, and how
//! long the shortest is.
//!
//! All three are one computation with different costs of a byte: the least cost of a text, where
//! concatenation adds and union takes the minimum (Knuth, "A generalization of Dijkstra's algorithm",
//! 1977). Rules and lazy members take part in a least fixpoint, found by passes until nothing
//! changes; an alternative whose lower bound cannot improve the minimum is not looked at, so lazy
//! members that cannot matter stay unexpanded. Where any text will do, the first pass goes depth first
//! into what it meets, so that one way to some text is found before others are looked at. Intersections
//! and complements are decided by exploring their derivatives.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::automaton::linear::Grower;
use crate::error::Error;
use crate::ids::ExprId;
use crate::ir::{Arena, Expr, Grammar, Liveness, Scope, UNBOUNDED};

type Map<T> = HashMap<ExprId, T, foldhash::fast::RandomState>;

/// The cost of a language without a text.
pub(crate) const NEVER: u32 = u32::MAX;

/// What a byte costs, and so what the least cost of a text tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// A byte costs [`NEVER`]: the least cost is 0 exactly if the empty text is in the language.
    Nullable,
    /// A byte costs 0: the least cost is 0 exactly if there is any text.
    Live,
    /// A byte costs 1: the least cost is the length of the shortest text.
    Least,
}

/// The final answers so far, for expressions of which the parts alone do not tell.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    by_question: [Map<u32>; 3],
}

impl Answers {
    fn of(&mut self, question: Question) -> &mut Map<u32> {
        &mut self.by_question[question as usize]
    }
}

/// One evaluation: the values that rules and lazy members have so far.
struct Fixpoint {
    question: Question,
    values: Map<u32>,
    /// The calls and lazy members met, each with the expression that it stands for.
    bodies: Vec<(ExprId, ExprId)>,
    /// Values of this pass.
    pass: Map<u32>,
}

/// An expression under evaluation: its members in the order of visit, and the value so far.
struct Visit {
    expr: ExprId,
    members: SmallVec<[ExprId; 4]>,
    next: usize,
    value: u32,
}

impl Grower {
    /// Returns whether the empty text is in the language of `expr`.
    pub(crate) fn nullable(&mut self, expr: ExprId) -> Result<bool, Error> {
        match self.grammar.arena.facts(expr).nullable {
            Some(known) => Ok(known),
            None => Ok(self.solve(Question::Nullable, expr)? == 0),
        }
    }

    /// Returns whether the language of `expr` has any text.
    pub(crate) fn live(&mut self, expr: ExprId) -> Result<bool, Error> {
        let facts = self.grammar.arena.facts(expr);
        if facts.regular && facts.positive {
            return Ok(expr != Arena::EMPTY);
        }
        match self.known_live(expr) {
            Some(live) => Ok(live),
            None => Ok(self.solve(Question::Live, expr)? == 0),
        }
    }

    /// Returns whether the language of `expr` has any text if earlier answers on the members of a
    /// concatenation tell.
    fn known_live(&mut self, expr: ExprId) -> Option<bool> {
        let mut rest = expr;
        // Some of the tails, so that the states along a long literal need not all go to its end.
        let mut passed: SmallVec<[ExprId; 8]> = SmallVec::new();
        let live = self.live_spine(&mut rest, &mut passed);
        if live == Some(true) {
            self.answers.of(Question::Live).extend(passed.iter().map(|&tail| (tail, 0)));
        }
        live
    }

    fn live_spine(
        &mut self,
        rest: &mut ExprId,
        passed: &mut SmallVec<[ExprId; 8]>,
    ) -> Option<bool> {
        for step in 1_usize.. {
            if step.is_multiple_of(32) {
                passed.push(*rest);
            }
            if let Some(&known) = self.answers.of(Question::Live).get(rest) {
                return Some(known == 0);
            }
            let head = match *self.grammar.arena.get(*rest) {
                Expr::Concat(head, tail) => {
                    *rest = tail;
                    head
                }
                _ => {
                    let facts = self.grammar.arena.facts(*rest);
                    let told = facts.nullable == Some(true) || facts.regular && facts.positive;
                    return told.then_some(*rest != Arena::EMPTY);
                }
            };
            let facts = self.grammar.arena.facts(head);
            let told = facts.nullable == Some(true)
                || facts.regular && facts.positive && head != Arena::EMPTY;
            if !told {
                match self.answers.of(Question::Live).get(&head) {
                    Some(0) => {}
                    Some(_) => return Some(false),
                    None => return None,
                }
            }
        }
        None
    }

    /// Returns the number of bytes of the shortest text of `expr`, or [`NEVER`].
    pub(crate) fn least(&mut self, expr: ExprId) -> Result<u32, Error> {
        self.solve(Question::Least, expr)
    }

    /// Returns the endless repetitions that `expr` consists of, but for finitely many texts of each, with
    /// live parts behind or other parts beside.
    pub(crate) fn endless_parts(&mut self, expr: ExprId) -> Result<SmallVec<[ExprId; 2]>, Error> {
        let mut found = SmallVec::new();
        let mut pending = vec![expr];
        while let Some(expr) = pending.pop() {
            self.budget.spend(1)?;
            if let &Expr::Concat(first, second) = self.grammar.arena.get(expr) {
                if self.live(second)? {
                    pending.push(first);
                }
                continue;
            }
            match self.grammar.arena.get(expr) {
                Expr::Alt(members) => pending.extend_from_slice(members),
                &Expr::Fresh(text) => pending.push(text),
                Expr::And(members) => {
                    let members = members.clone();
                    let mut whole = Vec::new();
                    for member in members {
                        let refused = match *self.grammar.arena.get(member) {
                            Expr::Not(inner) => Some(inner),
                            _ => None,
                        };
                        if refused.map_or(Ok(false), |inner| self.is_finite(inner))? {
                            continue;
                        }
                        whole.push(member);
                    }
                    if let &[only] = &whole[..] {
                        pending.push(only);
                    }
                }
                Expr::Repeat { min: 0, max: UNBOUNDED, .. } => found.push(expr),
                _ => {}
            }
        }
        Ok(found)
    }

    /// Returns whether `expr` is built in a way that only finitely many texts have.
    fn is_finite(&mut self, expr: ExprId) -> Result<bool, Error> {
        let mut pending = vec![expr];
        while let Some(expr) = pending.pop() {
            self.budget.spend(1)?;
            match self.grammar.arena.get(expr) {
                Expr::Empty | Expr::Epsilon | Expr::Bytes(_) | Expr::Literals { .. } => {}
                &Expr::Concat(first, second) => pending.extend([first, second]),
                Expr::Alt(members) => pending.extend_from_slice(members),
                &Expr::Repeat { body, max, .. } if max != UNBOUNDED => pending.push(body),
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn solve(&mut self, question: Question, expr: ExprId) -> Result<u32, Error> {
        if let Some(&known) = self.answers.of(question).get(&expr) {
            return Ok(known);
        }
        let mut fixpoint =
            Fixpoint { question, values: Map::default(), bodies: Vec::new(), pass: Map::default() };
        loop {
            fixpoint.pass.clear();
            let before = fixpoint.bodies.len();
            let value = self.evaluate(&mut fixpoint, expr)?;
            if question != Question::Least && value == 0 {
                // Nothing can be better, and what has a text keeps it.
                for (&expr, _) in fixpoint.values.iter().filter(|&(_, &value)| value == 0) {
                    self.answers.of(question).insert(expr, 0);
                }
                self.answers.of(question).insert(expr, 0);
                return Ok(0);
            }
            let mut changed = false;
            let mut index = fixpoint.bodies.len();
            // Last met first: values flow from the end of a chain of rules to its start.
            while index > 0 {
                index -= 1;
                let (node, body) = fixpoint.bodies[index];
                let value = self.evaluate(&mut fixpoint, body)?;
                let old = fixpoint.values.insert(node, value);
                changed |= old != Some(value);
            }
            if !changed && before == fixpoint.bodies.len() {
                self.answers.of(question).extend(&fixpoint.values);
                self.answers.of(question).insert(expr, value);
                return Ok(value);
            }
        }
    }

    /// Returns the value of `expr` under the present values of the rules.
    fn evaluate(&mut self, fixpoint: &mut Fixpoint, expr: ExprId) -> Result<u32, Error> {
        let mut stack: Vec<Visit> = Vec::new();
        let mut result = match self.enter(fixpoint, expr)? {
            Ok(value) => return Ok(value),
            Err(visit) => {
                stack.push(visit);
                None
            }
        };
        loop {
            let Some(top) = stack.last_mut() else { return Ok(result.unwrap_or(NEVER)) };
            if let Some(value) = result.take() {
                top.value = match self.grammar.arena.get(top.expr) {
                    Expr::Alt(_) => top.value.min(value),
                    &Expr::Repeat { min, .. } => value.saturating_mul(min),
                    _ => top.value.saturating_add(value),
                };
            }
            let union = matches!(self.grammar.arena.get(top.expr), Expr::Alt(_));
            let next = top.members.get(top.next).copied().filter(|&member| {
                let bound = match fixpoint.question {
                    Question::Least => self.grammar.arena.facts(member).least,
                    Question::Nullable | Question::Live => 0,
                };
                if union { bound < top.value } else { top.value != NEVER }
            });
            top.next += 1;
            match next {
                Some(member) => match self.enter(fixpoint, member)? {
                    Ok(value) => result = Some(value),
                    Err(visit) => stack.push(visit),
                },
                // Members of a union are sorted by their bounds, so none after this one matters.
                None => {
                    let (expr, value) = (top.expr, top.value);
                    if let Expr::Call(_) | Expr::Lazy(_) = self.grammar.arena.get(expr) {
                        fixpoint.values.insert(expr, value);
                    } else {
                        fixpoint.pass.insert(expr, value);
                    }
                    result = Some(value);
                    stack.pop();
                }
            }
        }
    }

    /// Returns the value of `expr` if it is known or a leaf, else what to visit for it.
    fn enter(
        &mut self,
        fixpoint: &mut Fixpoint,
        expr: ExprId,
    ) -> Result<Result<u32, Visit>, Error> {
        let question = fixpoint.question;
        let known = self.answers.of(question).get(&expr).or_else(|| fixpoint.pass.get(&expr));
        if let Some(&value) = known {
            return Ok(Ok(value));
        }
        self.budget.spend(1)?;
        let facts = self.grammar.arena.facts(expr);
        match (question, facts.nullable) {
            (Question::Nullable, Some(nullable)) => {
                return Ok(Ok(if nullable { 0 } else { NEVER }));
            }
            (Question::Live, _) if facts.regular && facts.positive => {
                return Ok(Ok(if expr == Arena::EMPTY { NEVER } else { 0 }));
            }
            (Question::Least | Question::Live, Some(true)) => return Ok(Ok(0)),
            _ => {}
        }
        let mut members: SmallVec<[ExprId; 4]> = SmallVec::new();
        let mut start = 0;
        match self.grammar.arena.get(expr) {
            Expr::Empty => return Ok(Ok(NEVER)),
            Expr::Epsilon => return Ok(Ok(0)),
            Expr::Bytes(_) => return Ok(Ok(u32::from(question == Question::Least))),
            &Expr::Concat(first, second) => members.extend([first, second]),
            Expr::Alt(parts) => {
                start = NEVER;
                members.extend_from_slice(parts);
                let arena = &self.grammar.arena;
                if question == Question::Least {
                    members.sort_by_key(|&member| arena.facts(member).least);
                } else {
                    // What needs no look inside comes first.
                    members.sort_by_key(|&member| {
                        let facts = arena.facts(member);
                        facts.nullable != Some(true) && !facts.regular
                    });
                }
            }
            // At least one copy: a repetition of none is nullable, and was answered above.
            &Expr::Repeat { body, .. } | &Expr::Fresh(body) => members.push(body),
            Expr::And(_) | Expr::Not(_) | Expr::Literals { .. } => {
                let value = self.shortest(expr, question == Question::Live)?;
                let value = if question == Question::Live && value != NEVER { 0 } else { value };
                self.answers.of(question).insert(expr, value);
                return Ok(Ok(value));
            }
            &Expr::Progression { table, state } => {
                return Ok(Ok(self.grammar.arena.progression_least(table, state)));
            }
            Expr::Call(_) | Expr::Lazy(_) => {
                if let Some(&value) = fixpoint.values.get(&expr) {
                    return Ok(Ok(value));
                }
                // Until more is known, it has no text: what is found on that assumption stays true.
                fixpoint.values.insert(expr, NEVER);
                let body = self.node_body(question, expr)?;
                fixpoint.bodies.push((expr, body));
                if question == Question::Least {
                    return Ok(Ok(NEVER));
                }
                members.push(body);
            }
        }
        Ok(Err(Visit { expr, members, next: 0, value: start }))
    }

    /// Returns what a call or lazy member stands for, or what has a text exactly if it has.
    fn node_body(&mut self, question: Question, node: ExprId) -> Result<ExprId, Error> {
        Ok(match *self.grammar.arena.get(node) {
            Expr::Call(rule) => self.body(rule)?,
            Expr::Lazy(family) => {
                let Grammar { arena, rules, expander, .. } = &mut self.grammar;
                let scope = &mut Scope { arena, rules };
                let hint = match (expander, question) {
                    (Some(expander), Question::Live) => {
                        let liveness = expander.liveness(family, scope)?;
                        self.budget.spend(expander.take_work())?;
                        liveness
                    }
                    (Some(expander), Question::Least) => {
                        let other = expander.as_long(family, scope)?;
                        self.budget.spend(expander.take_work())?;
                        other.map_or(Liveness::Expand, |other| Liveness::All(vec![other]))
                    }
                    _ => Liveness::Expand,
                };
                match hint {
                    Liveness::Live => Arena::EPSILON,
                    Liveness::Dead => Arena::EMPTY,
                    Liveness::All(parts) => self.grammar.arena.concat(&parts),
                    Liveness::Expand => self.expansion(family)?,
                }
            }
            _ => node,
        })
    }

    /// Returns the length of the shortest text of a regular expression by exploring its derivatives,
    /// or of some text if `any` (which is quicker, and remembers what it learns on the way).
    ///
    /// Both follow the lower bounds of what is left, as A* does (Hart, Nilsson and Raphael, 1968). For any
    /// text the bounds weigh more than what was come (Pohl, 1970): so it is not held up where they are
    /// good, and not led astray where they say nothing.
    fn shortest(&mut self, expr: ExprId, any: bool) -> Result<u32, Error> {
        // The length by which each was reached, from where, so that all on the way to a text are known
        // to have one.
        let mut reached: HashMap<ExprId, (u32, ExprId), foldhash::fast::RandomState> =
            HashMap::default();
        let mut queue = BinaryHeap::new();
        reached.insert(expr, (0, expr));
        queue.push((Reverse(0), 0, expr));
        while let Some((_, length, at)) = queue.pop() {
            self.budget.spend(1)?;
            if reached.get(&at).is_some_and(|&(shorter, _)| shorter < length) {
                continue;
            }
            let facts = self.grammar.arena.facts(at);
            let known = self.answers.of(Question::Live).get(&at).copied();
            if facts.nullable == Some(true) || any && (facts.positive || known == Some(0)) {
                let mut way = Some(at);
                while let Some(at) = way {
                    self.answers.of(Question::Live).insert(at, 0);
                    way = reached.get(&at).map(|&(_, from)| from).filter(|&from| from != at);
                }
                return Ok(length);
            }
            if known == Some(NEVER) {
                continue;
            }
            for part in self.linear(at)?.iter() {
                let target = part.target;
                let shorter = |&(before, _): &(u32, ExprId)| any || before <= length + 1;
                if target == Arena::EMPTY || reached.get(&target).is_some_and(shorter) {
                    continue;
                }
                reached.insert(target, (length + 1, at));
                let left = self.grammar.arena.facts(target).least;
                let weight = if any { 4 } else { 1 };
                let through = left.saturating_mul(weight).saturating_add(length + 1);
                // Of equals, what was come further with.
                queue.push((Reverse(through), length + 1, target));
            }
        }
        for at in reached.into_keys() {
            self.answers.of(Question::Live).insert(at, NEVER);
        }
        Ok(NEVER)
    }
}
