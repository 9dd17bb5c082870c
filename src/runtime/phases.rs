//! Phases: parts of a sequence that each have a grammar and a policy of their own, one after another.
//! A token that ends a phase tells which is next.
//!
//! This is for borders that are tokens, such as a special token that ends the reasoning of a model.
//! Borders that are text are part of one grammar ([`crate::frontend::layout`]).

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::runtime::draw::Choice;
use crate::runtime::model::Model;
use crate::runtime::policy::Policy;
use crate::runtime::sampler::{ConstrainedSampler, GenerateError};
use crate::step_error::StepError;
use crate::token::TokenAutomaton;

/// A part of a sequence.
///
/// Its grammar is compiled for a vocabulary whose end tokens are those that end the phase
/// ([`crate::Compiler::ending_with`]).
#[derive(Clone, Debug)]
pub struct Phase {
    /// The grammar.
    pub automaton: Arc<TokenAutomaton>,
    /// The policy. Its budget is that of each time the phase is entered.
    pub policy: Policy,
    /// The number of the phase that follows each end token. One that is not here ends the sequence.
    pub next: BTreeMap<TokenId, usize>,
}

impl Phase {
    /// Returns a phase after which the sequence ends.
    #[must_use]
    pub const fn last(automaton: Arc<TokenAutomaton>, policy: Policy) -> Self {
        Self { automaton, policy, next: BTreeMap::new() }
    }

    /// Adds what follows an end token.
    #[must_use]
    pub fn then(mut self, token: TokenId, phase: usize) -> Self {
        self.next.insert(token, phase);
        self
    }
}

/// Chooses the tokens of one sequence that has phases. The first is number 0.
///
/// Every token passes through it, those that end a phase too, so that it always stands where the model
/// stands. The penalties of a phase look at all tokens before, and its random numbers go on from them.
///
/// ```
/// use schemac::runtime::{Phase, PhasedSampler, Policy};
/// use schemac::{Compiler, Vocabulary};
/// # use schemac::TokenId;
/// # use schemac::vocab::Token;
/// # let mut tokens: Vec<_> = (0..=255).map(|byte| Token::Text([byte].into())).collect();
/// # tokens.extend(["</think>", "<end>"].map(|name| Token::Special(name.into())));
/// # let vocabulary = std::sync::Arc::new(Vocabulary::new(tokens, [TokenId::new(257)])?);
///
/// // Any text until the special token `</think>`, and then yes or no.
/// let think_end = vocabulary.special_named("</think>").unwrap();
/// let compiler = Compiler::new(vocabulary);
/// let thinking = compiler.ending_with([think_end])?.compile_regex("(?s).*")?;
/// let answer = compiler.compile_regex("yes|no")?;
/// let mut sampler = PhasedSampler::new(vec![
///     Phase::last(thinking, Policy::sample(0.8)).then(think_end, 1),
///     Phase::last(answer, Policy::greedy()),
/// ])?;
/// sampler.accept(TokenId::new(b'?'.into()))?;
/// sampler.accept(think_end)?;
/// assert_eq!(sampler.phase(), 1);
/// sampler.next_token(&vec![0.0; 258])?;
/// assert_eq!(sampler.text(), "?n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PhasedSampler {
    phases: Arc<[Phase]>,
    /// The parts so far with the numbers of their phases; the last is going on.
    parts: Vec<(usize, ConstrainedSampler)>,
    /// What penalties look at before the tokens.
    prompt: Arc<[TokenId]>,
    tokens: Vec<TokenId>,
}

impl PhasedSampler {
    /// Returns the sampler at the start of phase 0.
    ///
    /// # Errors
    ///
    /// [`StepError::InvalidPolicy`] if there is no phase, two have different tokens, one is followed by
    /// a phase that is not there, or after a token that does not end it; otherwise as
    /// [`ConstrainedSampler::new`] for each phase, so that no budget fails later.
    pub fn new(phases: Vec<Phase>) -> Result<Self, StepError> {
        let wrong =
            |text: String| StepError::InvalidPolicy(Error::new(ErrorKind::InvalidOption, text));
        let Some(first) = phases.first() else { return Err(wrong("there is no phase".into())) };
        let tokens = first.automaton.vocabulary().clone();
        for (number, phase) in phases.iter().enumerate() {
            let own = phase.automaton.vocabulary();
            if own.len() != tokens.len() || own.ids().any(|id| own.bytes(id) != tokens.bytes(id)) {
                return Err(wrong(format!("the tokens of phase {number} differ from the first's")));
            }
            for (&token, &next) in &phase.next {
                if next >= phases.len() || !own.is_end(token) {
                    let token = token.get();
                    return Err(wrong(format!(
                        "phase {number} cannot go on to phase {next} with token {token}"
                    )));
                }
            }
            ConstrainedSampler::new(phase.automaton.clone(), phase.policy.clone())?;
        }
        let sampler = ConstrainedSampler::new(first.automaton.clone(), first.policy.clone())?;
        let (phases, parts) = (phases.into(), vec![(0, sampler)]);
        Ok(Self { phases, parts, prompt: Arc::default(), tokens: Vec::new() })
    }

