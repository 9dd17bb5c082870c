//! The matcher: where one sequence stands under a grammar. Tokens in, masks out.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::automaton::{self, Configuration, Thread};
use crate::ids::TokenId;
use crate::mask::TokenMask;
use crate::step_error::StepError;
use crate::token::graph::Position;
use crate::token::{Completion, TokenAutomaton};

/// The state of one sequence. Cloning it costs a few reference counts and its rollback history.
///
/// ```
/// use std::sync::Arc;
/// use schemac::ir::Grammar;
/// use schemac::token::{Matcher, TokenAutomaton};
/// use schemac::vocab::Token;
/// use schemac::{Limits, TokenId, Vocabulary};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut tokens: Vec<_> = (0..=255).map(|byte| Token::Text([byte].into())).collect();
/// tokens.push(Token::Special("<end>".into()));
/// let vocabulary = Vocabulary::new(tokens, [TokenId::new(256)])?;
/// let mut grammar = Grammar::new(1_000);
/// grammar.start = grammar.arena.literals(["yes", "yes!", "no"]);
/// let automaton = TokenAutomaton::new(grammar, Arc::new(vocabulary), Limits::default())?;
/// let mut matcher = Matcher::new(Arc::new(automaton));
/// matcher.accept_bytes(b"yes")?;
/// assert!(matcher.is_accepting()?);
/// assert_eq!(matcher.legal_bytes()?, b"!");
/// assert!(matcher.mask()?.contains(TokenId::new(256)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Matcher {
    automaton: Arc<TokenAutomaton>,
    position: Position,
    finished: bool,
    steps: usize,
    /// The positions before the last steps, oldest first.
    history: VecDeque<(Position, bool)>,
}

impl Matcher {
    /// Returns a matcher at the start of the grammar.
    #[must_use]
    pub const fn new(automaton: Arc<TokenAutomaton>) -> Self {
        Self {
            automaton,
            position: Position::START,
            finished: false,
            steps: 0,
            history: VecDeque::new(),
        }
    }

    /// Returns the compiled grammar.
    #[must_use]
    pub const fn automaton(&self) -> &Arc<TokenAutomaton> {
        &self.automaton
    }

