//! The token automaton: byte states and a vocabulary in, masks of legal tokens out. The sampler uses
//! it. No grammar text and no logits are known here.

mod local;
mod matcher;
mod precompute;
mod run;
mod snapshot;
mod tables;
mod total;
mod walk;

pub use matcher::Matcher;
pub use precompute::{PrecomputeOptions, PrecomputeReport};
pub use snapshot::TokenAutomatonSnapshot;
pub use tables::{Stats, TokenAutomaton};
