//! The token automaton: byte states and a vocabulary to masks.
