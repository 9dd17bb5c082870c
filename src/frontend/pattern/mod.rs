//! Patterns with assertions to expressions: the part that the regex dialects share.
//!
//! In goes a [`Tree`] (sets of characters, concatenation, alternation, repetition, look-around); out
//! comes an [`crate::ids::ExprId`] whose language is exactly the texts that the pattern matches. A
//! sub-pattern without assertions is translated node by node. An assertion restricts what may stand
//! after it, so it is translated with the language of the rest of the text at hand
//! ([`mod@lower`]); what it may ask about the text before it is a finite *class*, and there is one rest
//! for each class. Unbounded loops around assertions, and look-behind longer than one character, go
//! through a small alternating automaton over characters ([`machine`]), whose equations are solved by
//! Arden's lemma ([`solve`]).
//!
//! Everything iterates; the nodes of a tree lie in post-order in one vector, so a subtree is a range.

mod classes;
mod lower;
mod machine;
mod plain;
mod program;
mod solve;
#[cfg(test)]
pub(crate) mod testing;
mod tree;

pub(crate) use lower::{Mode, lower};
pub(crate) use tree::{Around, Look, Node, NodeId, Side, Tree};
