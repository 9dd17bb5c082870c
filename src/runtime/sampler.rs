//! The sampler of one sequence: matcher, policy and history in, logits to legal tokens. Wrap it
//! around a generation loop, or let [`ConstrainedSampler::generate`] be the loop.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::ids::TokenId;
use crate::mask::TokenMask;
use crate::runtime::draw::{self, Choice, DrawError, Reason, Scratch, Step};
use crate::runtime::history::History;
use crate::runtime::model::Model;
use crate::runtime::policy::Policy;
use crate::runtime::random::uniform;
use crate::runtime::spell::{fewest_tokens, spells_every_byte};
use crate::step_error::StepError;
use crate::token::{Matcher, TokenAutomaton};

/// Chooses the tokens of one sequence so that the output matches the grammar.
///
/// It is cheap to clone, and a clone goes on as the original would. The random number of a step
/// depends on the seed and on the number of tokens before it alone, so a sequence that is rolled back
/// and fed the same logits draws the same tokens again; [`ConstrainedSampler::reseed`] draws others.
///
/// With [`Policy::max_tokens`] the output is complete within that many tokens: a token that would
/// leave too few for the rest is not taken, and the shortest known way out is.
///
/// ```
/// use std::sync::Arc;
/// use schemac::ir::Grammar;
/// use schemac::runtime::{ConstrainedSampler, Policy};
/// use schemac::token::TokenAutomaton;
/// use schemac::vocab::Token;
/// use schemac::{Limits, TokenId, Vocabulary};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut tokens: Vec<_> = (0..=255).map(|byte| Token::Text([byte].into())).collect();
/// tokens.push(Token::Special("<end>".into()));
/// let vocabulary = Arc::new(Vocabulary::new(tokens, [TokenId::new(256)])?);
/// let mut grammar = Grammar::new(1_000);
/// grammar.start = grammar.arena.literals(["yes", "no"]);
/// let automaton = Arc::new(TokenAutomaton::new(grammar, vocabulary, Limits::default())?);
///
/// let mut sampler = ConstrainedSampler::new(automaton, Policy::greedy())?;
/// while !sampler.is_finished() {
///     let logits = vec![0.0; 257]; // of your model, for sampler.tokens()
///     sampler.next_token(&logits)?;
/// }
/// assert_eq!(sampler.text(), "no");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ConstrainedSampler {
    matcher: Matcher,
    policy: Arc<Policy>,
    history: History,
    /// Tokens that lead from here to the end, if they are known.
    way_out: Option<VecDeque<TokenId>>,
    /// Whether n bytes are at most n tokens.
    spells_every_byte: bool,
    scratch: Scratch,
}

/// How far from its end a budget is looked at closely: where fewer tokens are left than this many
/// times the bytes that are needed, plus [`NEAR_TOKENS`]. The number of bytes is a lower bound that
/// is exact unless a text must differ from earlier ones, which rarely doubles it.
const NEAR_FACTOR: u64 = 8;

/// See [`NEAR_FACTOR`].
const NEAR_TOKENS: u64 = 256;

impl ConstrainedSampler {
    /// Returns the sampler at the start of the grammar.
    ///
    /// # Errors
    ///
    /// [`StepError::InvalidPolicy`] if an option is out of its range; [`StepError::TokenBudget`] if
    /// no output that is known fits into [`Policy::max_tokens`]; with a budget also
    /// [`StepError::BudgetExceeded`].
    pub fn new(automaton: Arc<TokenAutomaton>, policy: Policy) -> Result<Self, StepError> {
        let vocabulary = automaton.vocabulary().clone();
        policy.check(vocabulary.len()).map_err(StepError::InvalidPolicy)?;
        let budgeted = policy.max_tokens.is_some();
        let mut sampler = Self {
            history: new_history(&policy, &[]),
            matcher: Matcher::new(automaton),
            policy: Arc::new(policy),
            way_out: None,
            spells_every_byte: budgeted && spells_every_byte(&vocabulary),
            scratch: Scratch::default(),
        };
        if let Some(left) = sampler.tokens_left() {
            sampler.way_out(left)?;
        }
        Ok(sampler)
    }

    /// Returns the same sampler for a sequence that follows `prompt`, whose tokens the penalties then
    /// look at as if they had been generated.
    #[must_use]
    pub fn with_penalised_prompt(mut self, prompt: &[TokenId]) -> Self {
        let generated = self.history.generated().to_vec();
        self.history = new_history(&self.policy, prompt);
        generated.into_iter().for_each(|token| self.history.push(token));
        self
    }

