//! The engines, each in the set-up that its own project recommends.

pub(crate) mod llguidance;
pub(crate) mod outlines;
pub(crate) mod schemac;
