//! The sampler of one sequence: matcher, policy and history in, logits to legal tokens. Wrap it
//! around a generation loop, or let [`ConstrainedSampler::generate`] be the loop.

use std::borrow::Cow;
use std::sync::Arc;

use crate::ids::TokenId;
use crate::mask::TokenMask;
use crate::runtime::budget::WayOut;
use crate::runtime::draw::{self, Choice, DrawError, Reason, Scratch, Step};
use crate::runtime::history::History;
use crate::runtime::model::Model;
use crate::runtime::policy::Policy;
use crate::runtime::random::{Purpose, uniform, uniform_for};
use crate::runtime::view::{StageDistribution, StepView, stages, view};
use crate::runtime::watch::Watch;
use crate::step_error::StepError;
use crate::token::{Completion, Matcher, TokenAutomaton};

/// Chooses the tokens of one sequence so that the output matches the grammar.
///
/// It is cheap to clone, and a clone goes on as the original would. The random number of a step
/// depends on the seed and on the number of tokens before it alone, so a sequence that is rolled back
/// and fed the same logits draws the same tokens again; [`ConstrainedSampler::reseed`] draws others.
///
/// With [`Policy::max_tokens`] the output is complete within that many tokens: a token is taken only if
/// a completion is known that fits into what it leaves. What is known is exact where the grammar is
/// small ([`Matcher::completion`]).
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
    way_out: WayOut,
    watch: Watch,
    /// The number of the first random number.
    first_step: usize,
    scratch: Scratch,
}

/// How many tokens are drawn, one after another, in place of one that the budget cannot hold, before
/// the shortest known way out is taken. Each costs about as much as a step, and that many are needed only
/// where nearly all that the model wants is too long.
const REDRAWS: u64 = 16;

impl ConstrainedSampler {
    /// Returns the sampler at the start of the grammar.
    ///
    /// # Errors
    ///
    /// [`StepError::InvalidPolicy`] if an option is out of its range; [`StepError::TokenBudget`] if
    /// no output that is known fits into [`Policy::max_tokens`], with the least budget that would do,
    /// or an upper bound of it; with a budget also [`StepError::BudgetExceeded`].
    pub fn new(automaton: Arc<TokenAutomaton>, policy: Policy) -> Result<Self, StepError> {
        let vocabulary = automaton.vocabulary().clone();
        policy.check(vocabulary.len()).map_err(StepError::InvalidPolicy)?;
        let matcher = Matcher::new(automaton);
        let history = new_history(&policy, &[]);
        let most = policy.max_tokens;
        let way_out = match most {
            Some(most) => WayOut::within(&matcher, most.get())?,
            None => WayOut::default(),
        };
        let watch = Watch::new(&policy);
        let (policy, scratch) = (Arc::new(policy), Scratch::default());
        Ok(Self { matcher, policy, history, way_out, watch, first_step: 0, scratch })
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

    /// Returns the same sampler for a part of a sequence that follows `prompt` and `tokens`: penalties
    /// look at them, and the random numbers go on from the tokens.
    pub(super) fn following(self, prompt: &[TokenId], tokens: &[TokenId]) -> Self {
        self.with_penalised_prompt(&[prompt, tokens].concat()).at_step(tokens.len())
    }

    /// Returns the same sampler with random numbers from this one on.
    pub(super) const fn at_step(mut self, first: usize) -> Self {
        self.first_step = first;
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
    /// spell what the grammar needs; [`StepError::AllTokensBanned`] if phrases that are banned leave no
    /// token, and [`StepError::TokenBanned`] if they leave none that fits into the budget;
    /// [`StepError::TokenBudget`] if tokens that were accepted by hand left too little;
    /// [`StepError::BudgetExceeded`].
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
        let (seed, number) = (self.policy.seed, self.random_step());
        let draw = |step: &Step<'_>, scratch: &mut Scratch| {
            draw::draw(step, scratch, || uniform(seed, number))
        };
        let (mut choice, restricted) = self.decide(logits, draw)?;
        if restricted {
            choice.reason = Reason::Budget;
        }
        self.fit(logits, choice)
    }

