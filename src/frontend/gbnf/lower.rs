//! [`Syntax`] and its [`Facts`] in, rules of an [`ir::Grammar`](crate::ir::Grammar) out.
//!
//! Rules are lowered callees first. A rule that is small for the number of its uses becomes part of
//! its callers: fewer frames, and what begins alike is decided by one deterministic state. A rule
//! that only ends with itself (`ws ::= " " ws | ""`) is a loop (Arden's lemma). The others stay
//! rules, and their bodies never contain the empty text: `Call` stands for a non-empty text, and the
//! use of a nullable rule says so. So the body of a repetition is never nullable either, and
//! `("a"*)*` is as exact and as cheap as `"a"*`.
//!
//! Linear in the grammar and what is inlined, under `Limits::compile_work`.

use std::ops::Range;

use hashbrown::{HashMap, HashSet};

use super::analysis::Facts;
use super::parser::{Node, NodeId, RuleIndex, Syntax};
use crate::ids::{ExprId, RuleId};
use crate::ir::{Arena, Expr, Grammar};
use crate::limits::{Budget, BudgetExceeded};

/// The most expressions that all copies of an inlined rule may have together.
///
/// Sharing makes copies free in the grammar, but each is a set of automaton states of its own. The
/// rules of ordinary grammars for white space, names, numbers and strings have 2 to 60 expressions;
/// at this bound all of them are inlined where they are used a few times.
const INLINED: usize = 256;

/// Fewer literal alternatives than this stay plain: [`Arena::literals`] has the same bound.
const MANY_LITERALS: usize = 8;

/// Fills `grammar` with the rules that `start` needs, and its start.
pub(super) fn lower(
    syntax: &Syntax<'_>,
    facts: &Facts,
    start: RuleIndex,
    grammar: &mut Grammar,
    budget: &mut Budget,
) -> Result<(), BudgetExceeded> {
    let rules = syntax.rules.len();
    let mut lowering = Lowering {
        syntax,
        facts,
        grammar,
        budget,
        values: vec![Arena::EMPTY; syntax.nodes.len()],
        inlined: vec![None; rules],
        ids: vec![None; rules],
        proper: HashMap::default(),
    };
    lowering.callees_first(start)?;
    lowering.grammar.start = lowering.reference(start);
    // Rules without a text are in none; a proof tells of them.
    for (rule, _) in syntax.rules.iter().zip(&facts.productive).filter(|(_, has_text)| !**has_text)
    {
        let mut scope = grammar.scope();
        let id = scope.declare(rule.name);
        scope.define(id, Arena::EMPTY);
    }
    Ok(())
}

/// How an expression uses a rule.
#[derive(Clone, Copy)]
enum Use {
    Never,
    /// It is the call itself, of a nullable rule.
    Proper,
    /// It is the first followed by the whole rule, or the second.
    AtEnd(ExprId, ExprId),
    Elsewhere,
}

struct Lowering<'a, 't> {
    syntax: &'a Syntax<'t>,
    facts: &'a Facts,
    grammar: &'a mut Grammar,
    budget: &'a mut Budget,
    /// By node: its language.
    values: Vec<ExprId>,
    /// By rule: its language, if that stands in for its calls.
    inlined: Vec<Option<ExprId>>,
    /// By rule: its id, if it is called.
    ids: Vec<Option<RuleId>>,
    /// What [`Lowering::proper`] has found.
    proper: HashMap<ExprId, ExprId, foldhash::fast::RandomState>,
}

impl Lowering<'_, '_> {
    /// Lowers all rules that `start` needs, depth first.
    fn callees_first(&mut self, start: RuleIndex) -> Result<(), BudgetExceeded> {
        let syntax = self.syntax;
        let mut entered = vec![false; syntax.rules.len()];
        entered[start] = true;
        let mut path: Vec<(RuleIndex, Range<NodeId>)> =
            vec![(start, syntax.rules[start].nodes.clone())];
        while let Some((rule, nodes)) = path.last_mut() {
            let callee = nodes.find_map(|node| match syntax.nodes[node] {
                Node::Call { rule, .. } if self.facts.live[node] && !entered[rule] => Some(rule),
                _ => None,
            });
            match callee {
                Some(callee) => {
                    entered[callee] = true;
                    path.push((callee, syntax.rules[callee].nodes.clone()));
                }
                None => {
                    let rule = *rule;
                    path.pop();
                    self.rule(rule)?;
                }
            }
        }
        Ok(())
    }

