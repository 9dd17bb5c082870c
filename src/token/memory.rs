//! What an automaton takes of memory, from the numbers of its parts.

use crate::token::tables::Stats;

/// Bytes of a state with its row and moves, and of an expression with its places in the tables: estimates
/// from the sizes of their parts.
const STATE: usize = 600;
const EXPRESSION: usize = 250;

/// Bytes of an automaton without a state.
const BASE: usize = 16 * 1024;

impl Stats {
    /// Returns about how many bytes the automaton takes, without its vocabulary. Masks and tries are
    /// counted, states and expressions are taken at their usual size.
    #[must_use]
    pub const fn memory(&self) -> usize {
        BASE + self.states * STATE + self.expressions * EXPRESSION + self.mask_bytes
    }
}
