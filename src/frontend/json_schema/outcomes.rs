//! What may be written as a value, and what is left to say after it: a formula about both in, pairs of
//! a goal and a residual formula out, whose union is the formula.
//!
//! A disjunction is split into its parts (a guess: only one of them need hold). Under a conjunction,
//! and where a part is entangled in `oneOf` or an `unevaluated…` keyword, one goal is decided at a
//! time; what the decision implies for the other goals by their types and values is put in at once,
//! so that a discriminator leaves one case for each branch. Only a disjunction of many goals of which
//! none is listed is guessed there too: deciding them would leave a case for each combination.

use super::formula::{Atom, AtomId, Formula, FormulaId, Formulas};
use super::schema::{Type, TypeSet};
use crate::error::Error;
use crate::limits::BudgetExceeded;

/// Of more goals that are neither few values nor entangled, not every combination is a case.
const MOST_DECIDED: usize = 4;

/// A goal for the value, and the formula about what follows it.
pub(super) type Outcome = (FormulaId, FormulaId);

impl Formulas {
    /// Returns the outcomes of reading a value under `formula`.
    pub(super) fn outcomes(&mut self, formula: FormulaId) -> Result<Vec<Outcome>, Error> {
        let limit = self.program.limits.unroll;
        let mut found: Vec<Outcome> = Vec::new();
        let mut pending: Vec<Outcome> = vec![(Self::yes(), formula)];
        let mut steps = 0;
        while let Some((goal, formula)) = pending.pop() {
            steps += 1;
            if steps > limit {
                return Err(BudgetExceeded::new("unroll", limit as u64).into());
            }
            if formula == Self::no() {
                continue;
            }
            let contents = self.contents(formula);
            if !contents.value {
                found.push((goal, formula));
            } else if !contents.other {
                let goal = self.with_goal(goal, formula)?;
                found.push((goal, Self::yes()));
            } else {
                self.branch(goal, formula, &mut pending)?;
            }
        }
        found.retain(|&(goal, residual)| goal != Self::no() && residual != Self::no());
        found.sort_unstable();
        self.join(&mut found);
        self.check()?;
        Ok(found)
    }

    /// Joins outcomes of equal goals, then those of equal residuals.
    fn join(&mut self, found: &mut Vec<Outcome>) {
        let mut by_goal: Vec<Outcome> = Vec::with_capacity(found.len());
        for group in found.chunk_by(|a, b| a.0 == b.0) {
            let residuals: Vec<_> = group.iter().map(|o| o.1).collect();
            by_goal.push((group[0].0, self.or(&residuals)));
        }
        by_goal.sort_unstable_by_key(|o| (o.1, o.0));
        found.clear();
        for group in by_goal.chunk_by(|a, b| a.1 == b.1) {
            let goals: Vec<_> = group.iter().map(|o| o.0).collect();
            found.push((self.or(&goals), group[0].1));
        }
    }

    /// Returns `goal` and what `formula`, which is only about the value, says.
    fn with_goal(&mut self, goal: FormulaId, formula: FormulaId) -> Result<FormulaId, Error> {
        let about = self.rewrite(formula, &mut |formulas, atom, _| {
            Ok(match *formulas.atom(atom) {
                Atom::Value(goal) => goal,
                _ => Self::no(),
            })
        })?;
        Ok(self.and(&[goal, about]))
    }

    /// Pushes simpler cases that together are `formula`, which is about the value and the rest.
    fn branch(
        &mut self,
        goal: FormulaId,
        formula: FormulaId,
        pending: &mut Vec<Outcome>,
    ) -> Result<(), Error> {
        let parts = match self.get(formula).clone() {
            Formula::Or(parts) => {
                self.branch_parts(goal, &parts, pending);
                return Ok(());
            }
            Formula::And(parts) => parts,
            _ => return self.decide(goal, formula, pending),
        };
        // What is only about the value holds in every case, and may decide the rest.
        let (about, rest): (Vec<_>, Vec<_>) = parts.iter().partition(|&&p| !self.contents(p).other);
        if about.is_empty() {
            return match self.guessable(&rest)? {
                Some(at) => self.guess(goal, &rest, at, pending),
                None => self.decide(goal, formula, pending),
            };
        }
        let about = self.and(&about);
        let goal = self.with_goal(goal, about)?;
        if self.is_dead(goal)? {
            return Ok(());
        }
        let rest = self.and(&rest);
        let rest = self.assume(goal, rest, None)?;
        pending.push((goal, rest));
        Ok(())
    }

    /// Returns the place of the only one of `parts` that is about the value, if it is a disjunction of so
    /// many goals, none of few values, that deciding them would leave too many cases.
    fn guessable(&mut self, parts: &[FormulaId]) -> Result<Option<usize>, Error> {
        let mut valued = (0..parts.len()).filter(|&i| self.contents(parts[i]).value);
        let (Some(at), None) = (valued.next(), valued.next()) else { return Ok(None) };
        if self.contents(parts[at]).entangled || !matches!(self.get(parts[at]), Formula::Or(_)) {
            return Ok(None);
        }
        let mut goals = 0;
        for (atom, ..) in self.atoms_of(parts[at]) {
            if let Atom::Value(goal) = *self.atom(atom) {
                if self.is_finite(goal)? {
                    return Ok(None);
                }
                goals += 1;
            }
        }
        Ok((goals > MOST_DECIDED).then_some(at))
    }