    /// Lowers one rule, and decides whether it stays one.
    fn rule(&mut self, rule: RuleIndex) -> Result<(), BudgetExceeded> {
        self.nodes(self.syntax.rules[rule].nodes.clone())?;
        let mut body = self.values[self.syntax.rules[rule].body()];
        let mut stays = false;
        if let Some(id) = self.ids[rule] {
            let call = self.grammar.arena.call(id);
            match self.tail_loop(body, call, self.facts.nullable[rule])? {
                Some(looped) => body = looped,
                None => stays = true,
            }
        }
        let uses = self.facts.uses[rule];
        let most = INLINED.checked_div(uses).unwrap_or(usize::MAX);
        if !stays && self.is_smaller(body, most) {
            self.inlined[rule] = Some(body);
        } else {
            self.id(rule);
        }
        if let Some(id) = self.ids[rule] {
            let proper = self.proper(body)?;
            self.grammar.scope().define(id, proper);
        }
        Ok(())
    }

    fn id(&mut self, rule: RuleIndex) -> RuleId {
        let name = self.syntax.rules[rule].name;
        *self.ids[rule].get_or_insert_with(|| self.grammar.scope().declare(name))
    }

    /// Returns the language of `rule` as its callers write it.
    fn reference(&mut self, rule: RuleIndex) -> ExprId {
        if let Some(expr) = self.inlined[rule] {
            return expr;
        }
        let id = self.id(rule);
        let arena = &mut self.grammar.arena;
        let call = arena.call(id);
        if self.facts.nullable[rule] { arena.optional(call) } else { call }
    }

    /// Lowers the nodes of one rule, which stand in post-order.
    fn nodes(&mut self, nodes: Range<NodeId>) -> Result<(), BudgetExceeded> {
        // Sequences in sequences and choices in choices are parts of the outer one: lowering each
        // by itself would copy a long one for every level of nesting.
        let mut absorbed = vec![false; nodes.len()];
        for id in nodes.clone() {
            for &child in self.syntax.children(id) {
                absorbed[child - nodes.start] = matches!(
                    (&self.syntax.nodes[id], &self.syntax.nodes[child]),
                    (Node::Sequence(_), Node::Sequence(_)) | (Node::Choice(_), Node::Choice(_))
                );
            }
        }
        for id in nodes.clone() {
            self.budget.spend(1)?;
            if !self.facts.live[id] || absorbed[id - nodes.start] {
                continue;
            }
            self.values[id] = match self.syntax.nodes[id] {
                Node::Leaf(leaf) => leaf,
                Node::Call { rule, .. } => self.reference(rule),
                Node::Repeat { body, min, max } => self.repeat(self.values[body], min, max)?,
                Node::Sequence(_) => {
                    let parts = self.parts(id, &absorbed, nodes.start);
                    self.budget.spend(parts.len() as u64)?;
                    self.grammar.arena.concat(&parts)
                }
                Node::Choice(_) => {
                    let parts = self.parts(id, &absorbed, nodes.start);
                    self.choice(parts)?
                }
            };
        }
        Ok(())
    }

    /// Returns the values of the parts of a sequence or choice, in order.
    fn parts(&self, root: NodeId, absorbed: &[bool], start: NodeId) -> Vec<ExprId> {
        let mut parts = Vec::new();
        let mut open: Vec<_> = self.syntax.children(root).iter().rev().copied().collect();
        while let Some(id) = open.pop() {
            if absorbed[id - start] {
                open.extend(self.syntax.children(id).iter().rev());
            } else {
                parts.push(self.values[id]);
            }
        }
        parts
    }

    /// Returns the union of `parts`, with many literals as one set.
    fn choice(&mut self, mut parts: Vec<ExprId>) -> Result<ExprId, BudgetExceeded> {
        if parts.len() >= MANY_LITERALS {
            let mut literals = Vec::new();
            let mut length = 0;
            for &part in &parts {
                if let Some(text) = text_of(&self.grammar.arena, part) {
                    length += text.len() as u64;
                    literals.push((part, text));
                }
            }
            self.budget.spend(length)?;
            if literals.len() >= MANY_LITERALS {
                let (set, texts): (HashSet<ExprId>, Vec<_>) = literals.into_iter().unzip();
                parts.retain(|part| !set.contains(part));
                parts.push(self.grammar.arena.literals(texts));
            }
        }
        self.alt(&parts)
    }

