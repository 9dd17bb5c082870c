//! Whether a text is in a regular language, and which of several languages a text can be in at once, by
//! derivatives. For the few texts and patterns of a schema's own names; outputs are matched by the
//! automaton.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashMap;

use crate::error::Error;
use crate::ids::ExprId;
use crate::ir::{Arena, ByteSet, Expr, UNBOUNDED};
use crate::limits::Budget;

/// Memoised derivatives of regular expressions.
#[derive(Clone, Debug, Default)]
pub(super) struct Derivatives {
    memo: HashMap<(ExprId, u8), ExprId, foldhash::fast::RandomState>,
    /// Whether languages are empty, as far as is known.
    empty: HashMap<ExprId, bool, foldhash::fast::RandomState>,
    /// The bytes that texts can begin with, and perhaps more.
    firsts: HashMap<ExprId, ByteSet, foldhash::fast::RandomState>,
}

impl Derivatives {
    /// Returns whether `text` is in the language of `expr`, which is regular.
    ///
    /// # Errors
    ///
    /// A spent `budget`.
    pub(super) fn matches(
        &mut self,
        arena: &mut Arena,
        expr: ExprId,
        text: &[u8],
        budget: &mut Budget,
    ) -> Result<bool, Error> {
        let mut at = expr;
        for &byte in text {
            if at == Arena::EMPTY || at == Arena::ALL {
                break;
            }
            at = self.derivative(arena, at, byte, budget)?;
        }
        arena.check()?;
        Ok(arena.facts(at).nullable == Some(true))
    }

    /// Returns whether the language of `expr`, which is regular, has no text; `None` if that takes more
    /// work than `budget`.
    pub(super) fn is_empty(
        &mut self,
        arena: &mut Arena,
        expr: ExprId,
        budget: &mut Budget,
    ) -> Option<bool> {
        let start = expr;
        let mut seen: HashMap<ExprId, (), foldhash::fast::RandomState> = HashMap::default();
        // First wherever least seems to be left.
        let mut pending = BinaryHeap::from([(Reverse(0), expr)]);
        while let Some((_, expr)) = pending.pop() {
            let facts = arena.facts(expr);
            let known = self.empty.get(&expr).copied();
            if expr == Arena::EMPTY || known == Some(true) || seen.insert(expr, ()).is_some() {
                continue;
            }
            if facts.positive || facts.nullable == Some(true) || known == Some(false) {
                self.empty.insert(start, false);
                return Some(false);
            }
            let mut sets = Vec::new();
            first_sets(arena, expr, &mut sets);
            let within = self.firsts(arena, expr, budget)?;
            for byte in representatives(&sets, within) {
                budget.spend(1).ok()?;
                let rest = self.derivative(arena, expr, byte, budget).ok()?;
                pending.push((Reverse(arena.facts(rest).least), rest));
            }
        }
        arena.check().ok()?;
        self.empty.extend(seen.into_keys().map(|expr| (expr, true)));
        Some(true)
    }