    /// Returns the tokens that are legal next; end tokens are among them exactly if the output so far
    /// is complete. The mask is never empty.
    ///
    /// Costs a lookup once the mask is known, of which it is a reference, and a walk over a part of the
    /// vocabulary the first time.
    ///
    /// # Errors
    ///
    /// [`StepError::Finished`] after an end token, [`StepError::AllTokensIllegal`] if the vocabulary
    /// cannot spell what the grammar needs, [`StepError::BudgetExceeded`].
    pub fn mask(&self) -> Result<Cow<'_, TokenMask>, StepError> {
        if self.finished {
            return Err(StepError::Finished);
        }
        let mut budget = self.automaton.automaton().step_budget();
        let mask = self.automaton.mask_at(&self.position, &mut budget)?;
        if mask.is_empty() {
            return Err(StepError::AllTokensIllegal {
                step: self.steps,
                state: self.describe(),
                legal_bytes: self.legal_bytes()?,
            });
        }
        Ok(mask)
    }

    /// Accepts one token. A failure leaves the matcher as it was.
    ///
    /// # Errors
    ///
    /// [`StepError::TokenRejected`] if the token is not legal, [`StepError::Finished`] after an end
    /// token, [`StepError::BudgetExceeded`].
    pub fn accept(&mut self, token: TokenId) -> Result<(), StepError> {
        if self.finished {
            return Err(StepError::Finished);
        }
        let automaton = &self.automaton;
        if let Some(next) = automaton.known(&self.position, token) {
            self.advance(next);
            return Ok(());
        }
        let rejected =
            |legal_prefix| StepError::TokenRejected { step: self.steps, token, legal_prefix };
        if automaton.vocabulary().is_end(token) {
            if !self.is_accepting()? {
                return Err(rejected(0));
            }
            self.advance(self.position.clone());
            self.finished = true;
            return Ok(());
        }
        if automaton.vocabulary().bytes(token).is_empty() {
            return Err(rejected(0));
        }
        let mut budget = automaton.automaton().step_budget();
        match automaton.next(&self.position, token, &mut budget)? {
            Ok(next) => {
                self.advance(next);
                Ok(())
            }
            Err(legal_prefix) => Err(rejected(legal_prefix)),
        }
    }

    /// Accepts a text, as one step. A failure leaves the matcher as it was.
    ///
    /// # Errors
    ///
    /// [`StepError::BytesRejected`] if the text is not legal, [`StepError::Finished`] after an end
    /// token, [`StepError::BudgetExceeded`].
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<(), StepError> {
        if self.finished {
            return Err(StepError::Finished);
        }
        let mut budget = self.automaton.automaton().step_budget();
        match self.automaton.next_by_bytes(&self.position, bytes, &mut budget)? {
            Ok(next) => {
                self.advance(next);
                Ok(())
            }
            Err(legal_prefix) => {
                let before =
                    self.automaton.after(self.threads(), &bytes[..legal_prefix], &mut budget)?;
                let legal = match before {
                    Ok(threads) => {
                        automaton::legal_bytes(self.automaton.automaton(), &threads, &mut budget)?
                    }
                    Err(_) => crate::ir::ByteSet::EMPTY,
                };
                Err(StepError::BytesRejected { legal_prefix, legal_bytes: legal.iter().collect() })
            }
        }
    }

    fn advance(&mut self, next: Position) {
        let before = std::mem::replace(&mut self.position, next);
        if self.history.len() == self.automaton.automaton().limits().rollback {
            self.history.pop_front();
        }
        self.history.push_back((before, self.finished));
        self.steps += 1;
    }

    /// Returns whether the output so far is complete.
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`].
    pub fn is_accepting(&self) -> Result<bool, StepError> {
        let mut budget = self.automaton.automaton().step_budget();
        Ok(automaton::is_accepting(self.automaton.automaton(), self.threads(), &mut budget)?)
    }

    /// Returns whether an end token was accepted.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns the bytes that are legal next, ascending, whether or not a token can spell them.
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`].
    pub fn legal_bytes(&self) -> Result<Vec<u8>, StepError> {
        if self.finished {
            return Ok(Vec::new());
        }
        let mut budget = self.automaton.automaton().step_budget();
        let bytes =
            automaton::legal_bytes(self.automaton.automaton(), self.threads(), &mut budget)?;
        Ok(bytes.iter().collect())
    }

    /// Returns the bytes that must come next, at most `most`: as long as there is one legal byte and
    /// the output is not complete.
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`].
    pub fn forced_bytes(&self, most: usize) -> Result<Vec<u8>, StepError> {
        let mut forced = Vec::new();
        let mut threads = self.threads().clone();
        let automaton = self.automaton.automaton();
        let mut budget = automaton.step_budget();
        while !self.finished && forced.len() < most {
            if automaton::is_accepting(automaton, &threads, &mut budget)? {
                break;
            }
            let legal = automaton::legal_bytes(automaton, &threads, &mut budget)?;
            let (Some(byte), 1) = (legal.first(), legal.len()) else { break };
            threads = automaton::step(automaton, &threads, byte, &mut budget)?;
            forced.push(byte);
        }
        Ok(forced)
    }

    /// Returns a text of the least number of bytes that completes the output; empty if it is complete.
    /// Where texts must differ from earlier ones, it may be longer than the least.
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`]; [`StepError::Grammar`] of kind `unsatisfiable` if nothing completes the
    /// output, as may be where texts must differ.
    pub fn shortest_completion(&self) -> Result<Vec<u8>, StepError> {
        if self.finished {
            return Ok(Vec::new());
        }
        let mut budget = self.automaton.automaton().step_budget();
        Ok(automaton::shortest_completion(self.automaton.automaton(), self.threads(), &mut budget)?)
    }

    /// Returns a lower bound of the number of bytes that complete the output, exact unless a text
    /// that must be fresh stands in the way. Cheaper than [`Matcher::shortest_completion`].
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`].
    pub fn bytes_to_complete(&self) -> Result<u64, StepError> {
        if self.finished {
            return Ok(0);
        }
        let mut budget = self.automaton.automaton().step_budget();
        Ok(automaton::needed(self.automaton.automaton(), self.threads(), &mut budget)?)
    }

    /// Returns the fewest tokens that complete the output, an end token included, or `None` if none are
    /// known: the vocabulary cannot spell a shortest text, and the search, which looks at up to `most`
    /// tokens, found no other.
    ///
    /// [`Completion::exact`] tells whether the search finished within [`crate::Limits::closing_work`].
    /// If it did not, the tokens spell a text of the fewest bytes.
    ///
    /// # Errors
    ///
    /// [`StepError::Finished`] after an end token, [`StepError::BudgetExceeded`].
    pub fn completion(&self, most: usize) -> Result<Option<Completion>, StepError> {
        if self.finished {
            return Err(StepError::Finished);
        }
        let work = self.automaton.automaton().limits().closing_work;
        self.automaton.completion(self.threads(), most, work)
    }

    /// Returns the name of the rule that goes on after an output, if it is known
    /// ([`automaton::rule_after`]).
    pub(crate) fn rule_after(&self, output: &[u8]) -> Result<Option<Box<str>>, StepError> {
        let automaton = self.automaton.automaton();
        Ok(automaton::rule_after(automaton, output, &mut automaton.step_budget())?)
    }

    /// Returns a number of tokens, without an end token, that surely complete the output, or
    /// [`crate::token::UNKNOWN`]. A few look-ups.
    pub(crate) fn enough_tokens(&self) -> Result<u64, StepError> {
        let mut budget = self.automaton.automaton().step_budget();
        Ok(self.automaton.enough_tokens(self.threads(), &mut budget)?)
    }

    /// Returns where the sequence stands.
    pub(crate) fn threads(&self) -> &Configuration {
        self.automaton.configuration(&self.position)
    }

    /// Accepts the first tokens of `tokens` that are legal one after another, and returns how many: a
    /// draft.
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`]; the tokens before stay accepted.
    pub fn accept_prefix(&mut self, tokens: &[TokenId]) -> Result<usize, StepError> {
        for (count, &token) in tokens.iter().enumerate() {
            match self.accept(token) {
                Ok(()) => {}
                Err(StepError::TokenRejected { .. } | StepError::Finished) => return Ok(count),
                Err(error) => return Err(error),
            }
        }
        Ok(tokens.len())
    }

    /// Returns the masks after each node of a tree of drafted tokens. A node is a token and the number
    /// of the node that it follows, which comes before it, or `None` if it follows what is accepted.
    ///
    /// The result of a node is an error if its path is not legal ([`StepError::TokenRejected`]), has
    /// ended ([`StepError::Finished`]) or has no mask ([`Matcher::mask`]); below such a node it is the
    /// same. Nodes share the stacks of those they follow.
    ///
    /// # Panics
    ///
    /// If a node follows one that does not come before it.
    #[must_use]
    pub fn tree_masks(
        &self,
        nodes: &[(Option<usize>, TokenId)],
    ) -> Vec<Result<TokenMask, StepError>> {
        let mut places: Vec<Result<Self, StepError>> = Vec::with_capacity(nodes.len());
        for &(before, token) in nodes {
            let place = match before {
                None => Ok(self.fork()),
                Some(before) => places[before].as_ref().map(Self::fork).map_err(Clone::clone),
            };
            places.push(place.and_then(|mut place| place.accept(token).map(|()| place)));
        }
        let mask = |place: Self| place.mask().map(Cow::into_owned);
        places.into_iter().map(|place| place.and_then(mask)).collect()
    }

    /// Returns a matcher that stands here and cannot be rolled back past here. Costs a few reference
    /// counts: use it to look ahead.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            automaton: self.automaton.clone(),
            position: self.position.clone(),
            finished: self.finished,
            steps: self.steps,
            history: VecDeque::new(),
        }
    }

    /// Goes back to where the sequence stood `steps` steps ago. Costs no more than the history given
    /// up.
    ///
    /// # Errors
    ///
    /// [`StepError::RollbackTooFar`] past the start, or past [`crate::Limits::rollback`] steps.
    pub fn rollback(&mut self, steps: usize) -> Result<(), StepError> {
        if steps > self.history.len() {
            return Err(StepError::RollbackTooFar { asked: steps, available: self.history.len() });
        }
        for _ in 0..steps {
            if let Some((position, finished)) = self.history.pop_back() {
                self.position = position;
                self.finished = finished;
                self.steps -= 1;
            }
        }
        Ok(())
    }

    /// Goes back to the start of the grammar.
    pub fn reset(&mut self) {
        *self = Self::new(self.automaton.clone());
    }

    /// Returns the number of steps since the start.
    #[must_use]
    pub const fn steps(&self) -> usize {
        self.steps
    }

    /// Returns what the grammar is in the middle of, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        let frames = self.threads().iter().map(Thread::depth).max().unwrap_or(0);
        match self.threads().first() {
            Some(thread) => format!(
                "state {}, {} frames deep, {} threads",
                thread.state().get(),
                frames,
                self.threads().len()
            ),
            None => "no state".into(),
        }
    }
}
