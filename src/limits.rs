//! Every numeric bound of the crate: its unit, its default, and why it has that value.
//!
//! Limits are deterministic: they count work (expressions, states, steps, bytes), never time, so
//! the same input gives the same answer on every machine.

use crate::error::Error;

/// Bounds on the work and memory that one grammar may take.
///
/// All of them are checked inside the work that they bound. Exceeding one is
/// [`crate::ErrorKind::BudgetExceeded`] when compiling and [`crate::StepError::BudgetExceeded`]
/// when generating; never a panic, a hang or a wrong mask.
///
/// ```
/// let limits = schemac::Limits::default().max_states(200_000);
/// assert_eq!(limits.states, 200_000);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a grammar source text. Default 16 MiB; the largest public schema seen has 1.4 MB.
    pub source_bytes: usize,
    /// Bytes of one regular expression. Default 1 MiB; the longest of a public schema has 12 KB, and a
    /// syntax tree takes some hundred bytes for each byte.
    pub pattern_bytes: usize,
    /// Nesting depth of a source text (arrays, objects, groups). Default 100,000. Nothing recurses
    /// on input, so this only bounds the time that pathological depth can take.
    pub source_depth: usize,
    /// Hash-consed expressions, front end and automaton together. Default 4,000,000 (about
    /// 300 MB when all are used); ordinary schemas stay under 20,000.
    pub expressions: usize,
    /// Automaton states. Default 1,000,000; ordinary schemas stay under 5,000.
    pub states: usize,
    /// Elementary steps (derivative parts, expansions) when compiling. Default 50,000,000, a few
    /// seconds.
    pub compile_work: u64,
    /// Elementary steps of one mask or one accepted token. Default 50,000,000.
    pub step_work: u64,
    /// Elementary steps of one search for the fewest tokens that complete an output. Default
    /// 2,000,000, with which it finishes for all schemas of this repository. A search that ends before
    /// it knows leaves an upper bound. It is made when that is asked for, or when a budget is less than
    /// is known to do. At a step of a sequence a search has a 200th of it, and none is made where the
    /// first, at the start, did not finish.
    pub closing_work: u64,
    /// Bytes of memoised masks of one compiled grammar, and of its token-level automaton. Default
    /// 256 MiB. Past it, masks are computed and not kept.
    pub mask_bytes: usize,
    /// States of the token-level automaton, which are places where sequences have been. Default 65,536;
    /// each takes about 300 bytes of [`Limits::mask_bytes`]. Past it, tokens are accepted byte by byte.
    pub token_states: usize,
    /// Steps that a sequence can be rolled back. Default 4,096; each kept step takes about 50 bytes
    /// and may keep a stack alive.
    pub rollback: usize,
    /// Decimal digits of a number in a schema, written without an exponent. Default 1,000; the
    /// greatest and the least double-precision numbers have 309 and 324.
    pub number_digits: usize,
    /// Copies of a repetition body that a front end may unroll when it cannot count. Default
    /// 10,000.
    pub unroll: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes: 16 << 20,
            pattern_bytes: 1 << 20,
            source_depth: 100_000,
            expressions: 4_000_000,
            states: 1_000_000,
            compile_work: 50_000_000,
            step_work: 50_000_000,
            closing_work: 2_000_000,
            mask_bytes: 256 << 20,
            token_states: 1 << 16,
            rollback: 4_096,
            number_digits: 1_000,
            unroll: 10_000,
        }
    }
}

impl Limits {
    /// Sets [`Limits::source_bytes`].
    #[must_use]
    pub const fn max_source_bytes(mut self, bytes: usize) -> Self {
        self.source_bytes = bytes;
        self
    }

    /// Sets [`Limits::pattern_bytes`].
    #[must_use]
    pub const fn max_pattern_bytes(mut self, bytes: usize) -> Self {
        self.pattern_bytes = bytes;
        self
    }

    /// Sets [`Limits::expressions`].
    #[must_use]
    pub const fn max_expressions(mut self, count: usize) -> Self {
        self.expressions = count;
        self
    }

    /// Sets [`Limits::states`].
    #[must_use]
    pub const fn max_states(mut self, count: usize) -> Self {
        self.states = count;
        self
    }

    /// Sets [`Limits::compile_work`].
    #[must_use]
    pub const fn max_compile_work(mut self, steps: u64) -> Self {
        self.compile_work = steps;
        self
    }

    /// Sets [`Limits::step_work`].
    #[must_use]
    pub const fn max_step_work(mut self, steps: u64) -> Self {
        self.step_work = steps;
        self
    }

    /// Sets [`Limits::closing_work`].
    #[must_use]
    pub const fn max_closing_work(mut self, steps: u64) -> Self {
        self.closing_work = steps;
        self
    }

    /// Sets [`Limits::token_states`].
    #[must_use]
    pub const fn max_token_states(mut self, count: usize) -> Self {
        self.token_states = count;
        self
    }

    /// Sets [`Limits::rollback`].
    #[must_use]
    pub const fn max_rollback(mut self, steps: usize) -> Self {
        self.rollback = steps;
        self
    }

    /// Sets [`Limits::number_digits`].
    #[must_use]
    pub const fn max_number_digits(mut self, digits: usize) -> Self {
        self.number_digits = digits;
        self
    }

    /// Sets [`Limits::mask_bytes`].
    #[must_use]
    pub const fn max_mask_bytes(mut self, bytes: usize) -> Self {
        self.mask_bytes = bytes;
        self
    }
}

/// A counter of work that fails when it is spent.
///
/// The work it bounds calls [`Budget::spend`] with the number of elementary steps just done.
#[derive(Clone, Debug)]
pub struct Budget {
    limit: &'static str,
    total: u64,
    left: u64,
}

impl Budget {
    /// Returns a budget of `steps`; `limit` names the field of [`Limits`] to raise.
    #[must_use]
    pub const fn new(limit: &'static str, steps: u64) -> Self {
        Self { limit, total: steps, left: steps }
    }

    /// Takes `steps` from the budget.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] when fewer are left; the budget is then empty.
    pub fn spend(&mut self, steps: u64) -> Result<(), BudgetExceeded> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(BudgetExceeded { limit: self.limit, value: self.total })
            }
        }
    }

    /// Returns the steps that have been spent.
    #[must_use]
    pub const fn spent(&self) -> u64 {
        self.total - self.left
    }
}

/// A bound of [`Limits`] was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BudgetExceeded {
    /// The field of [`Limits`] that bounds this work.
    #[serde(skip, default = "unknown_limit")]
    pub limit: &'static str,
    /// Its value.
    pub value: u64,
}

const fn unknown_limit() -> &'static str {
    "unknown"
}

impl BudgetExceeded {
    /// Returns the error for the bound `limit` of value `value`.
    #[must_use]
    pub const fn new(limit: &'static str, value: u64) -> Self {
        Self { limit, value }
    }
}

impl std::fmt::Display for BudgetExceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "budget exceeded: `Limits::{}` is {}", self.limit, self.value)
    }
}

impl std::error::Error for BudgetExceeded {}

impl From<BudgetExceeded> for Error {
    fn from(budget: BudgetExceeded) -> Self {
        Self::budget(budget)
    }
}
