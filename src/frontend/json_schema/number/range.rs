//! Intervals of numbers as expressions: two bounds in, the texts of the numbers between them out.
//!
//! A text is compared with a bound digit by digit: as long as all digits were equal the text is
//! *tight*, after the first difference it is free. Building goes from the last digit to the first,
//! so there is one expression for each digit of each bound, and what follows a free digit is a
//! repetition. Cost and size are linear in the digits of the bounds.

use crate::frontend::json_schema::number::interval::{Interval, Magnitudes, Sign};
use crate::ids::ExprId;
use crate::ir::{Arena, ByteSet, UNBOUNDED};

/// What may follow the integer digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fraction {
    /// Any fraction.
    Any,
    /// A fraction of zeros: the number is an integer. Bounds must be integers and inclusive.
    Zeros,
    /// Nothing: the number is an integer. Bounds must be integers and inclusive.
    None,
}

/// Returns the numbers of `interval` in plain notation, with either sign.
pub(super) fn plain(arena: &mut Arena, interval: &Interval, fraction: Fraction) -> ExprId {
    signed(arena, interval, |arena, magnitudes| plain_magnitudes(arena, magnitudes, fraction))
}

/// Returns the texts of `unsigned` on both sides of zero, with their signs.
pub(super) fn signed(
    arena: &mut Arena,
    interval: &Interval,
    mut unsigned: impl FnMut(&mut Arena, &Magnitudes) -> ExprId,
) -> ExprId {
    let mut side = |arena: &mut Arena, sign| {
        interval.magnitudes(sign).map_or(Arena::EMPTY, |magnitudes| unsigned(arena, &magnitudes))
    };
    let plus = side(arena, Sign::Plus);
    let minus = side(arena, Sign::Minus);
    let sign = arena.byte(b'-');
    if plus == minus {
        let sign = arena.optional(sign);
        return arena.concat2(sign, plus);
    }
    let minus = arena.concat2(sign, minus);
    arena.alt2(plus, minus)
}

/// Returns the numbers of `range` in plain notation, without a sign.
pub(super) fn plain_magnitudes(
    arena: &mut Arena,
    range: &Magnitudes,
    fraction: Fraction,
) -> ExprId {
    let low = range.low.value.plain_parts();
    let high = range.high.as_ref().map(|high| (high.value.plain_parts(), high.exclusive));
    let low = End { integer: &low.0, fraction: &low.1, exclusive: range.low.exclusive };
    let high = high.as_ref().map(|((integer, fraction), exclusive)| End {
        integer,
        fraction,
        exclusive: *exclusive,
    });
    let mut digits = Digits::new(arena);
    let after = match fraction {
        Fraction::None => Fractions::same(Arena::EPSILON),
        Fraction::Zeros => Fractions::same(digits.zeros),
        Fraction::Any => digits.fractions(&low, high.as_ref()),
    };
    digits.integers(low.integer, high.as_ref().map(|high| high.integer), &after)
}

/// A bound as digits: none before the point for a value below 1, no trailing zero after it.
struct End<'a> {
    integer: &'a [u8],
    fraction: &'a [u8],
    exclusive: bool,
}

/// What follows the integer digits, by how these compare with those of the bounds.
struct Fractions {
    /// Strictly between.
    free: ExprId,
    /// Equal to the lower bound's.
    low: ExprId,
    /// Equal to the upper bound's.
    high: ExprId,
    /// Equal to both.
    both: ExprId,
}

impl Fractions {
    const fn same(id: ExprId) -> Self {
        Self { free: id, low: id, high: id, both: id }
    }
}

/// Builds comparisons of digit strings.
struct Digits<'a> {
    arena: &'a mut Arena,
    digit: ExprId,
    /// `[0-9]*`
    any: ExprId,
    /// `0*`
    trailing: ExprId,
    /// `(\.0+)?`
    zeros: ExprId,
}

impl<'a> Digits<'a> {
    fn new(arena: &'a mut Arena) -> Self {
        let digit = arena.bytes(ByteSet::range(b'0', b'9'));
        let any = arena.star(digit);
        let zero = arena.byte(b'0');
        let trailing = arena.star(zero);
        let zeros = optional_fraction(arena, zero);
        Self { arena, digit, any, trailing, zeros }
    }

