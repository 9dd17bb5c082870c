//! A tree to an expression.
//!
//! The *rest* of a node is the language of what may follow it up to the end of the text, one for
//! each class of the character before (see [`LeftClasses`]); to translate a node is to put it in
//! front of a rest. Then
//!
//! ```text
//! A B before k           = A before (B before k)
//! A|B before k           = (A before k) | (B before k)
//! look-ahead A before k  = k & (A before everything), or k & ~(…)
//! one-character look     = k & (what it allows next), by the class before
//! plain A before k       = A k, split by the class of A's last character where k differs: `plain`
//! A* before k            = the least solution of x = k | (A before x): module `machine`
//! ```
//!
//! Every rest is a subset of the texts in the encoding, so a complement under `&` needs no more.

use std::rc::Rc;

use hashbrown::HashMap;

use crate::error::Error;
use crate::frontend::pattern::classes::LeftClasses;
use crate::frontend::pattern::machine;
use crate::frontend::pattern::{Node, NodeId, Side, Tree};
use crate::ids::ExprId;
use crate::ir::chars::{CharSet, Encoding, any_text, char_class};
use crate::ir::{Arena, Expr, UNBOUNDED};
use crate::limits::{Budget, BudgetExceeded, Limits};

/// Where in a text a pattern must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Somewhere.
    Search,
    /// From its start to its end.
    Whole,
}

/// Returns the language of the texts in `encoding` in which the pattern `root` matches.
///
/// # Errors
///
/// [`crate::ErrorKind::BudgetExceeded`] if copies, states or expressions pass `limits`.
pub(crate) fn lower(
    arena: &mut Arena,
    tree: &Tree,
    root: NodeId,
    mode: Mode,
    encoding: Encoding,
    limits: &Limits,
) -> Result<ExprId, Error> {
    let mut lower = Lower::new(arena, tree, root, encoding, limits)?;
    let end = if mode == Mode::Search { lower.any } else { Arena::EPSILON };
    let end: Rest = vec![end; lower.classes.len()].into();
    let result = if tree.facts(root).behind {
        machine::whole(&mut lower, root, mode == Mode::Search, end[0])?
    } else {
        let rest = lower.apply(root, end)?;
        if mode == Mode::Search { lower.after_anything(&rest) } else { rest[0] }
    };
    lower.check()?;
    Ok(result)
}

/// What may follow, for each class of the character before.
pub(super) type Rest = Rc<[ExprId]>;

pub(super) struct Lower<'a> {
    pub(super) arena: &'a mut Arena,
    pub(super) tree: &'a Tree,
    pub(super) classes: LeftClasses,
    /// All texts in the encoding.
    pub(super) any: ExprId,
    /// Work of the machine.
    pub(super) work: Budget,
    copies: Budget,
    /// The first bound that was passed where no error could be returned.
    failed: Option<BudgetExceeded>,
    pub(super) encoding: Encoding,
    sets: HashMap<Vec<(char, char)>, ExprId, foldhash::fast::RandomState>,
    /// The expressions of plain nodes.
    pub(super) plain: Vec<Option<ExprId>>,
}

/// A step of [`Lower::apply`], which keeps rests on a stack.
enum Task<'a> {
    /// Puts a node in front of the topmost rest.
    Before(NodeId),
    /// Puts the concatenation of plain nodes in front of the topmost rest.
    Plain(&'a [NodeId]),
    /// Adds a rest.
    Push(Rest),
    /// Replaces this many topmost rests by their union.
    Union(usize),
    /// Replaces the topmost rest by `rest` restricted to it, or to its complement.
    Guard { rest: Rest, negated: bool },
    /// Puts up to `left` more copies of a body in front of the topmost rest, each with `rest` as the
    /// alternative; `last` is what was topmost before the previous copy.
    Optional { body: NodeId, left: u32, rest: Rest, last: Option<Rest> },
    /// Puts `left` more copies of a body in front of the topmost rest.
    Mandatory { body: NodeId, left: u32, last: Option<Rest> },
}