    /// Chooses the next token and accepts it. The row is not changed. A failure leaves the sequence
    /// as it was.
    ///
    /// # Errors
    ///
    /// [`StepError::Finished`] after an end token; [`StepError::InvalidLogits`] if the row is
    /// narrower than the vocabulary, or the logit of a legal token is NaN or +∞;
    /// [`StepError::NoFiniteLegalLogit`]; [`StepError::AllTokensIllegal`] if the vocabulary cannot
    /// spell what the grammar needs; [`StepError::TokenBudget`] if tokens that were accepted by hand
    /// left too little; [`StepError::BudgetExceeded`].
    pub fn next_token(&mut self, logits: &[f32]) -> Result<TokenId, StepError> {
        let choice = self.sample(logits)?;
        self.accept(choice.token)?;
        Ok(choice.token)
    }

    /// Chooses the next token and does not accept it.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::next_token`].
    pub fn sample(&mut self, logits: &[f32]) -> Result<Choice, StepError> {
        let mask = self.matcher.mask()?;
        let automaton = self.matcher.automaton().clone();
        let step = Step {
            logits,
            mask: &mask,
            policy: &self.policy,
            history: &self.history,
            end_tokens: automaton.vocabulary().end_tokens(),
        };
        let number = self.history.generated().len();
        let choice = draw::draw(&step, &mut self.scratch, || uniform(self.policy.seed, number))
            .map_err(|error| self.step_error(error))?;
        match self.tokens_left() {
            Some(left) if !self.leaves_a_way_out(choice.token, left)? => {
                let token = self.way_out(left)?;
                Ok(Choice { token, log_probability: 0.0, reason: Reason::Budget, ..choice })
            }
            _ => Ok(choice),
        }
    }

    /// Accepts a token that was chosen elsewhere. A failure leaves the sequence as it was.
    ///
    /// # Errors
    ///
    /// [`StepError::TokenRejected`] if it is not legal, [`StepError::Finished`] after an end token,
    /// [`StepError::BudgetExceeded`].
    pub fn accept(&mut self, token: TokenId) -> Result<(), StepError> {
        self.matcher.accept(token)?;
        self.history.push(token);
        // The way out stays one for as long as it is followed.
        if self.way_out.as_mut().is_some_and(|way| way.pop_front() != Some(token)) {
            self.way_out = None;
        }
        Ok(())
    }

    /// Returns the tokens that are legal next.
    ///
    /// # Errors
    ///
    /// As [`Matcher::mask`].
    pub fn mask(&self) -> Result<TokenMask, StepError> {
        self.matcher.mask()
    }

    /// Sets the logits of all illegal tokens to −∞, in place, for those who sample elsewhere.
    ///
    /// # Errors
    ///
    /// As [`Matcher::mask`], and [`StepError::InvalidLogits`] if the row is narrower than the
    /// vocabulary.
    pub fn apply_mask(&self, logits: &mut [f32]) -> Result<(), StepError> {
        Ok(self.mask()?.apply(logits)?)
    }

    /// Generates until the output is complete.
    ///
    /// # Errors
    ///
    /// [`GenerateError::Model`] what the model says; [`GenerateError::Step`] as
    /// [`ConstrainedSampler::next_token`]. The tokens before stay.
    pub fn generate<M: Model>(&mut self, model: &mut M) -> Result<(), GenerateError<M::Error>> {
        let mut row = Vec::new();
        while !self.is_finished() {
            model.logits(self.tokens(), &mut row).map_err(GenerateError::Model)?;
            self.next_token(&row).map_err(GenerateError::Step)?;
        }
        Ok(())
    }

