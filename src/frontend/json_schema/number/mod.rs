//! The numbers that a schema allows, as an expression over their JSON texts: constraints in, one
//! regular expression out, which the automaton combines like any other.
//!
//! A bound is decided digit by digit, a `multipleOf` by an arithmetic progression
//! ([`crate::ir::Progression`]); both are exact at any size and precision, and cost time and
//! expressions linear in the digits of the bounds. Values are compared as JSON Schema compares
//! them: 1.0 is an integer and equals 1, and -0 equals 0.
//!
//! # Spellings
//!
//! Every number that a constraint allows can be written in each spelling of the constraint's
//! [`Notation`]: without an exponent always, and with one where that can be decided. It cannot
//! always: `0.0…01e9` compares with 1 by how many zeros there are, and no finite automaton counts
//! them.

mod decimal;
mod formats;
mod interval;
mod multiple;
mod range;
mod scientific;
#[cfg(test)]
mod tests;

pub use decimal::Decimal;
pub use formats::{FORMATS, of_format};
pub use interval::Bound;

use crate::error::Error;
use crate::frontend::json_schema::number::interval::Interval;
use crate::frontend::json_schema::number::range::{Fraction, plain, signed};
use crate::ids::ExprId;
use crate::ir::Arena;
use crate::limits::Limits;

/// A set of spellings of numbers, each within the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Notation {
    /// `-?(0|[1-9][0-9]*)(\.[0-9]+)?`, in which any constraint is decided.
    Plain,
    /// Plain, or an exponent after a mantissa with one digit before the point that is 0 only if the
    /// number is: `-?([1-9](\.[0-9]+)?|0(\.0+)?)[eE][+-]?[0-9]+`. Bounds are decided in it.
    Scientific,
    /// Everything that RFC 8259 section 6 allows. Whether a number is above, below or equal to zero
    /// is decided in it.
    Any,
}

/// How integers are written.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IntegerSpelling {
    /// As digits: `-?(0|[1-9][0-9]*)`.
    #[default]
    Digits,
    /// As digits, or with a fraction of zeros: `5`, `5.0`, `5.00`.
    Fraction,
    /// As the former, or in scientific notation: `5e0`, `1.50e1`. The mantissa has at most 20
    /// fraction digits, not counting zeros at its end; under a `multipleOf` there is no exponent.
    Scientific,
}

/// What a schema demands of a number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumberConstraint {
    /// The number is an integer.
    pub integer: bool,
    /// The number is not below this.
    pub minimum: Option<Bound>,
    /// The number is not above this.
    pub maximum: Option<Bound>,
    /// The number is a multiple of each of these, which are above 0.
    pub multiple_of: Vec<Decimal>,
    /// How the number is written if `integer` is set.
    pub integer_spelling: IntegerSpelling,
}

impl NumberConstraint {
    /// Returns the constraint that only `value` meets.
    #[must_use]
    pub fn exactly(value: &Decimal) -> Self {
        let bound = Some(Bound::inclusive(value.clone()));
        Self { minimum: bound.clone(), maximum: bound, ..Self::default() }
    }

    /// Returns whether `value` meets the constraint.
    #[must_use]
    pub fn admits(&self, value: &Decimal) -> bool {
        (!self.integer || value.is_integer())
            && self.interval().contains(value)
            && self.multiple_of.iter().all(|step| value.is_multiple_of(step))
    }

    /// Adds what `other` demands; the spelling of integers stays.
    pub fn intersect(&mut self, other: &Self) {
        self.integer |= other.integer;
        let mut interval = self.interval();
        interval.intersect(&other.interval());
        (self.minimum, self.maximum) = (interval.low, interval.high);
        for step in &other.multiple_of {
            if !self.multiple_of.contains(step) {
                self.multiple_of.push(step.clone());
            }
        }
    }

    /// Returns the widest notation in which the constraint is decided.
    #[must_use]
    pub fn notation(&self) -> Notation {
        self.notation_in(&[self.interval()])
    }

    /// Returns the widest notation in which the constraint is decided with other bounds.
    fn notation_in(&self, intervals: &[Interval]) -> Notation {
        let exponent = self.integer_spelling == IntegerSpelling::Scientific;
        if !self.multiple_of.is_empty() || (self.integer && !exponent) {
            Notation::Plain
        } else if !self.integer && intervals.iter().all(Interval::is_about_zero) {
            Notation::Any
        } else {
            Notation::Scientific
        }
    }

