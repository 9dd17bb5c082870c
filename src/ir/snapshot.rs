//! Grammars as data: what an artifact stores of them, and the checks when it is read back.
//!
//! A snapshot keeps every id. Reading one checks whatever the other code relies on, so that a damaged
//! or hostile file is refused, or at worst describes another grammar.

use hashbrown::HashSet;

use crate::error::{Error, ErrorKind};
use crate::ids::{ExprId, RuleId};
use crate::ir::{Arena, Departure, Expander, Expr, Grammar, Rule, progression};

/// A grammar as stored: expressions in the order of their ids, rules, and the expander's parameters.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct GrammarSnapshot {
    exprs: Vec<Expr>,
    /// The sorted texts of each literal set.
    literals: Vec<Vec<Vec<u8>>>,
    progressions: Vec<progression::Table>,
    rules: Vec<Rule>,
    start: ExprId,
    expander: Option<Vec<u8>>,
    departures: Vec<Departure>,
}

impl Grammar {
    /// Returns the grammar as data.
    #[must_use]
    pub fn snapshot(&self) -> GrammarSnapshot {
        GrammarSnapshot {
            exprs: self.arena.exprs().to_vec(),
            literals: self.arena.literal_texts(),
            progressions: self.arena.progressions().to_vec(),
            rules: self.rules.clone(),
            start: self.start,
            expander: self.expander.as_ref().map(|expander| expander.to_bytes()),
            departures: self.departures.clone(),
        }
    }
}

impl GrammarSnapshot {
    /// Returns the number of expressions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Returns whether there is no expression.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// Returns the grammar, with `decode` to read the expander.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Artifact`] if an id is out of range, an expression refers to a later one, or the
    /// expander cannot be read.
    pub fn restore(
        self,
        max_exprs: usize,
        decode: impl FnOnce(&[u8]) -> Result<Box<dyn Expander>, Error>,
    ) -> Result<Grammar, Error> {
        let mut arena = Arena::new(max_exprs);
        for texts in self.literals {
            arena.restore_literals(&texts).ok_or_else(|| damaged("a set of literals"))?;
        }
        for table in self.progressions {
            arena
                .restore_progression(table)
                .ok_or_else(|| damaged("a progression stands twice"))?;
        }
        let nodes = arena.literal_nodes();
        for (index, expr) in self.exprs.into_iter().enumerate() {
            check(&arena, &expr, self.rules.len(), &nodes)?;
            let id = arena.restore(expr);
            if id.index() != index {
                return Err(damaged("an expression stands twice"));
            }
        }
        arena.check()?;
        let rules = self.rules;
        let outside = |id: ExprId| id.index() >= arena.len();
        if outside(self.start) || rules.iter().filter_map(|rule| rule.body).any(outside) {
            return Err(damaged("a rule's body is out of range"));
        }
        let expander = self.expander.map(|bytes| decode(&bytes)).transpose()?;
        let (start, departures) = (self.start, self.departures);
        // What was needed was proved before the grammar was saved.
        Ok(Grammar { arena, rules, start, needed: Vec::new(), expander, departures })
    }
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Artifact, format!("the stored grammar is damaged: {what}"))
}

/// Checks an expression against those before it.
fn check(arena: &Arena, expr: &Expr, rules: usize, nodes: &[HashSet<u64>]) -> Result<(), Error> {
    let known = |id: ExprId| id.index() < arena.len();
    let regular = |id: ExprId| known(id) && arena.facts(id).regular;
    let ok = match expr {
        Expr::Empty | Expr::Epsilon | Expr::Lazy(_) => true,
        Expr::Bytes(set) => !set.is_empty(),
        &Expr::Concat(first, second) => {
            known(first) && known(second) && !matches!(arena.get(first), Expr::Concat(..))
        }
        Expr::Alt(parts) => parts.len() > 1 && parts.iter().all(|&part| known(part)),
        Expr::And(parts) => parts.len() > 1 && parts.iter().all(|&part| regular(part)),
        &Expr::Not(inner) => regular(inner),
        &Expr::Fresh(inner) => known(inner),
        &Expr::Repeat { body, min, max } => known(body) && min <= max && max > 0,
        &Expr::Progression { table, state } => arena.has_progression_state(table, state),
        Expr::Call(rule) => *rule < RuleId::from_index(rules).unwrap_or(RuleId::new(u32::MAX)),
        Expr::Literals { set, node } => {
            nodes.get(*set as usize).is_some_and(|nodes| nodes.contains(node))
        }
    };
    if ok { Ok(()) } else { Err(damaged("an expression is malformed")) }
}
