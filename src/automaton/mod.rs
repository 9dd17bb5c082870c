//! The byte automaton: states grown lazily from a grammar.