    /// Returns whether an end token was accepted: nothing may follow.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.matcher.is_finished()
    }

    /// Returns whether the output so far is complete, so that it may end here.
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`].
    pub fn is_accepting(&self) -> Result<bool, StepError> {
        self.matcher.is_accepting()
    }

    /// Goes back by `tokens` tokens; penalties, budget and random numbers go back with them.
    ///
    /// # Errors
    ///
    /// [`StepError::RollbackTooFar`], as [`Matcher::rollback`].
    pub fn rollback(&mut self, tokens: usize) -> Result<(), StepError> {
        self.matcher.rollback(tokens)?;
        self.history.truncate(tokens);
        self.way_out = None;
        Ok(())
    }

    /// Goes back to the start of the grammar. Seed and penalised prompt stay.
    pub fn reset(&mut self) {
        self.matcher.reset();
        self.history.truncate(usize::MAX);
        self.way_out = None;
    }

    /// Draws with the random numbers of another seed from here on.
    pub fn reseed(&mut self, seed: u64) {
        Arc::make_mut(&mut self.policy).seed = seed;
    }

    /// Returns a sampler that stands here and cannot be rolled back past here: a clone that does not
    /// copy what rolling back needs.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            matcher: self.matcher.fork(),
            policy: self.policy.clone(),
            history: self.history.clone(),
            way_out: self.way_out.clone(),
            spells_every_byte: self.spells_every_byte,
            scratch: Scratch::default(),
        }
    }

    /// Returns the tokens so far, an end token included.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        self.history.generated()
    }

    /// Returns the output so far in bytes, which can end inside a character.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.matcher.automaton().vocabulary().decode(self.tokens())
    }

    /// Returns the output so far; bytes of a character that is not yet complete show as U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Returns the policy in force.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the matcher, which knows more about where the sequence stands.
    #[must_use]
    pub const fn matcher(&self) -> &Matcher {
        &self.matcher
    }

    /// Returns the tokens that may still come, the end token counted; `None` without a budget.
    #[must_use]
    pub fn tokens_left(&self) -> Option<usize> {
        let max = self.policy.max_tokens?.get();
        Some(max.saturating_sub(self.history.generated().len()))
    }

    /// Returns whether the output can be completed with `left - 1` tokens after `token`.
    fn leaves_a_way_out(&mut self, token: TokenId, left: usize) -> Result<bool, StepError> {
        let Some(left) = left.checked_sub(1) else { return Ok(false) };
        if self.matcher.automaton().vocabulary().is_end(token) {
            return Ok(true);
        }
        if self.way_out.as_ref().is_some_and(|way| way.front() == Some(&token) && way.len() > left)
        {
            return Ok(true);
        }
        let mut after = self.matcher.fork();
        after.accept(token)?;
        if self.spells_every_byte {
            let near = after.bytes_to_complete()?.saturating_mul(NEAR_FACTOR);
            if near.saturating_add(NEAR_TOKENS) <= u64::try_from(left).unwrap_or(u64::MAX) {
                return Ok(true);
            }
        }
        Ok(shortest_way(&after)?.is_some_and(|way| way.len() <= left))
    }

    /// Returns the next token of the shortest known way to a complete output, which takes at most
    /// `left` tokens.
    fn way_out(&mut self, left: usize) -> Result<TokenId, StepError> {
        let way = match self.way_out.take() {
            Some(way) => Some(way),
            None => shortest_way(&self.matcher)?,
        };
        let needed = way.as_ref().map_or(usize::MAX, VecDeque::len);
        self.way_out = way;
        match self.way_out.as_ref().and_then(VecDeque::front) {
            Some(&token) if needed <= left => Ok(token),
            _ => Err(StepError::TokenBudget { left, needed }),
        }
    }

    fn step_error(&self, error: DrawError) -> StepError {
        let step = self.history.generated().len();
        match error {
            DrawError::Logits(error) => StepError::InvalidLogits(error),
            DrawError::NoFiniteLegalLogit => StepError::NoFiniteLegalLogit { step },
            DrawError::NoLegalToken => StepError::AllTokensIllegal {
                step,
                state: self.matcher.describe(),
                legal_bytes: self.matcher.legal_bytes().unwrap_or_default(),
            },
        }
    }
}

fn new_history(policy: &Policy, prompt: &[TokenId]) -> History {
    if policy.has_penalties() {
        History::counting(prompt, policy.penalty_window)
    } else {
        History::new()
    }
}

/// Returns the fewest tokens that spell a shortest completion, and an end token; `None` if no tokens
/// spell it.
fn shortest_way(matcher: &Matcher) -> Result<Option<VecDeque<TokenId>>, StepError> {
    let vocabulary = matcher.automaton().vocabulary();
    let text = matcher.shortest_completion()?;
    let end = vocabulary.end_tokens().first().copied();
    Ok(fewest_tokens(vocabulary, &text).map(|tokens| tokens.into_iter().chain(end).collect()))
}

/// Generating failed.
#[derive(Clone, Debug)]
pub enum GenerateError<E> {
    /// The model gave no logits.
    Model(E),
    /// The sampler gave no token.
    Step(StepError),
}

impl<E: std::fmt::Display> std::fmt::Display for GenerateError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Model(error) => write!(f, "the model failed: {error}"),
            Self::Step(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for GenerateError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Model(error) => Some(error),
            Self::Step(error) => Some(error),
        }
    }
}