    fn interval(&self) -> Interval {
        Interval { low: self.minimum.clone(), high: self.maximum.clone() }
    }

    /// Returns the least number above 0 that divides every number which meets the constraint.
    fn step(&self, limits: &Limits) -> Result<Option<Decimal>, Error> {
        let one = self.integer.then(|| Decimal::from(1));
        let steps: Vec<_> = self.multiple_of.iter().cloned().chain(one).collect();
        multiple::common_step(&steps, limits)
    }

    /// Drops what every number that meets `other`, whose step is `step`, meets anyway.
    fn assume(
        &mut self,
        other: &Self,
        step: Option<&Decimal>,
        limits: &Limits,
    ) -> Result<(), Error> {
        let own = multiple::common_step(&self.multiple_of, limits)?;
        self.multiple_of = own.into_iter().collect();
        if let Some(step) = step {
            self.integer &= !step.is_integer();
            self.multiple_of.retain(|own| !step.is_multiple_of(own));
        }
        let inside = other.interval();
        let implied = |low, high| inside.and(&Interval { low, high }) == inside;
        self.minimum.take_if(|bound| implied(Some(bound.clone()), None));
        self.maximum.take_if(|bound| implied(None, Some(bound.clone())));
        Ok(())
    }

    /// Returns the numbers of `interval` that meet the other constraints, whose step is `step`, in
    /// a notation in which that is decided, and integers in their spelling.
    fn build(
        &self,
        arena: &mut Arena,
        (interval, step): (&Interval, Option<&Decimal>),
        notation: Notation,
        limits: &Limits,
    ) -> Result<ExprId, Error> {
        let Some(step) = step else { return Ok(between(arena, interval, notation)) };
        let fraction = match self.integer_spelling {
            _ if !self.integer => Fraction::Any,
            IntegerSpelling::Digits => Fraction::None,
            IntegerSpelling::Fraction | IntegerSpelling::Scientific => Fraction::Zeros,
        };
        let plain = multiple::multiples(arena, interval, step, fraction, limits)?;
        if notation == Notation::Plain {
            return Ok(plain);
        }
        let integers = signed(arena, interval, |arena, range| {
            let integers = scientific::integers(arena);
            let inside = scientific::magnitudes(arena, range);
            arena.and(&[integers, inside])
        });
        Ok(arena.alt2(plain, integers))
    }
}

/// Returns the texts of the numbers that meet `constraint`, in the constraint's
/// [notation](NumberConstraint::notation). It is [`Arena::EMPTY`] if there are none.
///
/// # Errors
///
/// [`crate::ErrorKind::BudgetExceeded`] if the common multiple of `multiple_of` is too long or
/// the arena is full, [`crate::ErrorKind::InvalidKeyword`] if a `multiple_of` is not above 0.
pub fn language(
    arena: &mut Arena,
    constraint: &NumberConstraint,
    limits: &Limits,
) -> Result<ExprId, Error> {
    conjunction(arena, constraint, &[], limits)
}