    /// Returns the texts of `expr`, which is regular, if there are at most `most`; `None` if there are
    /// more, or if that takes more work than `budget`.
    pub(super) fn texts(
        &mut self,
        arena: &mut Arena,
        expr: ExprId,
        most: usize,
        budget: &mut Budget,
    ) -> Option<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        let mut prefixes: Vec<(ExprId, Vec<u8>)> = vec![(expr, Vec::new())];
        while !prefixes.is_empty() {
            let mut longer = Vec::new();
            for (expr, text) in prefixes {
                let mut sets = Vec::new();
                first_sets(arena, expr, &mut sets);
                let within = self.firsts(arena, expr, budget)?;
                let mut classes = classes(&sets, within);
                // The largest first: it mostly tells that there are too many.
                classes.sort_unstable_by_key(|class| Reverse(class.len()));
                for class in classes {
                    budget.spend(1).ok()?;
                    let next = self.derivative(arena, expr, class.first()?, budget).ok()?;
                    if next == Arena::EMPTY || self.is_empty(arena, next, budget)? {
                        continue;
                    }
                    // Each of them begins a text of its own.
                    if longer.len() + class.len() > most {
                        return None;
                    }
                    longer.extend(class.iter().map(|byte| (next, [&text[..], &[byte]].concat())));
                }
                if arena.facts(expr).nullable == Some(true) {
                    found.push(text);
                }
            }
            if found.len() > most {
                return None;
            }
            prefixes = longer;
        }
        arena.check().ok()?;
        Some(found)
    }

    /// Returns which of `tests` (at most 64 regular languages) a text of `all` can be in at once, as bits,
    /// each combination once; `None` if that takes more work than `budget`.
    pub(super) fn combinations(
        &mut self,
        arena: &mut Arena,
        all: ExprId,
        tests: &[ExprId],
        budget: &mut Budget,
    ) -> Option<Vec<u64>> {
        let mut start = vec![all];
        start.extend_from_slice(tests);
        let mut seen: HashMap<Vec<ExprId>, (), foldhash::fast::RandomState> = HashMap::default();
        let mut found = Vec::new();
        let mut pending = vec![start];
        while let Some(state) = pending.pop() {
            if seen.contains_key(&state) {
                continue;
            }
            let nullable = |expr: ExprId| arena.facts(expr).nullable == Some(true);
            if nullable(state[0]) {
                let tests = state[1..].iter().enumerate();
                found.push(
                    tests.filter(|&(_, &t)| nullable(t)).fold(0, |bits, (i, _)| bits | 1 << i),
                );
            }
            let mut sets = Vec::new();
            for &expr in &state {
                first_sets(arena, expr, &mut sets);
            }
            let within = self.firsts(arena, state[0], budget)?;
            for byte in representatives(&sets, within) {
                budget.spend(1).ok()?;
                let mut next = Vec::with_capacity(state.len());
                for &expr in &state {
                    next.push(self.derivative(arena, expr, byte, budget).ok()?);
                }
                if next[0] != Arena::EMPTY {
                    pending.push(next);
                }
            }
            seen.insert(state, ());
        }
        arena.check().ok()?;
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    /// Returns bytes among which are all that texts of `expr` can begin with: of an intersection only
    /// those that each part can begin with.
    fn firsts(&mut self, arena: &mut Arena, expr: ExprId, budget: &mut Budget) -> Option<ByteSet> {
        let mut stack = vec![expr];
        let mut parts = Vec::new();
        while let Some(&top) = stack.last() {
            if self.firsts.contains_key(&top) {
                stack.pop();
                continue;
            }
            beginnings(arena, top, &mut parts);
            if matches!(arena.get(top), Expr::Not(_)) {
                parts.clear();
            }
            let before = stack.len();
            stack.extend(parts.iter().filter(|part| !self.firsts.contains_key(*part)));
            if stack.len() > before {
                continue;
            }
            budget.spend(1 + parts.len() as u64).ok()?;
            let of = parts.iter().filter_map(|part| self.firsts.get(part));
            let union = |a: ByteSet, b: &ByteSet| a.union(b);
            let result = match arena.get(top) {
                Expr::Empty | Expr::Epsilon => ByteSet::EMPTY,
                Expr::Concat(..) | Expr::Alt(_) | Expr::Repeat { .. } => {
                    of.fold(ByteSet::EMPTY, union)
                }
                Expr::And(_) => of.fold(ByteSet::ALL, |a, b| a.intersection(b)),
                Expr::Bytes(_) | Expr::Literals { .. } | Expr::Progression { .. } => {
                    let mut sets = Vec::new();
                    first_sets(arena, top, &mut sets);
                    sets.iter().fold(ByteSet::EMPTY, union)
                }
                _ => ByteSet::ALL,
            };
            self.firsts.insert(top, result);
            stack.pop();
        }
        self.firsts.get(&expr).copied()
    }

    fn derivative(
        &mut self,
        arena: &mut Arena,
        expr: ExprId,
        byte: u8,
        budget: &mut Budget,
    ) -> Result<ExprId, Error> {
        let mut stack = vec![expr];
        let mut parts = Vec::new();
        while let Some(&top) = stack.last() {
            if self.memo.contains_key(&(top, byte)) {
                stack.pop();
                continue;
            }
            beginnings(arena, top, &mut parts);
            let before = stack.len();
            stack.extend(parts.iter().filter(|&&p| !self.memo.contains_key(&(p, byte))));
            if stack.len() > before {
                continue;
            }
            budget.spend(1 + parts.len() as u64)?;
            let of: Vec<_> =
                parts.iter().filter_map(|&p| self.memo.get(&(p, byte))).copied().collect();
            let result = combine(arena, top, byte, &of);
            self.memo.insert((top, byte), result);
            stack.pop();
        }
        Ok(self.memo.get(&(expr, byte)).copied().unwrap_or(Arena::EMPTY))
    }
}

