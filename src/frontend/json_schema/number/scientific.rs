//! Notations with an exponent: intervals in, number texts with an exponent out.
//!
//! With one non-zero digit before the point, numbers compare by their exponents first and then by
//! their mantissas, each of which is a range of its own. Whether a number is zero, and its sign, do
//! not depend on the exponent at all.

use crate::frontend::json_schema::number::Decimal;
use crate::frontend::json_schema::number::interval::{Bound, Interval, Magnitudes, Sign};
use crate::frontend::json_schema::number::range::{Fraction, optional_fraction, plain_magnitudes};
use crate::ids::ExprId;
use crate::ir::{Arena, ByteSet, UNBOUNDED};

/// Returns the numbers of `range`, which only tells zero from the rest, in every spelling but for
/// their sign.
pub(super) fn any_magnitudes(arena: &mut Arena, range: &Magnitudes) -> ExprId {
    let mantissa = plain_magnitudes(arena, range, Fraction::Any);
    let exponent = any_exponent(arena);
    let exponent = arena.optional(exponent);
    arena.concat2(mantissa, exponent)
}

/// Returns the numbers of `range` with one digit before the point, not zero unless the number is,
/// and an exponent; without a sign.
pub(super) fn magnitudes(arena: &mut Arena, range: &Magnitudes) -> ExprId {
    let mut parts = Vec::new();
    if range.low.value.is_zero() && !range.low.exclusive {
        let zero = zero(arena);
        let exponent = any_exponent(arena);
        parts.push(arena.concat2(zero, exponent));
    }
    let split = |bound: &Bound| {
        let (value, exponent) = bound.value.scientific()?;
        Some((Bound { value, exclusive: bound.exclusive }, exponent))
    };
    let low = split(&range.low);
    let high = range.high.as_ref().and_then(split);
    match (low, high) {
        // Nothing but zero.
        (_, None) if range.high.is_some() => {}
        (Some((low, first)), Some((high, last))) if first == last => {
            parts.push(scaled(arena, Some(low), Some(high), (Some(first), Some(last))));
        }
        (low, high) => {
            // The exponents with which every mantissa is inside.
            let mut free = (None, None);
            if let Some((low, first)) = low {
                if low == Bound::inclusive(Decimal::from(1)) {
                    free.0 = Some(first);
                } else {
                    parts.push(scaled(arena, Some(low), None, (Some(first), Some(first))));
                    free.0 = Some(first + 1);
                }
            }
            if let Some((high, last)) = high {
                parts.push(scaled(arena, None, Some(high), (Some(last), Some(last))));
                free.1 = Some(last - 1);
            }
            parts.push(scaled(arena, None, None, free));
        }
    }
    arena.alt(&parts)
}

/// Fraction digits of an integer's mantissa, not counting trailing zeros. A double needs 16 for its
/// shortest spelling, and a 64-bit integer 19.
const INTEGER_DIGITS: u32 = 20;

/// Returns the integers in the spelling of [`magnitudes`] with at most [`INTEGER_DIGITS`] fraction
/// digits before trailing zeros: a number is one if its exponent is at least their number.
pub(super) fn integers(arena: &mut Arena) -> ExprId {
    let [digit, first] = [b'0', b'1'].map(|least| arena.bytes(ByteSet::range(least, b'9')));
    let zero_digit = arena.byte(b'0');
    let zeros = arena.star(zero_digit);
    let mut parts = Vec::new();
    for digits in 0..=INTEGER_DIGITS {
        let mut fraction = optional_fraction(arena, zero_digit);
        if digits > 0 {
            let digits = arena.repeat(digit, 1, digits);
            let point = arena.byte(b'.');
            fraction = arena.concat(&[point, digits, zeros]);
            fraction = arena.optional(fraction);
        }
        let least = Some(i64::from(digits));
        let most = if digits == INTEGER_DIGITS { None } else { least };
        let exponent = exponent(arena, least, most);
        parts.push(arena.concat(&[first, fraction, exponent]));
    }
    let zero = zero(arena);
    let exponent = any_exponent(arena);
    parts.push(arena.concat2(zero, exponent));
    arena.alt(&parts)
}

/// Returns the mantissas from `low` to `high`, or any, with the exponents from the first to the
/// second of `exponents`.
fn scaled(
    arena: &mut Arena,
    low: Option<Bound>,
    high: Option<Bound>,
    exponents: (Option<i64>, Option<i64>),
) -> ExprId {
    let mantissas = Interval {
        low: low.or_else(|| Some(Bound::inclusive(Decimal::from(1)))),
        high: high.or_else(|| Some(Bound::exclusive(Decimal::from(10)))),
    };
    let mantissa = mantissas
        .magnitudes(Sign::Plus)
        .map_or(Arena::EMPTY, |range| plain_magnitudes(arena, &range, Fraction::Any));
    let exponent = match exponents {
        (None, None) => any_exponent(arena),
        (first, last) => exponent(arena, first, last),
    };
    arena.concat2(mantissa, exponent)
}

/// Returns the exponents from `first` to `last`, with any number of leading zeros.
fn exponent(arena: &mut Arena, first: Option<i64>, last: Option<i64>) -> ExprId {
    let bound = |exponent: Option<i64>| exponent.map(|e| Bound::inclusive(Decimal::from(e)));
    let interval = Interval { low: bound(first), high: bound(last) };
    let zero = arena.byte(b'0');
    let zeros = arena.star(zero);
    let mut signed = Vec::new();
    for (sign, spelling) in [(Sign::Plus, b'+'), (Sign::Minus, b'-')] {
        let Some(range) = interval.magnitudes(sign) else { continue };
        let digits = plain_magnitudes(arena, &range, Fraction::None);
        let mut spelling = arena.byte(spelling);
        if sign == Sign::Plus {
            spelling = arena.optional(spelling);
        }
        signed.push(arena.concat(&[spelling, zeros, digits]));
    }
    let letter = arena.bytes(ByteSet::of(b"eE"));
    let signed = arena.alt(&signed);
    arena.concat2(letter, signed)
}

/// Returns zero without a sign or an exponent.
fn zero(arena: &mut Arena) -> ExprId {
    let digit = arena.byte(b'0');
    let fraction = optional_fraction(arena, digit);
    arena.concat2(digit, fraction)
}

/// Returns every exponent.
fn any_exponent(arena: &mut Arena) -> ExprId {
    let letter = arena.bytes(ByteSet::of(b"eE"));
    let sign = arena.bytes(ByteSet::of(b"+-"));
    let sign = arena.optional(sign);
    let digit = arena.bytes(ByteSet::range(b'0', b'9'));
    let digits = arena.repeat(digit, 1, UNBOUNDED);
    arena.concat(&[letter, sign, digits])
}
