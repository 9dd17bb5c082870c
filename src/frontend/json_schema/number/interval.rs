//! Bounds and intervals of numbers: what a schema says about sizes, before any text is thought of.

use crate::frontend::json_schema::number::Decimal;

/// One end of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// The number at the end.
    pub value: Decimal,
    /// Whether the number itself lies outside.
    pub exclusive: bool,
}

impl Bound {
    /// Returns a bound that includes `value`.
    #[must_use]
    pub const fn inclusive(value: Decimal) -> Self {
        Self { value, exclusive: false }
    }

    /// Returns a bound that excludes `value`.
    #[must_use]
    pub const fn exclusive(value: Decimal) -> Self {
        Self { value, exclusive: true }
    }

    fn negated(&self) -> Self {
        Self { value: self.value.negated(), exclusive: self.exclusive }
    }

    /// Returns the bound from the other side that just leaves out what this one admits.
    fn opposite(&self) -> Self {
        Self { value: self.value.clone(), exclusive: !self.exclusive }
    }
}

/// An interval of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Interval {
    pub(super) low: Option<Bound>,
    pub(super) high: Option<Bound>,
}

impl Interval {
    /// Keeps only what also lies inside `other`.
    pub(super) fn intersect(&mut self, other: &Self) {
        let low = [self.low.take(), other.low.clone()].into_iter().flatten();
        self.low = low.max_by(|a, b| (&a.value, a.exclusive).cmp(&(&b.value, b.exclusive)));
        let high = [self.high.take(), other.high.clone()].into_iter().flatten();
        self.high = high.min_by(|a, b| (&a.value, !a.exclusive).cmp(&(&b.value, !b.exclusive)));
    }

    /// Returns what lies inside both.
    pub(super) fn and(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.intersect(other);
        both
    }

    /// Returns whether no number lies inside.
    pub(super) fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (Some(low), Some(high)) => {
                high.value < low.value
                    || (high.value == low.value && (low.exclusive || high.exclusive))
            }
            _ => false,
        }
    }

    /// Returns whether the bounds only tell whether a number is above, below or equal to zero.
    pub(super) fn is_about_zero(&self) -> bool {
        [&self.low, &self.high].into_iter().flatten().all(|bound| bound.value.is_zero())
    }

    /// Returns the intervals, in ascending order, that are left without the members of `holes`.
    pub(super) fn without(&self, mut holes: Vec<Self>) -> Vec<Self> {
        fn low(hole: &Interval) -> Option<(&Decimal, bool)> {
            hole.low.as_ref().map(|low| (&low.value, low.exclusive))
        }
        holes.retain(|hole| !hole.is_empty());
        holes.sort_by(|a, b| low(a).cmp(&low(b)));
        let mut pieces = Vec::new();
        let mut rest = self.clone();
        for hole in holes {
            if let Some(low) = &hole.low {
                pieces.push(rest.and(&Self { low: None, high: Some(low.opposite()) }));
            }
            match &hole.high {
                Some(high) => rest.intersect(&Self { low: Some(high.opposite()), high: None }),
                None => {
                    pieces.retain(|piece| !piece.is_empty());
                    return pieces;
                }
            }
        }
        pieces.push(rest);
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    pub(super) fn contains(&self, value: &Decimal) -> bool {
        let above = |low: &Bound| *value > low.value || (*value == low.value && !low.exclusive);
        let below = |high: &Bound| *value < high.value || (*value == high.value && !high.exclusive);
        self.low.as_ref().is_none_or(above) && self.high.as_ref().is_none_or(below)
    }

    /// Returns the least closed interval with the same integers inside.
    pub(super) fn to_integers(&self) -> Self {
        let least = |low: &Bound| {
            Bound::inclusive(if low.exclusive {
                low.value.next_integer()
            } else {
                low.value.ceil()
            })
        };
        Self {
            low: self.low.as_ref().map(least),
            high: self.high.as_ref().map(|high| least(&high.negated()).negated()),
        }
    }

    /// Returns the absolute values of the members that are written with the sign `sign`, or `None`
    /// if there are none. Zero is written with both signs.
    pub(super) fn magnitudes(&self, sign: Sign) -> Option<Magnitudes> {
        let flip = |bound: &Option<Bound>| bound.as_ref().map(Bound::negated);
        let (low, high) = match sign {
            Sign::Plus => (self.low.clone(), self.high.clone()),
            Sign::Minus => (flip(&self.high), flip(&self.low)),
        };
        let zero = Bound::inclusive(Decimal::zero());
        let low = low.filter(|low| !low.value.is_negative()).unwrap_or(zero);
        let empty = high.as_ref().is_some_and(|high| {
            high.value < low.value || (high.value == low.value && (low.exclusive || high.exclusive))
        });
        (!empty).then_some(Magnitudes { low, high })
    }
}

/// The sign of a number's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
}

/// A non-empty interval of numbers that are not negative.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Magnitudes {
    pub(super) low: Bound,
    pub(super) high: Option<Bound>,
}
