//! Front ends: the text of a JSON Schema, regex or GBNF grammar in, [`crate::ir::Grammar`] out. No
//! vocabulary, state or mask is known here.

pub mod ecma;
pub mod gbnf;
pub mod json_schema;
pub mod layout;
pub mod openai;
mod pattern;
pub mod regex;
