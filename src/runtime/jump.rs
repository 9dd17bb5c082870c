//! Tokens without a model: what the grammar forces, cut as the model's tokenizer cuts it, and the last
//! token of a prompt, which it would cut otherwise if it knew what follows.
//!
//! Forced text could be taken byte by byte; a model would then go on from tokens that it has never seen
//! in a row. So it is encoded, and the tokens that what follows could still change are left to the
//! model.

use std::collections::BTreeSet;

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::runtime::sampler::ConstrainedSampler;
use crate::step_error::StepError;
use crate::token::Matcher;
use crate::vocab::{Encoder, Vocabulary};

/// Forced bytes that are looked at, at most, at a time.
const MOST_FORCED: usize = 4_096;

/// The tokens before the forced text that it is cut together with.
const CONTEXT: usize = 8;

impl ConstrainedSampler {
    /// Returns the tokens that must come next, whatever the model says: the bytes that the grammar
    /// forces, as `encoder` cuts them.
    ///
    /// Where the last tokens so far are those of the encoder, the text is cut together with them;
    /// otherwise alone. Tokens at the end that would be cut otherwise with a text that may
    /// follow are left out, so that the model chooses at the border. Tokens that a budget cannot hold
    /// are left out too.
    ///
    /// Costs an encoding of the forced text for each character that may follow and each token that could
    /// reach across its end.
    ///
    /// # Errors
    ///
    /// [`StepError::BudgetExceeded`]; [`StepError::Grammar`] with what the encoder says.
    pub fn forced_tokens(&self, encoder: &Encoder) -> Result<Vec<TokenId>, StepError> {
        if self.is_finished() {
            return Ok(Vec::new());
        }
        let forced = self.matcher().forced_bytes(MOST_FORCED)?;
        let forced = whole_characters(&forced);
        if forced.is_empty() {
            return Ok(Vec::new());
        }
        let encode = |text: &str| encoder.encode(text).map_err(StepError::from);
        let recent = &self.tokens()[self.tokens().len().saturating_sub(CONTEXT)..];
        let before = self.matcher().automaton().vocabulary().decode(recent);
        let mut text = forced.to_owned();
        let mut tokens = Vec::new();
        let mut skip = 0;
        if let Ok(before) = std::str::from_utf8(&before)
            && encode(before)? == recent
        {
            // With what follows, the last tokens may be cut otherwise than they were.
            let whole = encode(&format!("{before}{forced}"))?;
            if whole.starts_with(recent) {
                (text, tokens, skip) = (format!("{before}{forced}"), whole, recent.len());
            }
        }
        if skip == 0 {
            tokens = encode(&text)?;
        }
        let mut after = self.matcher().fork();
        after.accept_bytes(forced.as_bytes())?;
        // The characters first: mostly they leave few rests to try, or none.
        let mut probes = next_characters(&after)?;
        for rests in [false, true] {
            if rests {
                probes = self.rests(&after, &text, &tokens)?;
            }
            for next in &probes {
                let with_next = encode(&format!("{text}{next}"))?;
                let same = tokens.iter().zip(&with_next).take_while(|(a, b)| a == b).count();
                tokens.truncate(same);
                if same <= skip {
                    return Ok(Vec::new());
                }
            }
        }
        let mut tokens = tokens.split_off(skip.min(tokens.len()));
        let mut ahead = self.fork();
        let mut fitting = 0;
        for &token in &tokens {
            if !ahead.fits(token)? || ahead.accept(token).is_err() {
                break;
            }
            fitting += 1;
        }
        tokens.truncate(fitting);
        Ok(tokens)
    }