    /// Returns one of these: a digit from the first up to, not including, the second, then the third.
    /// Neighbours with equal rests become one step.
    fn steps(&mut self, steps: &[(u8, u8, ExprId)]) -> ExprId {
        let mut joined: Vec<(u8, u8, ExprId)> = Vec::with_capacity(steps.len());
        for &(first, end, rest) in steps.iter().filter(|(first, end, _)| first < end) {
            match joined.last_mut() {
                Some(before) if before.2 == rest && before.1 == first => before.1 = end,
                _ => joined.push((first, end, rest)),
            }
        }
        let mut result = Arena::EMPTY;
        for (first, end, rest) in joined {
            let head = self.arena.bytes(ByteSet::range(b'0' + first, b'0' + end - 1));
            let part = self.arena.concat2(head, rest);
            result = self.arena.alt2(result, part);
        }
        result
    }

    /// Returns `count` digits, then `rest`.
    fn free(&mut self, count: usize, rest: ExprId) -> ExprId {
        let count = u32::try_from(count).unwrap_or(UNBOUNDED - 1);
        let digits = self.arena.repeat(self.digit, count, count);
        self.arena.concat2(digits, rest)
    }

    /// Returns `digits`, then `rest`.
    fn exactly(&mut self, digits: &[u8], rest: ExprId) -> ExprId {
        digits.iter().rev().fold(rest, |rest, &digit| self.steps(&[(digit, digit + 1, rest)]))
    }

    /// Returns the integers from `low` to `high`, each followed by its part of `after`. Zero has no
    /// digits here.
    fn integers(&mut self, low: &[u8], high: Option<&[u8]>, after: &Fractions) -> ExprId {
        let zero = match (low, high) {
            ([], Some([])) => after.both,
            ([], _) => after.low,
            _ => Arena::EMPTY,
        };
        let zero = self.steps(&[(0, 1, zero)]);
        if let Some(high) = high.filter(|high| high.len() == low.len()) {
            let others = if low.is_empty() { Arena::EMPTY } else { self.between(low, high, after) };
            return self.arena.alt2(zero, others);
        }
        // Every number of these lengths, and of a bound's own length unless the bound cuts in.
        let mut parts = vec![zero];
        let mut shortest = low.len() + 1;
        if !low.is_empty() {
            let tight = self.above(low, after);
            if tight == self.any_of_length(low.len(), after) {
                shortest -= 1;
            } else {
                parts.push(tight);
            }
        }
        let mut longest = None;
        if let Some(high) = high {
            let tight = self.below(high, 1, after);
            let whole = tight == self.any_of_length(high.len(), after);
            longest = Some(if whole { high.len() } else { high.len() - 1 });
            if !whole {
                parts.push(tight);
            }
        }
        if longest.is_none_or(|longest| shortest <= longest) {
            let count = |len: usize| u32::try_from(len - 1).unwrap_or(UNBOUNDED);
            let digits = (count(shortest), longest.map_or(UNBOUNDED, count));
            let digits = self.arena.repeat(self.digit, digits.0, digits.1);
            let rest = self.arena.concat2(digits, after.free);
            parts.push(self.steps(&[(1, 10, rest)]));
        }
        self.arena.alt(&parts)
    }

    fn any_of_length(&mut self, len: usize, after: &Fractions) -> ExprId {
        let rest = self.free(len - 1, after.free);
        self.steps(&[(1, 10, rest)])
    }

    /// Returns the digit strings as long as `low` that are not below it.
    fn above(&mut self, low: &[u8], after: &Fractions) -> ExprId {
        let mut equal = after.low;
        for (count, &digit) in low.iter().rev().enumerate() {
            let free = self.free(count, after.free);
            equal = if digit == 0 && equal == free {
                self.free(count + 1, after.free)
            } else {
                self.steps(&[(digit, digit + 1, equal), (digit + 1, 10, free)])
            };
        }
        equal
    }

    /// Returns the digit strings as long as `high`, beginning with at least `first`, that are not
    /// above it.
    fn below(&mut self, high: &[u8], first: u8, after: &Fractions) -> ExprId {
        let mut equal = after.high;
        for (count, &digit) in high.iter().rev().enumerate() {
            let free = self.free(count, after.free);
            let first = if count + 1 == high.len() { first } else { 0 };
            equal = if digit == 9 && first == 0 && equal == free {
                self.free(count + 1, after.free)
            } else {
                self.steps(&[(first, digit, free), (digit, digit + 1, equal)])
            };
        }
        equal
    }

