//! Whether a text is in a regular language, by derivatives. For the few texts that a schema itself
//! mentions; outputs are matched by the automaton.

use hashbrown::HashMap;

use crate::error::Error;
use crate::ids::ExprId;
use crate::ir::{Arena, Expr, UNBOUNDED};
use crate::limits::Budget;

/// Memoised derivatives of regular expressions.
#[derive(Clone, Debug, Default)]
pub(super) struct Derivatives {
    memo: HashMap<(ExprId, u8), ExprId, foldhash::fast::RandomState>,
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
            parts.clear();
            match arena.get(top) {
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
}