/// Puts the parts of `expr` that the first byte of a text is about into `parts`.
fn beginnings(arena: &Arena, expr: ExprId, parts: &mut Vec<ExprId>) {
    parts.clear();
    match arena.get(expr) {
        &Expr::Concat(first, second) => {
            parts.push(first);
            if arena.facts(first).nullable == Some(true) {
                parts.push(second);
            }
        }
        Expr::Alt(members) | Expr::And(members) => parts.extend_from_slice(members),
        &Expr::Not(inner) | &Expr::Repeat { body: inner, .. } => parts.push(inner),
        _ => {}
    }
}

/// Appends the sets that first bytes of `expr` are told apart by.
fn first_sets(arena: &mut Arena, expr: ExprId, sets: &mut Vec<ByteSet>) {
    let mut pending = vec![expr];
    let mut parts = Vec::new();
    while let Some(expr) = pending.pop() {
        if let &Expr::Progression { table, state } = arena.get(expr) {
            sets.extend(arena.progression_transitions(table, state).iter().map(|(set, _)| *set));
            continue;
        }
        beginnings(arena, expr, &mut parts);
        pending.append(&mut parts);
        match arena.get(expr) {
            Expr::Bytes(set) => sets.push(*set),
            &Expr::Literals { set, node } => {
                if let Ok(node) = usize::try_from(node) {
                    let node = arena.literal_set(set).node(node);
                    sets.extend(node.transitions().map(|t| ByteSet::single(t.inp)));
                }
            }
            _ => {}
        }
    }
    sets.sort_unstable();
    sets.dedup();
}

/// Returns one byte of each class of those `within` that the sets tell apart.
fn representatives(sets: &[ByteSet], within: ByteSet) -> Vec<u8> {
    classes(sets, within).iter().filter_map(ByteSet::first).collect()
}

/// Returns the classes of bytes `within` that the sets tell apart.
fn classes(sets: &[ByteSet], within: ByteSet) -> Vec<ByteSet> {
    let mut classes = vec![within];
    classes.retain(|class| !class.is_empty());
    for set in sets {
        let mut next = Vec::with_capacity(classes.len() + 1);
        for class in classes {
            next.push(class.intersection(set));
            next.push(class.difference(set));
        }
        next.retain(|class| !class.is_empty());
        classes = next;
    }
    classes
}