impl<'a> Lower<'a> {
    fn new(
        arena: &'a mut Arena,
        tree: &'a Tree,
        root: NodeId,
        encoding: Encoding,
        limits: &Limits,
    ) -> Result<Self, BudgetExceeded> {
        let any = any_text(arena, encoding);
        let mut work = Budget::new("compile_work", limits.compile_work);
        Ok(Self {
            arena,
            tree,
            classes: LeftClasses::of(tree, root, &mut work)?,
            any,
            work,
            copies: Budget::new("unroll", limits.unroll as u64),
            failed: None,
            encoding,
            sets: HashMap::default(),
            plain: vec![None; tree.len()],
        })
    }

    /// Puts `root` in front of `rest`.
    pub(super) fn apply(&mut self, root: NodeId, rest: Rest) -> Result<Rest, Error> {
        let mut rests = vec![rest];
        let mut tasks = vec![Task::Before(root)];
        while let Some(task) = tasks.pop() {
            self.work.spend(self.classes.len() as u64)?;
            self.check()?;
            match task {
                Task::Before(node) => {
                    let Some(rest) = rests.pop() else { break };
                    self.before(node, rest, &mut tasks, &mut rests)?;
                }
                Task::Plain(nodes) => {
                    let Some(rest) = rests.pop() else { break };
                    rests.push(self.plain_before(nodes, &rest));
                }
                Task::Push(rest) => rests.push(rest),
                Task::Union(count) => {
                    let parts = rests.split_off(rests.len().saturating_sub(count));
                    let union = self.union(&parts);
                    rests.push(union);
                }
                Task::Guard { rest, negated } => {
                    let Some(guard) = rests.pop() else { break };
                    let guarded = rest.iter().zip(guard.iter()).map(|(&rest, &guard)| {
                        let guard = if negated { self.arena.not(guard) } else { guard };
                        self.and(rest, guard)
                    });
                    let guarded = guarded.collect();
                    rests.push(guarded);
                }
                // Where a copy changes nothing, no further one does.
                Task::Optional { left: 0, .. } | Task::Mandatory { left: 0, .. } => {}
                Task::Optional { body, left, rest, last } if rests.last() != last.as_ref() => {
                    self.copies.spend(1)?;
                    let last = rests.last().cloned();
                    tasks.push(Task::Optional { body, left: left - 1, rest: rest.clone(), last });
                    tasks.extend([Task::Union(2), Task::Push(rest), Task::Before(body)]);
                }
                Task::Mandatory { body, left, last } if rests.last() != last.as_ref() => {
                    self.copies.spend(1)?;
                    let last = rests.last().cloned();
                    tasks.extend([
                        Task::Mandatory { body, left: left - 1, last },
                        Task::Before(body),
                    ]);
                }
                Task::Optional { .. } | Task::Mandatory { .. } => {}
            }
        }
        self.check()?;
        Ok(rests.pop().unwrap_or_else(|| self.everything()))
    }

    fn before(
        &mut self,
        node: NodeId,
        rest: Rest,
        tasks: &mut Vec<Task<'a>>,
        rests: &mut Vec<Rest>,
    ) -> Result<(), Error> {
        let tree = self.tree;
        if tree.facts(node).plain {
            rests.push(self.plain_before(&[node], &rest));
            return Ok(());
        }
        match tree.node(node) {
            Node::Empty | Node::Set(_) => rests.push(rest),
            Node::Concat(parts) => {
                rests.push(rest);
                let plain = |&id: &NodeId| tree.facts(id).plain;
                for run in parts.chunk_by(|a, b| plain(a) && plain(b)) {
                    tasks.push(match run {
                        [one] => Task::Before(*one),
                        _ => Task::Plain(run),
                    });
                }
            }
            Node::Alt(parts) => {
                tasks.push(Task::Union(parts.len()));
                for &part in parts.iter().rev() {
                    tasks.push(Task::Before(part));
                    tasks.push(Task::Push(rest.clone()));
                }
            }
            &Node::Repeat { body, min, max } => {
                tasks.push(Task::Mandatory { body, left: min, last: None });
                if max == UNBOUNDED {
                    rests.push(machine::star(self, body, &rest)?);
                } else {
                    tasks.push(Task::Optional {
                        body,
                        left: max - min,
                        rest: rest.clone(),
                        last: None,
                    });
                    rests.push(rest);
                }
            }
            Node::Look(look) => {
                let allowed: Vec<_> = (0..self.classes.len())
                    .map(|class| {
                        let before = self.classes.example(class);
                        look.cases
                            .iter()
                            .filter(|(b, _)| b.allows(before))
                            .fold(Side::of(CharSet::empty()), |all, (_, a)| all.union(a))
                    })
                    .collect();
                let restricted: Rest = rest
                    .iter()
                    .zip(&allowed)
                    .map(|(&rest, side)| self.restrict(rest, side))
                    .collect();
                rests.push(restricted);
            }
            Node::Around(around) => {
                // Look-behind never comes here: a tree with one goes to `machine::whole`.
                let idle = |&r: &ExprId| r == self.any || r == Arena::ALL;
                if !around.negated && rest.iter().all(idle) {
                    rests.push(rest);
                } else {
                    rests.push(self.everything());
                    tasks.push(Task::Guard { rest, negated: around.negated });
                }
                tasks.push(Task::Before(around.body));
            }
        }
        Ok(())
    }

