//! GBNF to grammar.
