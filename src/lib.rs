//! Constrained structured output for language models.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod adapter;
pub mod artifact;
pub mod automaton;
mod byteset;
pub mod cache;
pub mod engine;
pub mod error;
pub mod frontend;
pub mod ids;
pub mod ir;
pub mod limits;
pub mod mask;
pub mod runtime;
mod step_error;
pub mod token;
pub mod vocab;

pub use byteset::ByteSet;
pub use engine::Compiler;
pub use error::{Error, ErrorKind, Location};
pub use ids::{ExprId, FamilyId, RuleId, StateId, TokenId};
pub use limits::{Budget, BudgetExceeded, Limits};
pub use mask::TokenMask;
pub use runtime::{ConstrainedSampler, Policy};
pub use step_error::{LogitsError, StepError};
pub use token::{Matcher, TokenAutomaton};
pub use vocab::Vocabulary;

/// The examples of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
