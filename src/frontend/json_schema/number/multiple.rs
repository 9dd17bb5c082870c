//! `multipleOf`: steps and an interval in, the multiples inside it out, in plain notation.

use num_bigint::BigUint;

use crate::error::{Error, ErrorKind};
use crate::frontend::json_schema::number::Decimal;
use crate::frontend::json_schema::number::interval::{Bound, Interval, Magnitudes};
use crate::frontend::json_schema::number::range::{Fraction, plain_magnitudes, signed};
use crate::ids::ExprId;
use crate::ir::progression::gcd;
use crate::ir::{Arena, Progression};
use crate::limits::{BudgetExceeded, Limits};

/// Returns the least number above 0 that every one of `steps` divides, or `None` without steps.
pub(super) fn common_step(steps: &[Decimal], limits: &Limits) -> Result<Option<Decimal>, Error> {
    let mut result: Option<Decimal> = None;
    for step in steps {
        if step.is_zero() || step.is_negative() {
            let kind = ErrorKind::InvalidKeyword { keyword: "multipleOf".into() };
            return Err(Error::new(kind, "`multipleOf` must be above 0"));
        }
        let Some(other) = result else {
            result = Some(step.clone());
            continue;
        };
        let scale = step.fraction_digits().max(other.fraction_digits());
        let (a, b) = (step.units(scale), other.units(scale));
        let multiple = &a / gcd(&a, &b) * b;
        let multiple = Decimal::from_units(false, &multiple, scale);
        if multiple.plain_digits() > limits.number_digits as u64 {
            return Err(too_long(limits));
        }
        result = Some(multiple);
    }
    Ok(result)
}

fn too_long(limits: &Limits) -> Error {
    Error::budget(BudgetExceeded::new("number_digits", limits.number_digits as u64))
}

/// Returns the multiples of `step` inside `interval`, with either sign.
pub(super) fn multiples(
    arena: &mut Arena,
    interval: &Interval,
    step: &Decimal,
    fraction: Fraction,
    limits: &Limits,
) -> Result<ExprId, Error> {
    if *step == Decimal::from(1) {
        let integers = interval.to_integers();
        let fraction = if fraction == Fraction::Any { Fraction::Zeros } else { fraction };
        return Ok(signed(arena, &integers, |arena, range| {
            plain_magnitudes(arena, range, fraction)
        }));
    }
    let mut valid = true;
    let result = signed(arena, interval, |arena, range| {
        let Some(spec) = progression(range, step, fraction) else { return Arena::EMPTY };
        if spec.high.as_ref() == Some(&spec.low) {
            let only = Decimal::from_units(false, &spec.low, u64::from(spec.scale));
            let only = Bound::inclusive(only);
            let range = Magnitudes { low: only.clone(), high: Some(only) };
            return plain_magnitudes(arena, &range, fraction);
        }
        valid &= spec.is_valid();
        if valid { arena.progression(spec) } else { Arena::EMPTY }
    });
    if valid { Ok(result) } else { Err(too_long(limits)) }
}

/// Returns the progression of the multiples of `step` in `range`, or `None` if there are none.
fn progression(range: &Magnitudes, step: &Decimal, fraction: Fraction) -> Option<Progression> {
    let scale = step.fraction_digits();
    let units = step.units(scale);
    // How many steps a bound is, rounded down, and whether it is itself a multiple.
    let steps = |bound: &Bound| {
        let common = scale.max(bound.value.fraction_digits());
        let (bound, step) = (bound.value.units(common), step.units(common));
        let count = &bound / &step;
        let exact = &count * step == bound;
        (count, exact)
    };
    let (mut least, exact) = steps(&range.low);
    if !exact || range.low.exclusive {
        least += 1_u8;
    }
    let mut greatest = None;
    if let Some(high) = &range.high {
        let (count, exact) = steps(high);
        if exact && high.exclusive {
            if count == BigUint::ZERO {
                return None;
            }
            greatest = Some(count - 1_u8);
        } else {
            greatest = Some(count);
        }
    }
    if greatest.as_ref().is_some_and(|greatest| *greatest < least) {
        return None;
    }
    Some(Progression {
        low: least * &units,
        high: greatest.map(|greatest| greatest * &units),
        step: units,
        scale: u32::try_from(scale).unwrap_or(u32::MAX),
        fraction: fraction != Fraction::None,
    })
}