    /// Returns what a program is made from.
    pub(super) const fn program_parts(&mut self) -> (&'a Tree, &mut Budget, &mut Budget) {
        (self.tree, &mut self.copies, &mut self.work)
    }

    /// Returns the rest of which nothing is asked. Only ever restricts another rest.
    fn everything(&self) -> Rest {
        vec![Arena::ALL; self.classes.len()].into()
    }

    pub(super) fn union(&mut self, rests: &[Rest]) -> Rest {
        (0..self.classes.len())
            .map(|class| {
                let parts: Vec<_> = rests.iter().map(|rest| rest[class]).collect();
                self.alt(&parts)
            })
            .collect()
    }

    /// Returns an error once a bound has been passed.
    pub(super) fn check(&self) -> Result<(), BudgetExceeded> {
        self.failed.map_or(Ok(()), Err)?;
        self.arena.check()
    }

    /// Takes `steps` from the budget where no error can be returned; false if they are not left.
    pub(super) fn charge(&mut self, steps: u64) -> bool {
        match self.work.spend(steps) {
            Ok(()) => true,
            Err(exceeded) => {
                self.failed.get_or_insert(exceeded);
                false
            }
        }
    }

    /// Returns the union, which is all texts as soon as one part is.
    ///
    /// Unions are flat, so one that grows step by step takes quadratic space: it is charged for.
    pub(super) fn alt(&mut self, parts: &[ExprId]) -> ExprId {
        let size = |&id: &ExprId| match self.arena.get(id) {
            Expr::Alt(parts) => parts.len() as u64,
            _ => 1,
        };
        if !self.charge(4 * parts.iter().map(size).sum::<u64>()) {
            return Arena::EMPTY;
        }
        if parts.contains(&self.any) && !parts.contains(&Arena::ALL) {
            return self.any;
        }
        self.arena.alt(parts)
    }

    /// Returns the intersection, which is charged for as [`Self::alt`] is.
    pub(super) fn and(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let size = |id: ExprId| match self.arena.get(id) {
            Expr::And(parts) => parts.len() as u64,
            _ => 1,
        };
        if !self.charge(4 * (size(a) + size(b))) {
            return Arena::EMPTY;
        }
        self.arena.and(&[a, b])
    }

    /// Returns the texts of `rest` that begin with what `side` allows.
    pub(super) fn restrict(&mut self, rest: ExprId, side: &Side) -> ExprId {
        if side.is_any() || rest == Arena::EMPTY {
            return rest;
        }
        let first = self.set(&side.set);
        if rest == self.any || rest == Arena::ALL {
            let some = self.arena.concat2(first, rest);
            return if side.edge { self.arena.optional(some) } else { some };
        }
        if side.set.ranges().is_empty() {
            return if side.edge { self.and(rest, Arena::EPSILON) } else { Arena::EMPTY };
        }
        let mut allowed = self.arena.concat2(first, Arena::ALL);
        if side.edge {
            allowed = self.arena.optional(allowed);
        }
        self.and(rest, allowed)
    }

    /// Returns one character of `set`.
    pub(super) fn set(&mut self, set: &CharSet) -> ExprId {
        let key: Vec<_> = set.iter().map(|range| (range.start(), range.end())).collect();
        if let Some(&id) = self.sets.get(&key) {
            return id;
        }
        // A class takes an expression or more for each of its ranges.
        if !self.charge(64 * key.len() as u64) {
            return Arena::EMPTY;
        }
        let id = char_class(self.arena, set, self.encoding);
        self.sets.insert(key, id);
        id
    }
}
