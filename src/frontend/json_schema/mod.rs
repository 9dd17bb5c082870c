//! JSON Schema to grammar.
pub mod format;
pub mod number;
