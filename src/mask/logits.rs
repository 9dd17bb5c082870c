//! What can be wrong with a row of logits.

use std::fmt;

/// A row of logits cannot be used.
///
/// Only the logits of legal tokens are looked at: what a mask forbids may hold anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogitsError {
    /// The row has fewer logits than the vocabulary has ids. (It may have more: padding is never
    /// legal.)
    TooNarrow {
        /// Number of logits in the row.
        len: usize,
        /// Number of ids in the vocabulary.
        width: usize,
    },
    /// The logit of a legal token is NaN.
    NotANumber {
        /// Its position in the row.
        index: usize,
    },
    /// The logit of a legal token is +∞. (−∞ is allowed, and never drawn.)
    PositiveInfinity {
        /// Its position in the row.
        index: usize,
    },
    /// A penalty or a bias takes the finite logit of a legal token out of the range of `f32`.
    Overflow {
        /// Its position in the row.
        index: usize,
    },
}

impl LogitsError {
    /// Returns the position of the logit that is wrong, if it is a single one.
    #[must_use]
    pub const fn index(&self) -> Option<usize> {
        match *self {
            Self::TooNarrow { .. } => None,
            Self::NotANumber { index }
            | Self::PositiveInfinity { index }
            | Self::Overflow { index } => Some(index),
        }
    }

    /// Returns the error for the logit `value` of a legal token, if it is one.
    pub(crate) const fn of(value: f32, index: usize) -> Option<Self> {
        if value.is_nan() {
            return Some(Self::NotANumber { index });
        }
        if value == f32::INFINITY {
            return Some(Self::PositiveInfinity { index });
        }
        None
    }
}

/// Returns whether no legal token may have this logit: NaN or +∞.
#[inline(always)]
pub(super) const fn is_invalid(logit: f32) -> bool {
    logit.is_nan() || logit == f32::INFINITY
}

impl fmt::Display for LogitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooNarrow { len, width } => {
                write!(f, "the row has {len} logits and the vocabulary {width} ids")
            }
            Self::NotANumber { index } => write!(f, "logit {index} is NaN"),
            Self::PositiveInfinity { index } => write!(f, "logit {index} is +inf"),
            Self::Overflow { index } => {
                write!(f, "penalties and bias take logit {index} out of the range of 32-bit floats")
            }
        }
    }
}

impl std::error::Error for LogitsError {}
