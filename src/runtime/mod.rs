//! Decoding under a grammar: policies, draws, and the sampler of one sequence.

mod draw;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod draw_tests;
mod history;
mod policy;
mod random;

pub use self::draw::{Choice, DrawError, Reason, Scratch, Step, distribution, draw, log_softmax};
pub use self::history::History;
pub use self::policy::Policy;
pub use self::random::uniform;
