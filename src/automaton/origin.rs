//! Where in a grammar an output stands: a text in, the name of the rule that it is in out. For people who
//! ask; steps of a sequence do not need it.
//!
//! States do not know their rules, since equal rests of different rules are one state. So the text is
//! followed from the start, and each state that it leads through takes the rule of the one before, or of
//! the call that was made there. What two rules share on the way is the rule of neither.

use hashbrown::{HashMap, HashSet};

use crate::automaton::linear::Grower;
use crate::automaton::states::{Automaton, Move};
use crate::automaton::threads::{Configuration, Thread, each_row, step};
use crate::error::Error;
use crate::ids::{ExprId, RuleId, StateId};
use crate::ir::Expr;
use crate::limits::Budget;

/// The rules of states; `None` where it is not known.
type Origins = HashMap<StateId, Option<RuleId>, foldhash::fast::RandomState>;

/// Returns the name of the rule that goes on after `text`, or `None` if it is not known, there is none, or
/// the text is not legal. Costs a step for each byte.
///
/// # Errors
///
/// What growing the automaton says.
pub(crate) fn rule_after(
    automaton: &Automaton,
    text: &[u8],
    budget: &mut Budget,
) -> Result<Option<Box<str>>, Error> {
    let mut origins = Origins::default();
    let start = Thread::start(automaton);
    origins.insert(start.state, start_rule(automaton));
    let mut threads: Configuration = smallvec::smallvec![start];
    for &byte in text {
        let mut moves: Vec<(StateId, &Move)> = Vec::new();
        for thread in &threads {
            each_row(automaton, thread, budget, |thread, row| {
                moves.extend(row.moves(byte).iter().map(|next| (thread.state, next)));
            })?;
        }
        for (from, next) in moves {
            follow(automaton, &mut origins, from, byte, next, budget)?;
        }
        threads = step(automaton, &threads, byte, budget)?;
    }
    let mut found: Option<Option<RuleId>> = None;
    for thread in &threads {
        // A rule that has ended has no say.
        let mut going_on = None;
        each_row(automaton, thread, budget, |thread, row| {
            if going_on.is_none() && !row.bytes().is_empty() {
                going_on = Some(thread.state);
            }
        })?;
        let Some(state) = going_on else { continue };
        let rule = origins.get(&state).copied().flatten();
        found = Some(if found.is_none_or(|known| known == rule) { rule } else { None });
    }
    Ok(found.flatten().and_then(|rule| {
        automaton.with_grammar(|grammar| Some(grammar.rules.get(rule.index())?.name.clone()))
    }))
}

/// Returns the rule whose body a whole output is.
fn start_rule(automaton: &Automaton) -> Option<RuleId> {
    automaton.with_grammar(|grammar| {
        let is_start = |rule: &crate::ir::Rule| rule.body == Some(grammar.start);
        RuleId::from_index(grammar.rules.iter().position(is_start)?)
    })
}

/// Takes note of the rules of the states that a move leads to.
fn follow(
    automaton: &Automaton,
    origins: &mut Origins,
    from: StateId,
    byte: u8,
    next: &Move,
    budget: &mut Budget,
) -> Result<(), Error> {
    let own = origins.get(&from).copied().flatten();
    let mut note = |state: StateId, rule: Option<RuleId>| {
        let known = origins.entry(state).or_insert(rule);
        if *known != rule {
            *known = None;
        }
    };
    if !next.fresh {
        note(next.target, own);
        return Ok(());
    }
    let called = calls(automaton, from, byte, next.target, budget)?;
    note(next.target, called.as_ref().and_then(|called| called.last().copied()));
    let (first, others) = next.pushes.split_at(usize::from(next.keep).min(next.pushes.len()));
    first.iter().for_each(|&state| note(state, own));
    // The rules between, if each of them goes on.
    let between = called.filter(|called| called.len() == others.len() + 1);
    for (at, &state) in others.iter().enumerate() {
        note(state, between.as_ref().map(|called| called[at]));
    }
    Ok(())
}

/// Returns the rules that are called one inside the other when `byte` leads from a state to the rest
/// `target` of the last of them, if they are the only ones.
fn calls(
    automaton: &Automaton,
    from: StateId,
    byte: u8,
    target: StateId,
    budget: &mut Budget,
) -> Result<Option<Vec<RuleId>>, Error> {
    let (from, target) = (automaton.expr(from), automaton.expr(target));
    automaton.grow(budget, |growth| {
        let mut found: Option<Vec<RuleId>> = None;
        let mut pending: Vec<(ExprId, Vec<RuleId>)> = vec![(from, Vec::new())];
        let mut seen: HashSet<ExprId, foldhash::fast::RandomState> = HashSet::default();
        while let Some((expr, mut called)) = pending.pop() {
            growth.grower.budget.spend(1)?;
            if !seen.insert(expr) {
                continue;
            }
            let body = match *growth.grower.grammar.arena.get(expr) {
                Expr::Call(rule) => {
                    called.push(rule);
                    Some(growth.grower.body(rule)?)
                }
                _ => None,
            };
            if let Some(body) = body
                && leads(&mut growth.grower, body, byte, target)?
                && found.replace(called.clone()).is_some()
            {
                return Ok(None);
            }
            let mut inner = Vec::new();
            growth.grower.linear_needs(expr, &mut inner)?;
            pending.extend(inner.into_iter().map(|inner| (inner, called.clone())));
        }
        Ok(found)
    })
}

/// Returns whether `byte` leads from `body` to `target` without a call.
fn leads(grower: &mut Grower, body: ExprId, byte: u8, target: ExprId) -> Result<bool, Error> {
    let parts = grower.linear(body)?;
    Ok(parts.iter().any(|part| !part.fresh && part.target == target && part.bytes.contains(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::gbnf;
    use crate::limits::Limits;

    #[track_caller]
    fn check(grammar: &str, expected: &[(&str, Option<&str>)]) {
        let limits = Limits::default();
        let grammar = gbnf::compile(grammar, &limits).unwrap();
        let automaton = Automaton::new(grammar, limits).unwrap();
        for &(text, rule) in expected {
            let mut budget = automaton.step_budget();
            let found = rule_after(&automaton, text.as_bytes(), &mut budget).unwrap();
            assert_eq!(found.as_deref(), rule, "after `{text}`");
        }
    }

    #[test]
    fn a_place_is_in_the_rule_whose_text_goes_on_there() {
        // The first rule does not call itself: it is no rule of the automaton.
        let grammar = "root ::= \"<\" a b \">\"\n\
                       a ::= \"a\" a? \"1\"\n\
                       b ::= \"b\" b? \"2\" a";
        check(
            grammar,
            &[
                ("<", None),
                ("<a", Some("a")),
                ("<aa", Some("a")),
                ("<aa1", Some("a")),
                ("<a1", None),
                ("<a1b", Some("b")),
                ("<a1bb2", Some("b")),
                ("<a1bb2a", Some("a")),
                ("<a1bb2a1", Some("b")),
                ("<a1b2a1", None),
                ("<a1b2a1>", None),
            ],
        );
    }

    #[test]
    fn a_place_that_two_rules_share_is_in_neither() {
        let grammar = "root ::= a \"1\" | b \"2\"\na ::= \"x\" a? \"y\"\nb ::= \"x\" b? \"y\"";
        check(grammar, &[("x", None), ("xx", None), ("xxy", None), ("xy", None)]);
    }
}