    /// Returns the rests of tokens that begin inside what `tokens` are of `text`, and reach across its end
    /// with a text that may follow there, where `after` stands.
    fn rests(
        &self,
        after: &Matcher,
        text: &str,
        tokens: &[TokenId],
    ) -> Result<BTreeSet<String>, StepError> {
        let vocabulary = self.matcher().automaton().vocabulary();
        let trie = vocabulary.trie();
        let kept: usize = tokens.iter().map(|&token| vocabulary.bytes(token).len()).sum();
        let first = text.len().saturating_sub(vocabulary.longest());
        let mut rests = BTreeSet::new();
        for start in first..text.len().min(kept) {
            let Some(node) = trie.find(&text.as_bytes()[start..]) else { continue };
            for &token in trie.subtree_tokens(node) {
                let rest = &vocabulary.bytes(token)[text.len() - start..];
                if let Ok(rest) = std::str::from_utf8(rest)
                    && !rest.is_empty()
                    && !rests.contains(rest)
                    && after.fork().accept_bytes(rest.as_bytes()).is_ok()
                {
                    rests.insert(rest.to_owned());
                }
            }
        }
        Ok(rests)
    }

    /// Accepts the tokens that must come next ([`ConstrainedSampler::forced_tokens`]), and returns how
    /// many they were.
    ///
    /// # Errors
    ///
    /// As [`ConstrainedSampler::forced_tokens`].
    pub fn jump_forward(&mut self, encoder: &Encoder) -> Result<usize, StepError> {
        let tokens = self.forced_tokens(encoder)?;
        tokens.iter().try_for_each(|&token| self.accept(token))?;
        Ok(tokens.len())
    }
}

/// Returns the characters that may follow where `after` stands: of those that are longer than a byte one
/// for each first byte.
fn next_characters(after: &Matcher) -> Result<BTreeSet<String>, StepError> {
    let mut characters = BTreeSet::new();
    for byte in after.legal_bytes()? {
        let character: &[u8] = match byte {
            0..=0x7f => &[byte],
            0xc2..=0xdf => &[byte, 0x80],
            0xe0 => &[byte, 0xa0, 0x80],
            0xe1..=0xef => &[byte, 0x80, 0x80],
            0xf0 => &[byte, 0x90, 0x80, 0x80],
            _ => &[byte, 0x80, 0x80, 0x80],
        };
        characters.extend(std::str::from_utf8(character).map(str::to_owned));
    }
    Ok(characters)
}

/// Returns the text of the bytes up to the last whole character.
fn whole_characters(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// A prompt whose last token is taken back, to be chosen again together with what follows: token
/// healing.
///
/// `http:` is one token and `://` another, so a model that is asked to go on after `http:` rarely
/// writes `//`. Without the last token it may write the token `://` that begins with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Healed {
    /// The tokens of the prompt to keep.
    pub prompt: Vec<TokenId>,
    /// The text that the output must begin with: compile the grammar after
    /// [`crate::frontend::layout::Layout::Text`] of it. It is no news to whoever wrote the prompt.
    pub begins_with: String,
}

/// Takes tokens back from the end of `prompt` whose bytes other tokens begin with: one, or more where
/// the one before ends inside a character.
///
/// # Errors
///
/// [`ErrorKind::Unspellable`] if what was taken back is not text.
pub fn heal(vocabulary: &Vocabulary, prompt: &[TokenId]) -> Result<Healed, Error> {
    let trie = vocabulary.trie();
    let mut keep = prompt.len();
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(&last) = prompt[..keep].last() {
        let own = vocabulary.bytes(last);
        let goes_on = |text: &[u8]| {
            trie.find(text)
                .is_some_and(|node| trie.subtree_tokens(node).len() > trie.tokens(node).len())
        };
        let inside = std::str::from_utf8(&bytes).is_err();
        if own.is_empty() || !inside && (!bytes.is_empty() || !goes_on(own)) {
            break;
        }
        bytes.splice(0..0, own.iter().copied());
        keep -= 1;
    }
    let begins_with = String::from_utf8(bytes).map_err(|_| {
        Error::new(ErrorKind::Unspellable, "the prompt ends with tokens that are no text")
    })?;
    Ok(Healed { prompt: prompt[..keep].to_vec(), begins_with })
}