    fn alt(&mut self, parts: &[ExprId]) -> Result<ExprId, BudgetExceeded> {
        let result = self.grammar.arena.alt(parts);
        let width = match self.grammar.arena.get(result) {
            Expr::Alt(parts) => parts.len(),
            _ => 1,
        };
        self.budget.spend((parts.len() + width) as u64)?;
        Ok(result)
    }

    fn repeat(&mut self, body: ExprId, min: u32, max: u32) -> Result<ExprId, BudgetExceeded> {
        let nullable = is_nullable(&self.grammar.arena, body);
        let (body, min) = if nullable { (self.proper(body)?, 0) } else { (body, min) };
        if (min, max) == (0, 1) {
            // The form that the use of a nullable rule has.
            return self.alt(&[body, Arena::EPSILON]);
        }
        Ok(self.grammar.arena.repeat(body, min, max))
    }

    /// Returns the non-empty texts of `root`.
    fn proper(&mut self, root: ExprId) -> Result<ExprId, BudgetExceeded> {
        let order = reachable(&self.grammar.arena, root, usize::MAX, |arena, id, open| {
            if is_nullable(arena, id) && !self.proper.contains_key(&id) {
                push_factors(arena, id, open);
            }
        });
        self.budget.spend(order.len() as u64)?;
        for id in order {
            if !is_nullable(&self.grammar.arena, id) || self.proper.contains_key(&id) {
                continue;
            }
            let of = |part| self.proper.get(&part).copied().unwrap_or(part);
            let result = match self.grammar.arena.get(id) {
                Expr::Epsilon => Arena::EMPTY,
                Expr::Concat(..) => {
                    // One of the factors is the first that is not empty. All of them at once:
                    // factor by factor, each rest would be an alternation of its own.
                    let mut factors = Vec::new();
                    push_factors(&self.grammar.arena, id, &mut factors);
                    let mut rest = id;
                    let mut parts = Vec::with_capacity(factors.len());
                    for factor in factors {
                        rest = match *self.grammar.arena.get(rest) {
                            Expr::Concat(_, tail) => tail,
                            _ => Arena::EPSILON,
                        };
                        parts.push(self.grammar.arena.concat2(of(factor), rest));
                    }
                    self.alt(&parts)?
                }
                Expr::Alt(parts) => {
                    let parts: Vec<_> = parts.iter().map(|&part| of(part)).collect();
                    self.alt(&parts)?
                }
                &Expr::Repeat { body, max, .. } => {
                    let body = of(body);
                    self.grammar.arena.repeat(body, 1, max)
                }
                _ => {
                    let some = self.grammar.arena.not(Arena::EPSILON);
                    self.grammar.arena.and(&[id, some])
                }
            };
            self.proper.insert(id, result);
        }
        Ok(self.proper.get(&root).copied().unwrap_or(root))
    }

    /// Returns the language of a rule without its call `call`, if its body has that at the ends of
    /// alternatives: `x ::= a x | b` is `a* b`.
    fn tail_loop(
        &mut self,
        body: ExprId,
        call: ExprId,
        nullable: bool,
    ) -> Result<Option<ExprId>, BudgetExceeded> {
        let order = reachable(&self.grammar.arena, body, usize::MAX, |arena, id, open| {
            if !arena.facts(id).regular {
                push_parts(arena, id, open);
            }
        });
        self.budget.spend(order.len() as u64)?;
        let mut uses: HashMap<ExprId, Use, foldhash::fast::RandomState> = HashMap::default();
        for id in order {
            let of = |part: &ExprId| uses.get(part).copied().unwrap_or(Use::Never);
            let found = match self.grammar.arena.get(id) {
                // The call of a nullable rule leaves the empty text to an alternative beside it.
                _ if id == call && nullable => Use::Proper,
                _ if id == call => Use::AtEnd(Arena::EPSILON, Arena::EMPTY),
                Expr::Concat(head, tail) => match (of(head), of(tail)) {
                    (Use::Never, Use::Never) => Use::Never,
                    (Use::Never, Use::AtEnd(before, without)) => {
                        let head = *head;
                        let arena = &mut self.grammar.arena;
                        Use::AtEnd(arena.concat2(head, before), arena.concat2(head, without))
                    }
                    _ => Use::Elsewhere,
                },
                Expr::Alt(parts) => {
                    let parts: Vec<_> = parts.iter().map(|part| (*part, of(part))).collect();
                    self.use_in_choice(id, &parts)?
                }
                Expr::Repeat { body, .. } if !matches!(of(body), Use::Never) => Use::Elsewhere,
                _ => Use::Never,
            };
            uses.insert(id, found);
        }
        let Some(&Use::AtEnd(before, without)) = uses.get(&body) else { return Ok(None) };
        let arena = &mut self.grammar.arena;
        let round = arena.star(before);
        Ok(Some(arena.concat2(round, without)))
    }