    /// Returns `choice` if the output can be completed after it within the budget, which the mask
    /// nearly always tells; else another: one drawn from what is left without it, and so on (without
    /// filters it is then distributed as if the mask had none that do not fit); after [`REDRAWS`] of
    /// them the next of the shortest known way out.
    pub(super) fn fit(&mut self, logits: &[f32], mut choice: Choice) -> Result<Choice, StepError> {
        let Some(left) = self.tokens_left() else { return Ok(choice) };
        let mut mask = None;
        for time in 0..REDRAWS {
            if self.way_out.fits(&self.matcher, choice.token, left)? {
                return Ok(choice);
            }
            let rest = match mask.take() {
                Some(mask) => Cow::Owned(mask),
                None => {
                    let (legal, fitting) = self.masks()?;
                    fitting.map_or(legal, Cow::Owned)
                }
            };
            let rest: TokenMask = rest.without(&[choice.token]);
            if rest.is_empty() {
                break;
            }
            let (seed, number) = (self.policy.seed, self.random_step());
            let u = || uniform_for(Purpose::Redraw(time), seed, number);
            match draw::draw(&self.step(logits, &rest), &mut Scratch::default(), u) {
                Ok(next) => choice = Choice { reason: Reason::Budget, ..next },
                // Nothing that fits has a finite logit, and the output must be completed.
                Err(DrawError::NoFiniteLegalLogit) => break,
                Err(error) => return Err(self.step_error(error)),
            }
            mask = Some(rest);
        }
        let token = self.way_out.next(&self.matcher, left)?;
        self.check_ban(token)?;
        Ok(Choice { token, log_probability: 0.0, reason: Reason::Budget, ..choice })
    }

