//! A grammar: rules over expressions, the start rule, and the expander of its lazy parts.

use std::fmt;

use crate::error::{Error, Location};
use crate::ids::{ExprId, FamilyId, RuleId};
use crate::ir::Arena;

/// What a front end makes, and what the automaton is grown from.
#[derive(Debug)]
pub struct Grammar {
    /// All expressions.
    pub arena: Arena,
    /// The rules, by [`RuleId`].
    pub rules: Vec<Rule>,
    /// The expression that a whole output must match.
    pub start: ExprId,
    /// What must each have a text for the grammar to be taken, beside [`Grammar::start`]. To the expander,
    /// number *i* is part *i* until it lists its own ([`Expander::conflict`]).
    pub needed: Vec<ExprId>,
    /// Expands [`crate::ir::Expr::Lazy`], if there is any.
    pub expander: Option<Box<dyn Expander>>,
    /// Where the grammar departs from its source, on request; for reports.
    pub departures: Vec<Departure>,
}

/// A rule: a name for messages, and what it stands for.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Rule {
    /// A name for people: a GBNF rule name, or the JSON Pointer of a schema.
    pub name: Box<str>,
    /// The language, or `None` while it is declared and not yet defined.
    pub body: Option<ExprId>,
}

/// A place where a grammar departs on request from what its source says by the standard: it asks for less,
/// or for more.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Departure {
    /// JSON Pointer of the keyword.
    pub pointer: String,
    /// The keyword.
    pub keyword: String,
    /// Why.
    pub reason: String,
}

/// A part of a source that may be absent from a text: an optional member, a branch, an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which parts stand at one place of the source: one of these must have a text.
    pub group: u32,
    /// Where it stands, if it stands in a source with places.
    pub place: Option<Location>,
    /// What it is, in words that a sentence can begin with.
    pub what: String,
    /// The texts with this part in them; there is some if this has a text.
    pub expr: ExprId,
}

/// The parts of a source.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    /// Those that were found.
    pub parts: Vec<Part>,
    /// Why there may be more: for each place that was not looked into, what spent its budget.
    pub unknown: Vec<Error>,
}

/// Expands the members of rule families: data (parameters) with an interpreter, so that a grammar
/// can be saved with its unexpanded parts and go on growing when it is loaded.
///
/// Expansion is one level deep: the result may contain [`crate::ir::Expr::Lazy`] members and calls
/// of rules, which are expanded when the automaton reaches them. The same id always expands to the
/// same language.
pub trait Expander: fmt::Debug + Send {
    /// Returns the language of `family`, one level deep. It must not contain the empty text.
    ///
    /// # Errors
    ///
    /// A typed error with its place when a budget is spent.
    fn expand(&mut self, family: FamilyId, scope: &mut Scope<'_>) -> Result<ExprId, Error>;

    /// Returns what decides whether `family` has any text, without expanding it.
    ///
    /// The default is [`Liveness::Expand`].
    ///
    /// # Errors
    ///
    /// Those of [`Expander::expand`].
    fn liveness(&mut self, family: FamilyId, scope: &mut Scope<'_>) -> Result<Liveness, Error> {
        let _ = (family, scope);
        Ok(Liveness::Expand)
    }

    /// Returns an expression whose shortest text is as long as that of `family`, if there is one for which
    /// that is easier to tell.
    ///
    /// The default is that there is none.
    ///
    /// # Errors
    ///
    /// Those of [`Expander::expand`].
    fn as_long(
        &mut self,
        family: FamilyId,
        scope: &mut Scope<'_>,
    ) -> Result<Option<ExprId>, Error> {
        let _ = (family, scope);
        Ok(None)
    }

    /// Returns the parts of the source that may be absent from a text, to be proved to be in some.
    ///
    /// The default is none.
    ///
    /// # Errors
    ///
    /// Those of [`Expander::expand`].
    fn parts(&mut self, scope: &mut Scope<'_>) -> Result<Parts, Error> {
        let _ = scope;
        Ok(Parts::default())
    }

    /// Returns an error that says which keywords of the source leave no text together, given that its
    /// grammar has none, or none with the part of this number in [`Expander::parts`]. `has_text`
    /// tells whether a grammar has a text, or `None` if that takes too much work.
    ///
    /// The default is `None`: it cannot be told.
    fn conflict(
        &self,
        part: Option<usize>,
        has_text: &mut dyn FnMut(Grammar) -> Option<bool>,
    ) -> Option<Error> {
        let _ = (part, has_text);
        None
    }

    /// Returns how many steps the work since the last call took, for the budget of the caller.
    ///
    /// The default is 0: the calls alone are counted.
    fn take_work(&mut self) -> u64 {
        0
    }

    /// Returns a copy that expands alike.
    fn boxed_clone(&self) -> Box<dyn Expander>;

    /// Returns the parameters as bytes, for an artifact. The first bytes must tell which expander
    /// reads them.
    fn to_bytes(&self) -> Vec<u8>;
}

/// What decides whether a family member has any text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Liveness {
    /// It has some text.
    Live,
    /// It has none.
    Dead,
    /// It has some exactly if each of these expressions has.
    All(Vec<ExprId>),
    /// Only its expansion tells.
    Expand,
}

/// What an expander may use: the arena, and the table of rules to add to.
#[derive(Debug)]
pub struct Scope<'a> {
    /// All expressions.
    pub arena: &'a mut Arena,
    /// The rules.
    pub rules: &'a mut Vec<Rule>,
}

impl Scope<'_> {
    /// Declares a rule without a body.
    pub fn declare(&mut self, name: impl Into<Box<str>>) -> RuleId {
        let id = RuleId::from_index(self.rules.len()).unwrap_or(RuleId::new(u32::MAX));
        self.rules.push(Rule { name: name.into(), body: None });
        id
    }

    /// Gives a declared rule its body.
    pub fn define(&mut self, rule: RuleId, body: ExprId) {
        if let Some(rule) = self.rules.get_mut(rule.index()) {
            rule.body = Some(body);
        }
    }
}

impl Grammar {
    /// Returns a grammar without rules that matches nothing, with room for `max_exprs`.
    #[must_use]
    pub fn new(max_exprs: usize) -> Self {
        Self {
            arena: Arena::new(max_exprs),
            rules: Vec::new(),
            start: Arena::EMPTY,
            needed: Vec::new(),
            expander: None,
            departures: Vec::new(),
        }
    }

    /// Returns the parts that a front end or an expander builds with.
    pub fn scope(&mut self) -> Scope<'_> {
        Scope { arena: &mut self.arena, rules: &mut self.rules }
    }
}

impl Clone for Grammar {
    fn clone(&self) -> Self {
        Self {
            arena: self.arena.clone(),
            rules: self.rules.clone(),
            start: self.start,
            needed: self.needed.clone(),
            expander: self.expander.as_ref().map(|e| e.boxed_clone()),
            departures: self.departures.clone(),
        }
    }
}