/// Returns the texts of the numbers that meet `required` and none of `forbidden`.
///
/// The notation is the narrowest of those of `required`, of the intervals that are left of its own,
/// and of forbidden constraints that demand an integer or a multiple where `required` does not.
/// With such a constraint, the result may be another expression than [`Arena::EMPTY`] even if
/// there are no such numbers.
///
/// # Errors
///
/// Those of [`language`].
pub fn conjunction(
    arena: &mut Arena,
    required: &NumberConstraint,
    forbidden: &[NumberConstraint],
    limits: &Limits,
) -> Result<ExprId, Error> {
    let step = required.step(limits)?;
    let (mut holes, mut excluded) = (Vec::new(), Vec::new());
    for constraint in forbidden {
        let mut constraint = constraint.clone();
        constraint.assume(required, step.as_ref(), limits)?;
        if constraint.integer || !constraint.multiple_of.is_empty() {
            // An integer is excluded in any spelling.
            constraint.integer_spelling = IntegerSpelling::Fraction;
            excluded.push(constraint);
        } else {
            holes.push(constraint.interval());
        }
    }
    let intervals = required.interval().without(holes);
    excluded.retain(|constraint| {
        intervals.iter().any(|interval| !interval.and(&constraint.interval()).is_empty())
    });
    let excluded = widest(excluded, limits)?;
    let notation = excluded
        .iter()
        .map(NumberConstraint::notation)
        .fold(required.notation_in(&intervals), Notation::min);
    let mut allowed = Vec::with_capacity(intervals.len());
    for interval in &intervals {
        allowed.push(required.build(arena, (interval, step.as_ref()), notation, limits)?);
    }
    let mut others = Vec::with_capacity(excluded.len());
    for constraint in excluded {
        let part = (&constraint.interval(), constraint.step(limits)?);
        others.push(constraint.build(arena, (part.0, part.1.as_ref()), notation, limits)?);
    }
    let (allowed, others) = (arena.alt(&allowed), arena.alt(&others));
    let others = arena.not(others);
    let result = arena.and(&[allowed, others]);
    arena.check()?;
    Ok(result)
}

/// Returns `constraints` without those that another of them is implied by. A multiple beside the integers
/// that contain it would be followed digit by digit in vain.
fn widest(
    constraints: Vec<NumberConstraint>,
    limits: &Limits,
) -> Result<Vec<NumberConstraint>, Error> {
    let mut kept: Vec<NumberConstraint> = Vec::with_capacity(constraints.len());
    let implies = |one: &NumberConstraint, other: &NumberConstraint| -> Result<bool, Error> {
        let mut other = other.clone();
        other.assume(one, one.step(limits)?.as_ref(), limits)?;
        Ok(!other.integer
            && other.multiple_of.is_empty()
            && other.interval() == Interval::default())
    };
    for constraint in constraints {
        let mut implied = false;
        for other in &kept {
            implied |= implies(&constraint, other)?;
        }
        if implied {
            continue;
        }
        let mut still = Vec::with_capacity(kept.len() + 1);
        for other in kept {
            if !implies(&other, &constraint)? {
                still.push(other);
            }
        }
        still.push(constraint);
        kept = still;
    }
    Ok(kept)
}

/// Returns every spelling of exactly `value` in the widest [`Notation`] that decides it.
pub fn literal(arena: &mut Arena, value: &Decimal) -> ExprId {
    let constraint = NumberConstraint::exactly(value);
    between(arena, &constraint.interval(), constraint.notation())
}

/// Returns every JSON number.
pub fn any_number(arena: &mut Arena) -> ExprId {
    between(arena, &Interval::default(), Notation::Any)
}

/// Returns every number in the one spelling that [`Decimal`] displays: no exponent, no zero that could
/// be left out, no minus sign of zero.
pub fn canonical(arena: &mut Arena) -> ExprId {
    let range = crate::ir::ByteSet::range;
    let digit = arena.bytes(range(b'0', b'9'));
    let digits = arena.star(digit);
    let nonzero = arena.bytes(range(b'1', b'9'));
    let zero = arena.byte(b'0');
    let positive = arena.concat2(nonzero, digits);
    let integer = arena.alt2(zero, positive);
    let point = arena.byte(b'.');
    let fraction = arena.concat(&[integer, point, digits, nonzero]);
    let signed = arena.alt2(positive, fraction);
    let minus = arena.byte(b'-');
    let sign = arena.optional(minus);
    let signed = arena.concat2(sign, signed);
    arena.alt2(zero, signed)
}

/// Returns every integer, written as digits.
pub fn any_integer(arena: &mut Arena) -> ExprId {
    plain(arena, &Interval::default(), Fraction::None)
}

/// Returns the numbers of `interval` in a notation in which its bounds are decided.
fn between(arena: &mut Arena, interval: &Interval, notation: Notation) -> ExprId {
    match notation {
        Notation::Plain => plain(arena, interval, Fraction::Any),
        Notation::Scientific => {
            let plain = plain(arena, interval, Fraction::Any);
            let scientific = signed(arena, interval, scientific::magnitudes);
            arena.alt2(plain, scientific)
        }
        Notation::Any => signed(arena, interval, scientific::any_magnitudes),
    }
}
