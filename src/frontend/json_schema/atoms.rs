//! What pairs of atoms say together: lists of values, lengths, bounds and counts in one conjunction
//! (or disjunction) become one atom each, so that plain contradictions are seen at once.

use super::formula::{Atom, BoundsId, Formula, FormulaId, Formulas, ListId};
use super::names::NameId;
use super::number::{Decimal, NumberConstraint};
use crate::ir::UNBOUNDED;

/// The literals of one conjunction that speak of the same thing.
#[derive(Default)]
struct Gathered {
    strings: Values,
    lengths: Vec<(u32, u32, bool)>,
    numbers: Values,
    bounds: Vec<(BoundsId, bool)>,
    /// The counters, each with the greatest "at least" and the least "not at least".
    counters: Vec<(Counter, u32, u32)>,
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counter {
    Members,
    Elements,
    Contained(FormulaId),
}

/// A set of values as "one of" and "none of".
#[derive(Default)]
struct Values {
    allowed: Option<Vec<NameId>>,
    refused: Vec<NameId>,
    literals: usize,
}

impl Values {
    fn add(&mut self, list: &[NameId], positive: bool) {
        self.literals += 1;
        if !positive {
            self.refused.extend_from_slice(list);
            self.refused.sort_unstable();
            return;
        }
        match &mut self.allowed {
            None => self.allowed = Some(list.to_vec()),
            Some(allowed) => allowed.retain(|name| list.binary_search(name).is_ok()),
        }
    }
}

impl Values {
    fn refuses(&self, name: NameId) -> bool {
        self.refused.binary_search(&name).is_ok()
    }
}

impl Formulas {
    /// Joins literals of sorted `parts`, which are a conjunction if `and`, else a disjunction. Returns
    /// whether anything changed; a contradiction becomes its constant.
    pub(super) fn merge_atoms(&mut self, parts: &mut Vec<FormulaId>, and: bool) -> bool {
        let mut gathered = Gathered::default();
        let mut taken = Vec::new();
        for &part in parts.iter() {
            if let &Formula::Literal { atom, positive } = self.get(part)
                && gathered.add(self, self.atom(atom), positive == and)
            {
                taken.push(part);
            }
        }
        if taken.len() < 2 || !gathered.joins() {
            return false;
        }
        // A disjunction is the negation of the conjunction of the negations.
        let mut merged = Vec::new();
        let consistent = gathered.finish(self, &mut merged);
        if consistent {
            for part in &mut merged {
                if !and {
                    *part = self.not(*part);
                }
            }
        } else {
            merged = vec![Self::constant(!and)];
        }
        merged.sort_unstable();
        if merged == taken {
            return false;
        }
        parts.retain(|part| taken.binary_search(part).is_err());
        parts.extend(merged);
        true
    }

    /// Returns the number of characters of a text.
    fn characters(&self, name: NameId) -> u32 {
        let count = self.program.document.names.get(name).chars().count();
        u32::try_from(count).unwrap_or(UNBOUNDED)
    }

    /// Returns the value of a canonical spelling.
    pub(super) fn decimal(&self, name: NameId) -> Option<Decimal> {
        Decimal::parse(self.program.document.names.get(name), &self.program.limits).ok()
    }
}

impl Gathered {
    /// Adds a literal if it is of a kind that joins.
    fn add(&mut self, formulas: &Formulas, atom: &Atom, positive: bool) -> bool {
        match *atom {
            Atom::Strings(list) => self.strings.add(formulas.list(list), positive),
            Atom::Numbers(list) => self.numbers.add(formulas.list(list), positive),
            Atom::Length(min, max) => self.lengths.push((min, max, positive)),
            Atom::Bounds(id) => self.bounds.push((id, positive)),
            Atom::MemberCount(n) => self.count(Counter::Members, n, positive),
            Atom::ElementCount(n) => self.count(Counter::Elements, n, positive),
            Atom::Contains(goal, n) => self.count(Counter::Contained(goal), n, positive),
            _ => return false,
        }
        true
    }

    fn count(&mut self, counter: Counter, n: u32, positive: bool) {
        let at = match self.counters.iter().position(|c| c.0 == counter) {
            Some(at) => at,
            None => {
                self.counters.push((counter, 0, UNBOUNDED));
                self.counters.len() - 1
            }
        };
        let (_, low, high) = &mut self.counters[at];
        if positive {
            *low = n.max(*low);
        } else {
            *high = n.min(*high);
        }
    }

    /// Returns whether there may be something to join.
    fn joins(&self) -> bool {
        self.strings.literals + self.lengths.len() > 1
            || self.numbers.literals + self.bounds.len() > 1
            || !self.counters.is_empty()
    }

    /// Appends the joined literals; returns false if they contradict each other.
    fn finish(self, formulas: &mut Formulas, merged: &mut Vec<FormulaId>) -> bool {
        self.finish_strings(formulas, merged)
            && self.finish_numbers(formulas, merged)
            && self.finish_counts(formulas, merged)
    }

