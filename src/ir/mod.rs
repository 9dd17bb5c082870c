//! The grammar representation between the front ends and the automaton: hash-consed expressions
//! over bytes and calls of rules. Nothing here knows JSON Schema, GBNF, a token or a state.

mod arena;

pub mod chars;
mod grammar;
pub(crate) mod progression;
mod snapshot;

pub use crate::byteset::ByteSet;
pub use arena::{Arena, Expr, Facts, TERMINATORS, UNBOUNDED};
pub use grammar::{Departure, Expander, Grammar, Liveness, Part, Parts, Rule, Scope};
pub use progression::Progression;
pub use snapshot::GrammarSnapshot;
