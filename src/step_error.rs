//! The errors of generating: why a step cannot be made. Compiling has its own, [`crate::Error`].

use std::fmt;

use crate::error::Error;
use crate::ids::TokenId;
use crate::limits::BudgetExceeded;

/// A step of a sequence failed. The sequence is left as it was before the step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StepError {
    /// The grammar goes on, but no token of the vocabulary can spell how.
    AllTokensIllegal {
        /// Number of tokens accepted before.
        step: usize,
        /// What the grammar is in the middle of, for people.
        state: String,
        /// The bytes that would have been legal, ascending.
        legal_bytes: Vec<u8>,
    },
    /// Every legal token has a logit of −∞.
    NoFiniteLegalLogit {
        /// Number of tokens accepted before.
        step: usize,
    },
    /// Every legal token would complete a phrase that [`crate::Policy::ban`] names.
    AllTokensBanned {
        /// Number of tokens accepted before.
        step: usize,
    },
    /// The token would complete a phrase that [`crate::Policy::ban`] names. Where the budget leaves no
    /// other way to complete the output, choosing one fails with this.
    TokenBanned {
        /// Number of tokens accepted before.
        step: usize,
        /// The token.
        token: TokenId,
    },
    /// The token is not legal here.
    TokenRejected {
        /// Number of tokens accepted before.
        step: usize,
        /// The token.
        token: TokenId,
        /// How many of its bytes were legal.
        legal_prefix: usize,
    },
    /// A text is not legal here.
    BytesRejected {
        /// How many of its bytes were legal.
        legal_prefix: usize,
        /// The bytes that would have been legal after those, ascending.
        legal_bytes: Vec<u8>,
    },
    /// An end token was accepted before: nothing may follow.
    Finished,
    /// A rollback past the start of the sequence.
    RollbackTooFar {
        /// The steps that were asked for.
        asked: usize,
        /// The steps that there are.
        available: usize,
    },
    /// A row of logits cannot be used.
    InvalidLogits(LogitsError),
    /// An option of the policy is out of its range.
    InvalidPolicy(Error),
    /// The budget of tokens cannot hold any complete output.
    TokenBudget {
        /// Tokens that are left.
        left: usize,
        /// Tokens that the shortest known completion takes, the end token counted; `usize::MAX` if none
        /// is known.
        needed: usize,
        /// Whether fewer than `needed` cannot do. Otherwise it is an upper bound.
        exact: bool,
    },
    /// A bound of [`crate::Limits`] was reached.
    BudgetExceeded(BudgetExceeded),
    /// A part of the grammar that was first reached here cannot be expanded.
    Grammar(Error),
}

impl StepError {
    /// Returns the stable snake-case name of this kind, as reports print it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AllTokensIllegal { .. } => "all_tokens_illegal",
            Self::NoFiniteLegalLogit { .. } => "no_finite_legal_logit",
            Self::AllTokensBanned { .. } => "all_tokens_banned",
            Self::TokenBanned { .. } => "token_banned",
            Self::TokenRejected { .. } => "token_rejected",
            Self::BytesRejected { .. } => "bytes_rejected",
            Self::Finished => "finished",
            Self::RollbackTooFar { .. } => "rollback_too_far",
            Self::InvalidLogits(_) => "invalid_logits",
            Self::InvalidPolicy(_) => "invalid_policy",
            Self::TokenBudget { .. } => "token_budget",
            Self::BudgetExceeded(_) => "budget_exceeded",
            Self::Grammar(_) => "grammar",
        }
    }

    /// Returns whether it says that no token can follow here, and nothing about the rest.
    pub(crate) const fn is_dead_end(&self) -> bool {
        matches!(
            self,
            Self::AllTokensIllegal { .. }
                | Self::NoFiniteLegalLogit { .. }
                | Self::AllTokensBanned { .. }
                | Self::TokenBanned { .. }
                | Self::TokenBudget { .. }
        )
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let legal = |bytes: &[u8]| bytes.escape_ascii().to_string();
        match self {
            Self::AllTokensIllegal { step, state, legal_bytes } => write!(
                f,
                "no token is legal after {step} tokens ({state}); the legal bytes `{}` are not in the vocabulary",
                legal(legal_bytes)
            ),
            Self::NoFiniteLegalLogit { step } => {
                write!(f, "every legal token has a logit of -inf after {step} tokens")
            }
            Self::AllTokensBanned { step } => {
                write!(f, "every legal token completes a banned phrase after {step} tokens")
            }
            Self::TokenBanned { step, token } => {
                write!(f, "token {} completes a banned phrase after {step} tokens", token.get())
            }
            Self::TokenRejected { step, token, legal_prefix } => write!(
                f,
                "token {} is not legal after {step} tokens: it leaves the grammar after {legal_prefix} bytes",
                token.get()
            ),
            Self::BytesRejected { legal_prefix, legal_bytes } => write!(
                f,
                "the text leaves the grammar after {legal_prefix} bytes, where `{}` would be legal",
                legal(legal_bytes)
            ),
            Self::Finished => {
                f.write_str("the sequence has ended: nothing may follow its end token")
            }
            Self::RollbackTooFar { asked, available } => {
                write!(f, "cannot roll back {asked} steps of {available}")
            }
            Self::InvalidLogits(error) => write!(f, "invalid logits: {error}"),
            Self::InvalidPolicy(error) => write!(f, "invalid policy: {error}"),
            Self::TokenBudget { left, needed: usize::MAX, .. } => {
                write!(f, "{left} tokens are left and no completion is known")
            }
            Self::TokenBudget { left, needed, exact } => {
                let known = if *exact { "" } else { " known" };
                write!(
                    f,
                    "{left} tokens are left and the shortest{known} completion takes {needed}"
                )
            }
            Self::BudgetExceeded(budget) => budget.fmt(f),
            Self::Grammar(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StepError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::BudgetExceeded(budget) => Some(budget),
            Self::Grammar(error) | Self::InvalidPolicy(error) => Some(error),
            Self::InvalidLogits(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BudgetExceeded> for StepError {
    fn from(budget: BudgetExceeded) -> Self {
        Self::BudgetExceeded(budget)
    }
}

impl From<LogitsError> for StepError {
    fn from(error: LogitsError) -> Self {
        Self::InvalidLogits(error)
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        match error.kind() {
            crate::ErrorKind::BudgetExceeded(budget) => Self::BudgetExceeded(*budget),
            _ => Self::Grammar(error),
        }
    }
}

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
