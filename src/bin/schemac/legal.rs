//! What is legal at a place of a text, for `check` and `explain`.

use std::borrow::Cow;

use schemac::token::Matcher;
use schemac::{StepError, TokenMask};
use serde_json::{Value, json};

use crate::describe::{self, Tokens};

/// What is legal after some text.
#[derive(Debug)]
pub(crate) struct Legal {
    bytes: Vec<u8>,
    /// Whether the output may end here.
    end: bool,
    tokens: Tokens,
}

impl Legal {
    /// Returns what is legal where `matcher` stands, with at most `tokens` tokens to show.
    pub(crate) fn at(matcher: &mut Matcher, tokens: usize) -> Result<Self, StepError> {
        let vocabulary = std::sync::Arc::clone(matcher.automaton().vocabulary());
        let mask = match matcher.mask() {
            // That no token can spell what is legal is worth showing, not a failure.
            Err(StepError::AllTokensIllegal { .. }) => {
                Cow::Owned(TokenMask::empty(vocabulary.len()))
            }
            other => other?,
        };
        Ok(Self {
            bytes: matcher.legal_bytes()?,
            end: matcher.is_accepting()?,
            tokens: Tokens::of(&mask, &vocabulary, tokens),
        })
    }

    /// Returns lines for people.
    pub(crate) fn to_lines(&self) -> Vec<String> {
        let end = if self.end { "; the output may end" } else { "" };
        let bytes = match self.bytes.as_slice() {
            [] => "none".to_owned(),
            bytes => describe::bytes(bytes),
        };
        vec![
            format!("legal bytes: {bytes}{end}"),
            format!("legal tokens ({}): {}", self.tokens.count(), self.tokens.to_text()),
        ]
    }

    /// Returns the members of a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "bytes": self.bytes, "end": self.end, "tokens": self.tokens.to_json() })
    }
}
