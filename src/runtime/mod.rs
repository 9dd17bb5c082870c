//! Decoding under a grammar: logits in, tokens out. A policy, the draws, and the sampler of one
//! sequence, which puts a matcher under them. No grammar text is known here, and nothing is read or
//! written.

mod batch;
mod beam;
mod budget;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod budget_tests;
mod candidates;
mod canonical;
mod draw;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod draw_tests;
mod filter;
mod foreign;
mod history;
mod json_stream;
mod jump;
mod matrix;
mod model;
mod order;
mod phases;
mod phrases;
mod policy;
mod preset;
mod random;
mod sampler;
#[cfg(test)]
mod sampler_tests;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod search_tests;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod sequence_tests;
mod speculate;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod speculate_tests;
mod state;
mod view;
#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "logits are rounded")]
mod view_tests;
mod watch;
mod why;

pub use self::batch::generate_each;
pub use self::beam::{Beam, Hypothesis};
pub use self::candidates::{
    Candidate, best, candidates, deduplicate, minimum_bayes_risk, most_common,
};
pub use self::canonical::canonical_json;
pub use self::draw::{Choice, DrawError, Reason, Scratch, Step, distribution, draw, log_softmax};
pub use self::foreign::{Dialect, Imported};
pub use self::history::History;
pub use self::json_stream::{JsonEvent, JsonKind, JsonStream, NotJson};
pub use self::jump::{Healed, heal};
pub use self::matrix::{MaskMatrix, Masked, RowState};
pub use self::model::{Model, RandomModel};
pub use self::order::{Order, Stage};
pub use self::phases::{Phase, PhasedSampler};
pub use self::policy::Policy;
pub use self::preset::Preset;
pub use self::random::uniform;
pub use self::sampler::{ConstrainedSampler, GenerateError, WrongRows};
pub use self::speculate::{Round, SpeculateError, speculate};
pub use self::state::SamplerState;
pub use self::view::{StageDistribution, StageView, Standing, StepView, Summary, stages, view};
pub use self::why::Verdict;
