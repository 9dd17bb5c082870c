//! The byte automaton: states grown lazily from a grammar, with rows, frames and liveness. The token
//! automaton walks it. No token is known here.

mod clamp;
mod completion;
mod linear;
mod origin;
mod prove;
mod snapshot;
mod solve;
mod states;
mod threads;

pub(crate) use completion::sum_below;
pub use completion::{needed, shortest_completion};
pub use linear::Action;
pub(crate) use origin::rule_after;
pub use prove::Proof;
pub use snapshot::AutomatonSnapshot;
pub use states::{Automaton, Move, Row};
pub use threads::{Configuration, Frame, Register, Stack, Thread, is_accepting, legal_bytes, step};
pub(crate) use threads::{follow_single, structure};