    /// Returns the same sampler at its start, for a sequence that follows `prompt`, whose tokens the
    /// penalties of all phases then look at as if they had been generated.
    #[must_use]
    pub fn with_penalised_prompt(mut self, prompt: &[TokenId]) -> Self {
        self.parts.truncate(1);
        for (_, part) in &mut self.parts {
            part.reset();
            *part = part.fork().with_penalised_prompt(prompt);
        }
        self.tokens.clear();
        self.prompt = prompt.into();
        self
    }

    /// Chooses the next token and accepts it.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::next_token`].
    pub fn next_token(&mut self, logits: &[f32]) -> Result<TokenId, StepError> {
        let token = self.sample(logits)?.token;
        self.accept(token)?;
        Ok(token)
    }

    /// Chooses the next token and does not accept it.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::next_token`].
    pub fn sample(&mut self, logits: &[f32]) -> Result<Choice, StepError> {
        self.parts.last_mut().map_or(Err(StepError::Finished), |(_, part)| part.sample(logits))
    }

    /// Accepts a token. A failure leaves the sequence as it was.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::accept`].
    pub fn accept(&mut self, token: TokenId) -> Result<(), StepError> {
        let Some((number, part)) = self.parts.last_mut() else { return Err(StepError::Finished) };
        part.accept(token)?;
        self.tokens.push(token);
        if part.is_finished()
            && let Some(&next) = self.phases[*number].next.get(&token)
        {
            let phase = &self.phases[next];
            let sampler = ConstrainedSampler::new(phase.automaton.clone(), phase.policy.clone())?;
            self.parts.push((next, sampler.following(&self.prompt, &self.tokens)));
        }
        Ok(())
    }

    /// Accepts tokens, as many as are legal; on a failure those before it stay accepted.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::accept`].
    pub fn replay(&mut self, tokens: &[TokenId]) -> Result<(), StepError> {
        tokens.iter().try_for_each(|&token| self.accept(token))
    }

    /// Generates until the sequence ends.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::generate`].
    pub fn generate<M: Model>(&mut self, model: &mut M) -> Result<(), GenerateError<M::Error>> {
        let mut row = Vec::new();
        while !self.is_finished() {
            model.logits(self.tokens(), &mut row).map_err(GenerateError::Model)?;
            self.next_token(&row).map_err(GenerateError::Step)?;
        }
        Ok(())
    }

    /// Goes back by `tokens` tokens, across phases too.
    ///
    /// # Errors
    ///
    /// [`StepError::RollbackTooFar`]; the sequence stays where it is.
    pub fn rollback(&mut self, tokens: usize) -> Result<(), StepError> {
        if tokens > self.tokens.len() {
            let available = self.tokens.len();
            return Err(StepError::RollbackTooFar { asked: tokens, available });
        }
        let mut back = self.clone();
        let mut left = tokens;
        while left > 0 {
            let Some((_, part)) = back.parts.last_mut() else { break };
            let own = part.tokens().len();
            if own == 0 {
                back.parts.pop();
                continue;
            }
            let here = left.min(own);
            part.rollback(here)?;
            left -= here;
        }
        back.tokens.truncate(self.tokens.len() - tokens);
        *self = back;
        Ok(())
    }

    /// Returns whether the sequence has ended.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.parts.last().is_none_or(|(_, part)| part.is_finished())
    }

    /// Returns the number of the present phase.
    #[must_use]
    pub fn phase(&self) -> usize {
        self.parts.last().map_or(0, |&(number, _)| number)
    }

    /// Returns the parts so far with the numbers of their phases; the last is going on.
    #[must_use]
    pub fn parts(&self) -> &[(usize, ConstrainedSampler)] {
        &self.parts
    }

    /// Returns all tokens so far, those that end phases included.
    #[must_use]
    pub fn tokens(&self) -> &[TokenId] {
        &self.tokens
    }

    /// Returns the output so far without the special tokens between its parts; bytes of a character
    /// that is not yet complete show as U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.parts.iter().flat_map(|(_, part)| part.bytes()).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
