//! Decoding under a grammar: logits in, tokens out. A policy, the draws, and the sampler of one
//! sequence, which puts a matcher under them. No grammar text is known here, and nothing is read or
//! written.

mod draw;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod draw_tests;
mod history;
mod model;
mod policy;
mod random;
mod sampler;
#[cfg(test)]
mod sampler_tests;
mod spell;

pub use self::draw::{Choice, DrawError, Reason, Scratch, Step, distribution, draw, log_softmax};
pub use self::history::History;
pub use self::model::{Model, RandomModel};
pub use self::policy::Policy;
pub use self::random::uniform;
pub use self::sampler::{ConstrainedSampler, GenerateError};
pub use self::spell::fewest_tokens;