    /// Returns the digit strings from `low` to `high`, which are equally long.
    fn between(&mut self, low: &[u8], high: &[u8], after: &Fractions) -> ExprId {
        let Some(split) = low.iter().zip(high).position(|(l, h)| l != h) else {
            return self.exactly(low, after.both);
        };
        let above = self.above(&low[split + 1..], after);
        let below = self.below(&high[split + 1..], 0, after);
        let free = self.free(low.len() - split - 1, after.free);
        let (l, h) = (low[split], high[split]);
        let rest = self.steps(&[(l, l + 1, above), (l + 1, h, free), (h, h + 1, below)]);
        self.exactly(&low[..split], rest)
    }

    /// Returns the fractions by their relation to those of the bounds, given without trailing zeros.
    fn fractions(&mut self, low: &End<'_>, high: Option<&End<'_>>) -> Fractions {
        let free = optional_fraction(self.arena, self.digit);
        let above = if low.fraction.is_empty() && !low.exclusive {
            free
        } else {
            let digits = self.fraction_above(low.fraction, low.exclusive);
            self.point(digits)
        };
        let mut after = Fractions { free, low: above, high: free, both: above };
        let Some(high) = high else { return after };
        after.high = match high.fraction {
            [] if high.exclusive => Arena::EMPTY,
            [] => self.zeros,
            [first, rest @ ..] => {
                let equal = self.fraction_below(rest, high.exclusive);
                let digits = self.steps(&[(0, *first, self.any), (*first, first + 1, equal)]);
                let fraction = self.point(digits);
                self.arena.optional(fraction)
            }
        };
        if low.integer == high.integer {
            after.both = self.fraction_between(low, high);
        }
        after
    }

    fn point(&mut self, digits: ExprId) -> ExprId {
        let point = self.arena.byte(b'.');
        self.arena.concat2(point, digits)
    }

    /// Returns the digits after the point that make a fraction above that of the digits `low`.
    fn fraction_above(&mut self, low: &[u8], exclusive: bool) -> ExprId {
        let mut equal = self.any;
        if exclusive {
            let more = self.steps(&[(1, 10, self.any)]);
            equal = self.arena.concat2(self.trailing, more);
        }
        for &digit in low.iter().rev() {
            equal = self.steps(&[(digit, digit + 1, equal), (digit + 1, 10, self.any)]);
        }
        equal
    }

    /// Returns the digits, perhaps none, that make a fraction below that of the digits `high`.
    fn fraction_below(&mut self, high: &[u8], exclusive: bool) -> ExprId {
        let mut equal = if exclusive { Arena::EMPTY } else { self.trailing };
        for &digit in high.iter().rev() {
            // The last digit of the bound is not zero, so a text that ends here is below it.
            let more = self.steps(&[(0, digit, self.any), (digit, digit + 1, equal)]);
            equal = self.arena.optional(more);
        }
        equal
    }

    /// Returns the fractions after an integer part that both bounds have.
    fn fraction_between(&mut self, low: &End<'_>, high: &End<'_>) -> ExprId {
        let longer = low.fraction.len().max(high.fraction.len());
        let digit = |end: &End<'_>, i: usize| end.fraction.get(i).copied().unwrap_or(0);
        // A text that ends after `i` equal digits is the lower bound itself.
        let may_end = |i: usize| i >= low.fraction.len() && !low.exclusive;
        let Some(split) = (0..longer).find(|&i| digit(low, i) != digit(high, i)) else {
            // The interval is not empty, so this one number is all of it.
            let digits = self.exactly(low.fraction, self.trailing);
            return if low.fraction.is_empty() { self.zeros } else { self.point(digits) };
        };
        let (l, h) = (digit(low, split), digit(high, split));
        let low_rest = low.fraction.get(split + 1..).unwrap_or_default();
        let above = self.fraction_above(low_rest, low.exclusive);
        let below = self.fraction_below(&high.fraction[split + 1..], high.exclusive);
        let mut rest = self.steps(&[(l, l + 1, above), (l + 1, h, self.any), (h, h + 1, below)]);
        for i in (0..=split).rev() {
            if i < split {
                let digit = digit(low, i);
                rest = self.steps(&[(digit, digit + 1, rest)]);
            }
            if i > 0 && may_end(i) {
                rest = self.arena.optional(rest);
            }
        }
        let fraction = self.point(rest);
        if may_end(0) { self.arena.optional(fraction) } else { fraction }
    }
}

/// Returns an optional fraction made of `digit`.
pub(super) fn optional_fraction(arena: &mut Arena, digit: ExprId) -> ExprId {
    let digits = arena.repeat(digit, 1, UNBOUNDED);
    let point = arena.byte(b'.');
    let fraction = arena.concat2(point, digits);
    arena.optional(fraction)
}