    fn finish_strings(&self, formulas: &mut Formulas, merged: &mut Vec<FormulaId>) -> bool {
        let within =
            |n: u32, &(min, max, positive): &(u32, u32, bool)| (min <= n && n <= max) == positive;
        if let Some(allowed) = &self.strings.allowed {
            let mut left = allowed.clone();
            left.retain(|name| {
                let n = formulas.characters(*name);
                !self.strings.refuses(*name) && self.lengths.iter().all(|l| within(n, l))
            });
            if left.is_empty() {
                return false;
            }
            let list = formulas.intern_list(left);
            merged.push(formulas.literal(Atom::Strings(list)));
            return true;
        }
        if !self.strings.refused.is_empty() {
            let list = formulas.intern_list(self.strings.refused.clone());
            merged.push(formulas.not_literal(Atom::Strings(list)));
        }
        let positive = || self.lengths.iter().filter(|l| l.2);
        if let (Some(min), Some(max)) =
            (positive().map(|l| l.0).max(), positive().map(|l| l.1).min())
        {
            if min > max {
                return false;
            }
            merged.push(formulas.literal(Atom::Length(min, max)));
        }
        for &(min, max, _) in self.lengths.iter().filter(|l| !l.2) {
            merged.push(formulas.not_literal(Atom::Length(min, max)));
        }
        true
    }

    fn finish_numbers(&self, formulas: &mut Formulas, merged: &mut Vec<FormulaId>) -> bool {
        if let Some(allowed) = &self.numbers.allowed {
            let mut left = allowed.clone();
            left.retain(|&name| {
                !self.numbers.refuses(name)
                    && formulas.decimal(name).is_some_and(|value| {
                        self.bounds
                            .iter()
                            .all(|&(id, yes)| formulas.bounds(id).admits(&value) == yes)
                    })
            });
            if left.is_empty() {
                return false;
            }
            let list = formulas.intern_list(left);
            merged.push(formulas.literal(Atom::Numbers(list)));
            // Whether a number is an integer may be a matter of its spelling.
            let integer = |&(id, yes): &(BoundsId, bool)| yes && formulas.bounds(id).integer;
            if formulas.program.schemas.integers_are_digits && self.bounds.iter().any(integer) {
                let integer = NumberConstraint { integer: true, ..NumberConstraint::default() };
                merged.push(formulas.within(&integer));
            }
            return true;
        }
        if !self.numbers.refused.is_empty() {
            let list = formulas.intern_list(self.numbers.refused.clone());
            merged.push(formulas.not_literal(Atom::Numbers(list)));
        }
        let mut bounds: Option<NumberConstraint> = None;
        for &(id, positive) in &self.bounds {
            let part = formulas.bounds(id);
            match &mut bounds {
                _ if !positive => merged.push(formulas.not_literal(Atom::Bounds(id))),
                Some(bounds) => bounds.intersect(part),
                None => bounds = Some(part.clone()),
            }
        }
        if let Some(bounds) = bounds {
            let within = formulas.within(&bounds);
            merged.push(within);
            return within != Formulas::no();
        }
        true
    }

    fn finish_counts(&self, formulas: &mut Formulas, merged: &mut Vec<FormulaId>) -> bool {
        for &(counter, low, high) in &self.counters {
            if low >= high {
                return false;
            }
            let atom = |n| match counter {
                Counter::Members => Atom::MemberCount(n),
                Counter::Elements => Atom::ElementCount(n),
                Counter::Contained(goal) => Atom::Contains(goal, n),
            };
            if low > 0 {
                merged.push(formulas.literal(atom(low)));
            }
            if high < UNBOUNDED {
                merged.push(formulas.not_literal(atom(high)));
            }
        }
        true
    }
}

impl Formulas {
    /// Returns the negation of `atom`.
    pub(super) fn not_literal(&mut self, atom: Atom) -> FormulaId {
        let literal = self.literal(atom);
        self.not(literal)
    }

    /// Returns the formula "at least `n`" of a counting atom; nothing counts below 0.
    pub(super) fn at_least(&mut self, n: u32, atom: impl FnOnce(u32) -> Atom) -> FormulaId {
        if n == 0 { Self::yes() } else { self.literal(atom(n)) }
    }

    /// Returns the formula that the string is in the list `id`.
    pub(super) fn any_of_strings(&mut self, names: Vec<NameId>) -> FormulaId {
        if names.is_empty() {
            return Self::no();
        }
        let list: ListId = self.intern_list(names);
        self.literal(Atom::Strings(list))
    }

    /// Returns the formula that the number is one of these canonical spellings.
    pub(super) fn any_of_numbers(&mut self, names: Vec<NameId>) -> FormulaId {
        if names.is_empty() {
            return Self::no();
        }
        let list: ListId = self.intern_list(names);
        self.literal(Atom::Numbers(list))
    }
}