    /// Splits the disjunction at a place of a conjunction.
    fn guess(
        &mut self,
        goal: FormulaId,
        parts: &[FormulaId],
        at: usize,
        pending: &mut Vec<Outcome>,
    ) -> Result<(), Error> {
        let mut cases = Vec::new();
        if let Formula::Or(branches) = self.get(parts[at]).clone() {
            self.branch_parts(goal, &branches, &mut cases);
        }
        for (goal, case) in cases {
            let mut whole = parts.to_vec();
            whole[at] = case;
            pending.push((goal, self.and(&whole)));
        }
        Ok(())
    }

    /// Splits a disjunction, keeping together what is only about the value, or only about the rest.
    fn branch_parts(&mut self, goal: FormulaId, parts: &[FormulaId], pending: &mut Vec<Outcome>) {
        let mut about = Vec::new();
        let mut rest = Vec::new();
        for &part in parts {
            let contents = self.contents(part);
            match (contents.value, contents.other) {
                (true, true) => pending.push((goal, part)),
                (true, false) => about.push(part),
                _ => rest.push(part),
            }
        }
        let (about, rest) = (self.or(&about), self.or(&rest));
        pending.push((goal, about));
        pending.push((goal, rest));
    }

    /// Decides one goal of `formula` both ways.
    fn decide(
        &mut self,
        goal: FormulaId,
        formula: FormulaId,
        pending: &mut Vec<Outcome>,
    ) -> Result<(), Error> {
        let Some((atom, value, yes, no)) = self.decisive_goal(formula)? else { return Ok(()) };
        let scalar = self.types(value)?.is_subset(TypeSet::SCALARS);
        // Where more can only help, the other case need not exclude it; for scalars it is cheap to,
        // and leaves the cases disjoint.
        let exact = scalar || (yes && no);
        for truth in [true, false] {
            let asked = if truth { value } else { self.not(value) };
            let helps = if truth { yes } else { no };
            let case = if exact || helps { self.and(&[goal, asked]) } else { goal };
            if self.is_dead(case)? {
                continue;
            }
            let rest = self.assume(case, formula, Some((atom, truth)))?;
            pending.push((case, rest));
        }
        Ok(())
    }

    /// Returns the goal that decides most: one of few values if there is any, with its atom and the
    /// signs it occurs with.
    fn decisive_goal(
        &mut self,
        formula: FormulaId,
    ) -> Result<Option<(AtomId, FormulaId, bool, bool)>, Error> {
        let mut best = None;
        for (atom, yes, no) in self.atoms_of(formula) {
            let Atom::Value(goal) = *self.atom(atom) else { continue };
            let rank = if self.is_finite(goal)? {
                0
            } else if self.types(goal)?.is_subset(TypeSet::SCALARS) {
                1
            } else {
                2
            };
            if best.as_ref().is_none_or(|&(least, _)| rank < least) {
                best = Some((rank, (atom, goal, yes, no)));
            }
        }
        Ok(best.map(|(_, found)| found))
    }

    /// Returns `formula` under the assumption that the value meets `goal`, and of `decided`.
    fn assume(
        &mut self,
        goal: FormulaId,
        formula: FormulaId,
        decided: Option<(AtomId, bool)>,
    ) -> Result<FormulaId, Error> {
        if !self.contents(formula).value {
            return Ok(formula);
        }
        self.rewrite(formula, &mut |formulas, atom, done| {
            if let Some((known, truth)) = decided
                && known == atom
            {
                return Ok(Self::constant(truth));
            }
            let Atom::Value(other) = *formulas.atom(atom) else {
                return Ok(formulas.with_clauses(atom, done));
            };
            let not = formulas.not(other);
            Ok(if formulas.excludes(goal, other)? {
                Self::no()
            } else if formulas.excludes(goal, not)? {
                Self::yes()
            } else {
                formulas.literal(Atom::Value(other))
            })
        })
    }

    /// Returns the types that values meeting `goal` may have.
    pub(super) fn types(&mut self, goal: FormulaId) -> Result<TypeSet, Error> {
        let mut types = TypeSet::NONE;
        for t in Type::ALL {
            if self.split(goal, t)? != Self::no() {
                types = types.with(t);
            }
        }
        Ok(types)
    }

    /// Returns whether plainly no value meets `goal`. What this does not see, the automaton will.
    pub(super) fn is_dead(&mut self, goal: FormulaId) -> Result<bool, Error> {
        Ok(self.types(goal)? == TypeSet::NONE)
    }

    /// Returns whether `goal` is met by constants and listed values only.
    fn is_finite(&mut self, goal: FormulaId) -> Result<bool, Error> {
        for t in [Type::Number, Type::String, Type::Array, Type::Object] {
            let formula = self.split(goal, t)?;
            let finite = formula == Self::no() || self.listed(formula).is_some();
            if !finite {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