    /// Returns how the alternation `choice` uses a rule, from how its parts do.
    fn use_in_choice(
        &mut self,
        choice: ExprId,
        parts: &[(ExprId, Use)],
    ) -> Result<Use, BudgetExceeded> {
        if parts.iter().all(|(_, found)| matches!(found, Use::Never)) {
            return Ok(Use::Never);
        }
        let whole = is_nullable(&self.grammar.arena, choice);
        let proper = parts.iter().any(|(_, found)| matches!(found, Use::Proper));
        let (mut before, mut without) = (Vec::new(), Vec::new());
        for &(part, found) in parts {
            match found {
                // With the empty text beside it, the call is the whole rule.
                Use::Proper if whole => before.push(Arena::EPSILON),
                Use::Never if proper && part == Arena::EPSILON => {}
                Use::Never => without.push(part),
                Use::AtEnd(part_before, part_without) => {
                    before.push(part_before);
                    without.push(part_without);
                }
                Use::Proper | Use::Elsewhere => return Ok(Use::Elsewhere),
            }
        }
        Ok(Use::AtEnd(self.alt(&before)?, self.alt(&without)?))
    }

    /// Returns whether `root` has at most `most` different expressions.
    fn is_smaller(&self, root: ExprId, most: usize) -> bool {
        most == usize::MAX
            || reachable(&self.grammar.arena, root, most + 1, push_parts).len() <= most
    }
}

/// Returns whether `id` contains the empty text. The call of a rule never does, as [`Lowering`]
/// writes it, so this is known of every expression here.
fn is_nullable(arena: &Arena, id: ExprId) -> bool {
    arena.facts(id).nullable == Some(true)
}

/// Returns `root` and what is below it, parts before wholes; `below` pushes what to visit below an
/// expression. Stops at `most` expressions.
fn reachable(
    arena: &Arena,
    root: ExprId,
    most: usize,
    below: impl Fn(&Arena, ExprId, &mut Vec<ExprId>),
) -> Vec<ExprId> {
    let mut seen: HashSet<ExprId, foldhash::fast::RandomState> = HashSet::default();
    let mut open = vec![root];
    while let Some(id) = open.pop() {
        if seen.len() >= most {
            break;
        }
        if seen.insert(id) {
            below(arena, id, &mut open);
        }
    }
    // An expression is interned after its parts.
    let mut order: Vec<_> = seen.into_iter().collect();
    order.sort_unstable();
    order
}

/// Pushes the parts of `id`.
fn push_parts(arena: &Arena, id: ExprId, open: &mut Vec<ExprId>) {
    match arena.get(id) {
        Expr::Concat(a, b) => open.extend([*a, *b]),
        Expr::Alt(parts) | Expr::And(parts) => open.extend_from_slice(parts),
        Expr::Not(body) | Expr::Repeat { body, .. } | Expr::Fresh(body) => open.push(*body),
        _ => {}
    }
}

/// Pushes the parts of `id`, where all factors of a concatenation are its parts, in order.
fn push_factors(arena: &Arena, mut id: ExprId, open: &mut Vec<ExprId>) {
    if !matches!(arena.get(id), Expr::Concat(..)) {
        return push_parts(arena, id, open);
    }
    while let Expr::Concat(head, tail) = *arena.get(id) {
        open.push(head);
        id = tail;
    }
    open.push(id);
}

/// Returns the one text of `expr`, if it has one of at least two bytes.
fn text_of(arena: &Arena, mut expr: ExprId) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let (head, tail) = match *arena.get(expr) {
            Expr::Concat(head, tail) => (head, tail),
            _ => (expr, Arena::EPSILON),
        };
        let Expr::Bytes(set) = arena.get(head) else { return None };
        if set.len() != 1 {
            return None;
        }
        text.extend(set.first());
        if tail == Arena::EPSILON {
            return (text.len() > 1).then_some(text);
        }
        expr = tail;
    }
}