/// Returns the derivative of `expr` from those of its parts.
fn combine(arena: &mut Arena, expr: ExprId, byte: u8, parts: &[ExprId]) -> ExprId {
    match *arena.get(expr) {
        Expr::Bytes(set) if set.contains(byte) => Arena::EPSILON,
        Expr::Concat(_, second) => {
            let result = arena.concat2(parts[0], second);
            match parts.get(1) {
                Some(&other) => arena.alt2(result, other),
                None => result,
            }
        }
        Expr::Alt(_) => arena.alt(parts),
        Expr::And(_) => arena.and(parts),
        Expr::Not(_) => arena.not(parts[0]),
        Expr::Repeat { body, min, max } => {
            let max = if max == UNBOUNDED { max } else { max - 1 };
            let rest = arena.repeat(body, min.saturating_sub(1), max);
            arena.concat2(parts[0], rest)
        }
        Expr::Literals { set, node } => {
            let next = usize::try_from(node).ok().and_then(|node| {
                let node = arena.literal_set(set).node(node);
                node.find_input(byte).map(|i| node.transition(i).addr as u64)
            });
            next.map_or(Arena::EMPTY, |node| arena.literal_node(set, node))
        }
        Expr::Progression { table, state } => {
            let mut next = arena.progression_transitions(table, state).into_iter();
            next.find(|(set, _)| set.contains(byte)).map_or(Arena::EMPTY, |(_, rest)| rest)
        }
        _ => Arena::EMPTY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::ecma::Pattern;
    use crate::ir::chars::Encoding;
    use crate::limits::Limits;

    #[test]
    fn derivatives_agree_with_the_regex_crate() {
        let limits = Limits::default();
        let mut arena = Arena::default();
        let mut derivatives = Derivatives::default();
        let mut budget = Budget::new("compile_work", 10_000_000);
        let texts = ["", "a", "ab", "abc", "aab", "x-y", "b", "bbbb", "é", "12", "a12z", "zz"];
        for source in
            ["^a+b?$", "b", "^$", "^(ab|x)-?", "[0-9]{2,3}", "^.$", "^[^a]*$", "(a|aa){2}b"]
        {
            let pattern = Pattern::parse(source, &limits).expect(source);
            let expr = pattern.to_expr(&mut arena, Encoding::Utf8, &limits).expect(source);
            let not = arena.not(expr);
            let oracle = regex::Regex::new(source).expect(source);
            for text in texts {
                let mut is = |expr| {
                    derivatives
                        .matches(&mut arena, expr, text.as_bytes(), &mut budget)
                        .expect("cheap")
                };
                assert_eq!(is(expr), oracle.is_match(text), "{source} {text}");
                assert_eq!(is(not), !oracle.is_match(text), "not {source} {text}");
            }
        }
        let set = arena.literals(texts.iter().map(|t| t.as_bytes().to_vec()));
        for text in texts {
            assert!(
                derivatives.matches(&mut arena, set, text.as_bytes(), &mut budget).expect("cheap")
            );
        }
        assert!(!derivatives.matches(&mut arena, set, b"abcd", &mut budget).expect("cheap"));
    }

    #[test]
    fn combinations_and_texts_are_those_there_are() {
        let limits = Limits::default();
        let mut arena = Arena::default();
        let sources = ["^a", "b$", "^a?b?$", "^[^a]{2}$"];
        let tests: Vec<_> = sources
            .iter()
            .map(|source| {
                let pattern = Pattern::parse(source, &limits).expect(source);
                pattern.to_expr(&mut arena, Encoding::Utf8, &limits).expect(source)
            })
            .collect();
        let all = crate::ir::chars::any_text(&mut arena, Encoding::Utf8);
        let mut budget = Budget::new("compile_work", 100_000);
        let found = Derivatives::default()
            .combinations(&mut arena, all, &tests, &mut budget)
            .expect("few states");
        // All texts of up to three characters tell the same.
        let oracles: Vec<_> = sources.iter().map(|s| regex::Regex::new(s).expect(s)).collect();
        let mut expected = Vec::new();
        let mut texts = vec![String::new()];
        for _ in 0..3 {
            let longer = texts.iter().flat_map(|t| ["a", "b", "c"].map(|c| format!("{t}{c}")));
            texts = texts.iter().cloned().chain(longer).collect();
        }
        for text in texts {
            let bits = oracles.iter().enumerate().filter(|(_, o)| o.is_match(&text));
            expected.push(bits.fold(0, |bits, (i, _)| bits | 1 << i));
        }
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(found, expected);
        for (source, expected) in [
            ("^(?:a|b|cd?)$", Some(vec!["a", "b", "c", "cd"])),
            ("^$", Some(vec![""])),
            ("^[a-h]{2}$", None),
            ("^a*$", None),
            ("^(?!a)[a-c]$", Some(vec!["b", "c"])),
        ] {
            let pattern = Pattern::parse(source, &limits).expect(source);
            let expr = pattern.to_expr(&mut arena, Encoding::Utf8, &limits).expect(source);
            let texts = Derivatives::default().texts(&mut arena, expr, 63, &mut budget);
            let texts = texts.map(|texts| {
                let mut texts: Vec<_> =
                    texts.into_iter().map(|t| String::from_utf8(t).expect("UTF-8")).collect();
                texts.sort_unstable();
                texts
            });
            assert_eq!(texts, expected.map(|e| e.into_iter().map(str::to_owned).collect()));
        }
        let mut small = Budget::new("compile_work", 3);
        assert_eq!(Derivatives::default().combinations(&mut arena, all, &tests, &mut small), None);
    }
}