    fn step<'a>(&'a self, logits: &'a [f32], mask: &'a TokenMask) -> Step<'a> {
        Step {
            logits,
            mask,
            policy: &self.policy,
            history: &self.history,
            end_tokens: self.matcher.automaton().vocabulary().end_tokens(),
        }
    }

    /// Returns the distribution that [`ConstrainedSampler::sample`] draws from: the tokens that passed
    /// all stages with their probabilities, by descending logit, then ascending id.
    ///
    /// A token that turns out not to fit into the budget is replaced after it was drawn. Those of the
    /// mask fit, unless earlier texts matter, or all that fit have a logit of −∞: then the others are
    /// shown here, and the shortest way out is taken.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::next_token`].
    pub fn distribution(&mut self, logits: &[f32]) -> Result<Vec<(TokenId, f64)>, StepError> {
        Ok(self.decide(logits, draw::distribution)?.0)
    }

    /// Returns the same by ascending id, without a sort of what is not filtered.
    pub(super) fn probabilities(
        &mut self,
        logits: &[f32],
    ) -> Result<Vec<(TokenId, f64)>, StepError> {
        Ok(self.decide(logits, draw::probabilities)?.0)
    }

    /// Returns the distribution of the model and those after each stage ([`stages()`](stages)).
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::next_token`], for the logits of illegal tokens too.
    pub fn stages(&mut self, logits: &[f32]) -> Result<Vec<StageDistribution>, StepError> {
        Ok(self.decide(logits, |step, _| stages(step))?.0)
    }

    /// Returns what the stages did to a choice that is not yet accepted.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::stages`].
    pub fn view(&mut self, logits: &[f32], choice: &Choice) -> Result<StepView, StepError> {
        Ok(self.decide(logits, |step, _| view(step, choice))?.0)
    }

    /// Calls `visit` with the legal tokens that leave a way out, and their log-probabilities under the
    /// model, for as long as it returns true ([`draw::visit_ranked`]).
    pub(super) fn visit_fitting(
        &mut self,
        logits: &[f32],
        mut visit: impl FnMut(TokenId, f64) -> bool,
    ) -> Result<(), StepError> {
        let left = self.tokens_left();
        let (matcher, mut way_out) = (self.matcher.fork(), self.way_out.clone());
        let mut failed = None;
        self.decide(logits, |step, scratch| {
            draw::visit_ranked(step, scratch, |token, log_probability| {
                let fits = left.map_or(Ok(true), |left| way_out.fits(&matcher, token, left));
                match fits {
                    Ok(true) => visit(token, log_probability),
                    Ok(false) => true,
                    Err(error) => {
                        failed = Some(error);
                        false
                    }
                }
            })
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Decides among the legal tokens that leave enough of the budget, and tells whether these are known
    /// not to be all. Where all of them have a logit of −∞, decides among the others: the output can be
    /// completed, and [`Self::fit`] does so.
    fn decide<T>(
        &mut self,
        logits: &[f32],
        mut decide: impl FnMut(&Step<'_>, &mut Scratch) -> Result<T, DrawError>,
    ) -> Result<(T, bool), StepError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let decided = self.decide_by(logits, |step| decide(step, &mut scratch));
        self.scratch = scratch;
        decided
    }

    /// As [`Self::decide`], for what needs no scratch of the sampler.
    fn decide_by<T>(
        &self,
        logits: &[f32],
        mut decide: impl FnMut(&Step<'_>) -> Result<T, DrawError>,
    ) -> Result<(T, bool), StepError> {
        let (legal, fitting) = self.masks()?;
        let mut under = |mask: &TokenMask| decide(&self.step(logits, mask));
        let decided = match fitting.as_ref().map(&mut under) {
            None | Some(Err(DrawError::NoFiniteLegalLogit)) => under(&legal),
            Some(decided) => decided,
        };
        let decided = decided.map_err(|error| self.step_error(error))?;
        Ok((decided, fitting.is_some()))
    }

    /// Accepts a token that was chosen elsewhere: any that is legal and completes no banned phrase,
    /// whatever the numbers of tokens of the policy ask for. A failure leaves the sequence as it was.
    ///
    /// # Errors
    ///
    /// [`StepError::TokenRejected`] if it is not legal, [`StepError::TokenBanned`],
    /// [`StepError::Finished`] after the end, [`StepError::BudgetExceeded`].
    pub fn accept(&mut self, token: TokenId) -> Result<(), StepError> {
        if self.is_finished() {
            return Err(StepError::Finished);
        }
        self.check_ban(token)?;
        self.matcher.accept(token)?;
        self.watch.push(self.matcher.automaton().vocabulary().bytes(token));
        self.history.push(token);
        self.way_out.follow(token);
        Ok(())
    }

    /// Returns the tokens that may come next: those that are legal, without those that
    /// [`Policy::ban`] takes away, without those that leave too few tokens of
    /// [`Policy::max_tokens`] to complete the output, and before [`Policy::min_tokens`] without end
    /// tokens, unless nothing else is left. Where earlier texts matter (elements that must
    /// differ), those that leave too few are not taken away here; [`ConstrainedSampler::sample`] chooses
    /// none of them.
    ///
    /// # Errors
    ///
    /// As [`Matcher::mask`]; [`StepError::AllTokensBanned`]; [`StepError::TokenBudget`] if tokens that
    /// were accepted by hand left too little.
    pub fn mask(&self) -> Result<Cow<'_, TokenMask>, StepError> {
        let (legal, fitting) = self.masks()?;
        let mask = fitting.map_or(legal, Cow::Owned);
        if self.tokens().len() < self.policy.min_tokens {
            let going_on = mask.without(self.matcher.automaton().vocabulary().end_tokens());
            if !going_on.is_empty() {
                return Ok(Cow::Owned(going_on));
            }
        }
        Ok(mask)
    }

    /// Returns the legal tokens, and those of them that leave enough of the budget, if that is known not
    /// to be all.
    fn masks(&self) -> Result<(Cow<'_, TokenMask>, Option<TokenMask>), StepError> {
        let legal = self.grammar_mask()?;
        let fitting = self.fitting(&legal)?;
        Ok((legal, fitting))
    }

    /// Returns those of the legal tokens that leave enough of the budget, if that is known not to be all.
    fn fitting(&self, legal: &TokenMask) -> Result<Option<TokenMask>, StepError> {
        let Some(left) = self.tokens_left() else { return Ok(None) };
        let fitting = self.way_out.restrict(&self.matcher, legal, left)?;
        if fitting.as_ref().is_some_and(TokenMask::is_empty) {
            // A search may find what no look-up knew.
            let token = self.way_out.clone().next(&self.matcher, left)?;
            self.check_ban(token)?;
            return Ok(Some(TokenMask::from_ids(legal.width(), vec![token])));
        }
        Ok(fitting)
    }

    fn check_ban(&self, token: TokenId) -> Result<(), StepError> {
        if self.is_banned(token) {
            return Err(StepError::TokenBanned { step: self.tokens().len(), token });
        }
        Ok(())
    }

    /// Returns the legal tokens without those that are banned.
    fn grammar_mask(&self) -> Result<Cow<'_, TokenMask>, StepError> {
        if self.is_finished() {
            return Err(StepError::Finished);
        }
        let mask = self.matcher.mask()?;
        let vocabulary = self.matcher.automaton().vocabulary();
        match self.watch.banned(vocabulary) {
            Some(banned) if !banned.is_empty() => {
                let rest = mask.without(&banned);
                let step = self.tokens().len();
                if rest.is_empty() {
                    Err(StepError::AllTokensBanned { step })
                } else {
                    Ok(Cow::Owned(rest))
                }
            }
            _ => Ok(mask),
        }
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

    /// Returns whether an end token was accepted, or a text of [`Policy::stop`] appeared: nothing may
    /// follow.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.matcher.is_finished() || self.watch.stopped().is_some()
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
        self.watch.truncate(tokens);
        if self.tokens().is_empty() {
            self.way_out.restart();
        } else {
            self.way_out.forget();
        }
        Ok(())
    }

    /// Goes back to the start of the grammar. Seed and penalised prompt stay.
    pub fn reset(&mut self) {
        self.matcher.reset();
        self.history.truncate(usize::MAX);
        self.watch.truncate(usize::MAX);
        self.way_out.restart();
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
            watch: self.watch.clone(),
            first_step: self.first_step,
            scratch: Scratch::default(),
        }
    }

    /// Returns the tokens so far, an end token included.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        self.history.generated()
    }

    /// Returns the output so far in bytes, which can end inside a character; without the text that
    /// stopped it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.matcher.automaton().vocabulary().decode(self.tokens());
        bytes.truncate(self.watch.stopped().unwrap_or(usize::MAX));
        bytes
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

    /// Returns the fewest tokens that complete the output from here, an end token the last, whether or
    /// not they fit into the budget, and whatever the policy bans. The sequence stays where it is: accept
    /// them to end it now.
    ///
    /// # Errors
    ///
    /// [`StepError::Finished`] after an end token; [`StepError::TokenBudget`] if no completion is
    /// known; [`StepError::BudgetExceeded`].
    pub fn close_now(&self) -> Result<Completion, StepError> {
        let left = self.tokens_left().unwrap_or(usize::MAX);
        let unknown = StepError::TokenBudget { left, needed: usize::MAX, exact: false };
        self.matcher.completion(left)?.ok_or(unknown)
    }

    /// Returns whether the output can be completed within the budget after `token`, which is legal.
    pub(super) fn fits(&mut self, token: TokenId) -> Result<bool, StepError> {
        match self.tokens_left() {
            Some(left) => self.way_out.fits(&self.matcher, token, left),
            None => Ok(true),
        }
    }

    /// Returns whether `token` would complete a banned phrase.
    pub(super) fn is_banned(&self, token: TokenId) -> bool {
        self.watch.bans(self.matcher.automaton().vocabulary().bytes(token))
    }

    /// Returns the tokens before the sequence that penalties look at.
    pub(super) fn penalised_prompt(&self) -> &[TokenId] {
        self.history.prompt()
    }

    /// Returns the number of the first random number.
    pub(super) const fn first_step(&self) -> usize {
        self.first_step
    }

    /// Returns the number of the next random number.
    pub(super) fn random_step(&self) -> usize {
        self.first_step + self.tokens().len()
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

/// Generating failed.
#[derive(Clone, Debug)]
pub enum GenerateError<E> {
    /// The model gave no logits.
    Model(E),
    /// The model gave another number of rows than [`Model`] asks of it.
    Rows(WrongRows),
    /// The sampler gave no token.
    Step(StepError),
}

/// A model gave another number of rows than it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongRows {
    /// The rows that were asked for.
    pub asked: usize,
    /// The rows that there are.
    pub given: usize,
}

impl WrongRows {
    /// Checks what a model gave.
    pub(super) fn check(asked: usize, rows: &[Vec<f32>]) -> Result<(), Self> {
        let given = rows.len();
        if asked == given { Ok(()) } else { Err(Self { asked, given }) }
    }
}

impl std::fmt::Display for WrongRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the model gave {} rows of logits where {} were asked for",
            self.given, self.asked
        )
    }
}

impl std::error::Error for WrongRows {}

impl<E: std::fmt::Display> std::fmt::Display for GenerateError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Model(error) => write!(f, "the model failed: {error}"),
            Self::Rows(error) => error.fmt(f),
            Self::Step(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for GenerateError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Model(error) => Some(error),
            Self::Rows(error) => Some(error),
            Self::Step(error) => Some(error),
        }
    }
}
