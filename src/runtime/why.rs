//! Why a token is legal or not, for people who ask: a sampler and a token in, the reason out.

use crate::ids::TokenId;
use crate::runtime::json_stream::JsonStream;
use crate::runtime::sampler::ConstrainedSampler;
use crate::step_error::StepError;

/// Whether a token may come next, and if not, why.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict {
    /// It may.
    Legal,
    /// The sequence has ended.
    Finished,
    /// It ends the output, which is not complete: one of these bytes must follow.
    NotComplete {
        /// The bytes that would be legal, ascending.
        legal_bytes: Vec<u8>,
        /// Where in the JSON that is being written, if it is JSON.
        pointer: Option<String>,
        /// The rule of the grammar that goes on there, if it is known: of GBNF the name of a rule that
        /// calls itself (the others are part of those that call them), of a schema what it became.
        rule: Option<String>,
    },
    /// It ends the output, which is complete, before [`crate::Policy::min_tokens`], and others may come.
    TooEarly,
    /// It has no text: a special token that does not end the output, or one that is not used.
    NoText {
        /// Its name, if it is special.
        name: Option<String>,
    },
    /// It leaves the grammar.
    LeavesGrammar {
        /// How many of its bytes are legal.
        legal_prefix: usize,
        /// The byte after those.
        byte: u8,
        /// The bytes that would be legal there, ascending.
        legal_bytes: Vec<u8>,
        /// Whether the output would be complete there.
        complete: bool,
        /// Where in the JSON that is being written, if it is JSON.
        pointer: Option<String>,
        /// The rule of the grammar that goes on there, if it is known: of GBNF the name of a rule that
        /// calls itself (the others are part of those that call them), of a schema what it became.
        rule: Option<String>,
    },
    /// The grammar allows it, and it would complete a phrase that [`crate::Policy::ban`] names.
    Banned,
    /// The grammar allows it, and no completion is known that fits into what is left of the budget.
    OverBudget,
}

impl ConstrainedSampler {
    /// Returns why `token` may come next or not, as far as grammar, bans and numbers of tokens have a say;
    /// logits and filters do not matter. Costs a step for each byte of the output so far.
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`].
    pub fn explain_token(&self, token: TokenId) -> Result<Verdict, StepError> {
        if self.is_finished() {
            return Ok(Verdict::Finished);
        }
        let matcher = self.matcher();
        let vocabulary = matcher.automaton().vocabulary();
        if vocabulary.is_end(token) {
            if matcher.is_accepting()? {
                let may_end = self.mask()?.contains(token);
                return Ok(if may_end { Verdict::Legal } else { Verdict::TooEarly });
            }
            let legal_bytes = matcher.legal_bytes()?;
            let (pointer, rule) = (self.json_pointer(&[]), self.rule_after(&[])?);
            return Ok(Verdict::NotComplete { legal_bytes, pointer, rule });
        }
        let bytes = vocabulary.bytes(token);
        if bytes.is_empty() {
            let name = vocabulary.special_name(token).map(str::to_owned);
            return Ok(Verdict::NoText { name });
        }
        let mut after = matcher.fork();
        if let Err(error) = after.accept_bytes(bytes) {
            let StepError::BytesRejected { legal_prefix, legal_bytes } = error else {
                return Err(error);
            };
            after.accept_bytes(&bytes[..legal_prefix])?;
            return Ok(Verdict::LeavesGrammar {
                legal_prefix,
                byte: bytes[legal_prefix],
                legal_bytes,
                complete: after.is_accepting()?,
                pointer: self.json_pointer(&bytes[..legal_prefix]),
                rule: self.rule_after(&bytes[..legal_prefix])?,
            });
        }
        if self.is_banned(token) {
            return Ok(Verdict::Banned);
        }
        if !self.fork().fits(token)? {
            return Ok(Verdict::OverBudget);
        }
        Ok(Verdict::Legal)
    }

    /// Returns the name of the rule that goes on after `more`, if it is known.
    fn rule_after(&self, more: &[u8]) -> Result<Option<String>, StepError> {
        let mut text = self.matcher().automaton().vocabulary().decode(self.tokens());
        text.extend_from_slice(more);
        Ok(self.matcher().rule_after(&text)?.map(String::from))
    }

    /// Returns the JSON Pointer of the value that is written after `more`, if the output is JSON.
    fn json_pointer(&self, more: &[u8]) -> Option<String> {
        let mut stream = JsonStream::default();
        stream.push(&self.bytes()).ok()?;
        stream.push(more).ok()?;
        Some(stream.pointer())
    }
}
