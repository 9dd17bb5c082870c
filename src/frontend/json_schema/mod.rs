//! JSON Schema to grammar.
