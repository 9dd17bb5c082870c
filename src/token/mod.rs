//! The token automaton: byte states and a vocabulary in, masks of legal tokens out. The sampler uses
//! it. No grammar text and no logits are known here.

mod closing;
mod graph;
mod local;
mod matcher;
mod memory;
mod places;
mod precompute;
mod run;
mod snapshot;
mod spell;
mod tables;
mod total;
mod walk;

pub use closing::Completion;
pub(crate) use closing::UNKNOWN;
pub use matcher::Matcher;
pub use precompute::{PrecomputeOptions, PrecomputeReport};
pub use snapshot::TokenAutomatonSnapshot;
pub use spell::fewest_tokens;
pub use tables::{Stats, TokenAutomaton};
