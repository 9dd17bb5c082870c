//! JSON Schema to grammar.
pub mod number;
