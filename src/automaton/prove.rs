//! Proofs that every part of a grammar's source can be in some text.

use hashbrown::HashMap;

use crate::automaton::Automaton;
use crate::automaton::linear::Grower;
use crate::error::{Error, ErrorKind};
use crate::ids::ExprId;
use crate::ir::{Grammar, Part, Parts, Rule, Scope};
use crate::limits::Budget;

/// What [`Automaton::prove`] found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Proof {
    /// How many parts of the source were looked at.
    pub parts: usize,
    /// For each part that can be in no text, an error that says where it stands and, where that is
    /// found, which keywords keep it out.
    pub findings: Vec<Error>,
    /// For each part of which the budget did not suffice to tell, an error that says so.
    pub undecided: Vec<Error>,
}

impl Automaton {
    /// Proves of every part of the source that may be absent (an optional member, a branch, an
    /// element, a rule) that it is in some text. Parts that are in none do not make an output wrong:
    /// they are never offered. But whoever wrote them meant something by them.
    ///
    /// Each part may take the work of one compilation.
    ///
    /// # Errors
    ///
    /// What listing the parts says.
    pub fn prove(&self) -> Result<Proof, Error> {
        let mut growth = self.lock();
        let grower = &mut growth.grower;
        let budget = Budget::new("compile_work", grower.limits.compile_work);
        let before = std::mem::replace(&mut grower.budget, budget);
        let result = grower.prove();
        grower.budget = before;
        result
    }
}

/// What is known of the parts at one place.
#[derive(Default)]
struct Place {
    /// The first of them.
    part: usize,
    live: bool,
    undecided: Option<Error>,
}

impl Part {
    fn error(&self, kind: ErrorKind, message: String) -> Error {
        let error = Error::new(kind, message);
        match &self.place {
            Some(place) => error.at(place.clone()),
            None => error,
        }
    }
}

impl Grower {
    fn prove(&mut self) -> Result<Proof, Error> {
        let Parts { parts, unknown } = self.parts()?;
        let mut places: Vec<Place> = Vec::new();
        let mut known: HashMap<u32, usize> = HashMap::new();
        for (i, part) in parts.iter().enumerate() {
            let at = *known.entry(part.group).or_insert_with(|| {
                places.push(Place { part: i, ..Place::default() });
                places.len() - 1
            });
            if places[at].live {
                continue;
            }
            self.budget = Budget::new("compile_work", self.limits.compile_work);
            match self.live(part.expr) {
                Ok(live) => places[at].live = live,
                Err(error) => places[at].undecided = Some(error),
            }
        }
        let mut proof = Proof { parts: places.len(), undecided: unknown, ..Proof::default() };
        for place in places.into_iter().filter(|place| !place.live) {
            let part = &parts[place.part];
            if let Some(error) = place.undecided {
                let message = format!("{} was not proved: {}", part.what, error.message());
                proof.undecided.push(part.error(error.kind().clone(), message));
                continue;
            }
            let why = self.conflict(Some(place.part));
            let mut message = format!("{} can never be there", part.what);
            if let Some(why) = &why {
                message += &format!(": {}", why.message());
            }
            let mut error = part.error(ErrorKind::Unsatisfiable, message);
            let places = why.iter().flat_map(|why| why.location().into_iter().chain(why.related()));
            for place in places {
                error = error.related_to(place.clone());
            }
            proof.findings.push(error);
        }
        Ok(proof)
    }

    /// Returns the parts of the source; without an expander, its rules.
    fn parts(&mut self) -> Result<Parts, Error> {
        let Grammar { arena, rules, expander, .. } = &mut self.grammar;
        let mut scope = Scope { arena, rules };
        if let Some(expander) = expander {
            let parts = expander.parts(&mut scope);
            // Listing is bounded by the work of one compilation itself.
            expander.take_work();
            return parts;
        }
        let bodies = (0..).zip(rules.iter()).filter_map(|(i, rule)| Some((i, rule, rule.body?)));
        let part = |(group, rule, expr): (u32, &Rule, ExprId)| {
            let what = format!("a text of the rule `{}`", rule.name);
            Part { group, place: None, what, expr }
        };
        Ok(Parts { parts: bodies.map(part).collect(), unknown: Vec::new() })
    }

    /// Returns which keywords conflict, if the front end finds that out.
    fn conflict(&self, part: Option<usize>) -> Option<Error> {
        let mut has_text = |grammar: Grammar| {
            let (start, limits) = (grammar.start, self.limits.clone());
            Self::new(grammar, limits).live(start).ok()
        };
        self.grammar.expander.as_ref()?.conflict(part, &mut has_text)
    }

    /// Returns the error for a grammar, or a needed part of it, that has no text, with the reason if its
    /// front end finds one.
    pub(super) fn unsatisfiable(self, part: Option<usize>) -> Error {
        self.conflict(part).unwrap_or_else(|| {
            let text = match part {
                None => "nothing satisfies this grammar, so nothing could be generated".to_owned(),
                Some(part) => format!("nothing satisfies schema number {} of the layout", part + 1),
            };
            Error::new(ErrorKind::Unsatisfiable, text)
        })
    }
}
