//! The regular expressions by which byte-level tokenizers cut a text into words before merging.
//! Text in, consecutive pieces out, which [`super::merge`] turns into tokens.
//!
//! The expressions are those that the models' own tokenizer files publish. All of them end in
//! `\s+(?!\S)|\s+`: a run of white space leaves its last character to the word that follows. That
//! look-ahead is the only one, so it is done by hand and the rest is a regular language; a text is
//! cut in linear time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input};

use crate::error::{Error, ErrorKind};

/// GPT-2.
pub(crate) const GPT_2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Llama 3, and the tiktoken encoding `cl100k_base`.
pub(crate) const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Qwen 2 and 3: as Llama 3, but digits stand alone.
pub(crate) const QWEN_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// GPT-4o: the tiktoken encoding `o200k_base`.
pub(crate) const O200K: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Mistral's tekken, for GGUF files; a `tekken.json` brings its own.
#[cfg(any(test, feature = "tokenizers"))]
pub(crate) const TEKKEN: &str = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+";

const WHITE_SPACE_TAIL: &str = r"|\s+(?!\S)|\s+";

/// Cuts texts by one of the expressions.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// What comes before the white-space alternatives.
    words: DFA,
    /// States of `words` that earlier texts have built, for the next.
    caches: Mutex<Vec<Cache>>,
}

impl Splitter {
    /// Returns the splitter for `pattern`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::UnsupportedFeature`] if `pattern` does not end as all known ones do, or what
    /// comes before is no regular expression.
    pub(crate) fn new(pattern: &str) -> Result<Self, Error> {
        let unsupported = |why: &str| {
            let feature = format!("split pattern {pattern}").into();
            Error::new(
                ErrorKind::UnsupportedFeature { feature },
                format!("the pattern by which the tokenizer splits text is not supported: {why}"),
            )
        };
        let words = pattern
            .strip_suffix(WHITE_SPACE_TAIL)
            .ok_or_else(|| unsupported(r"it does not end in `\s+(?!\S)|\s+`"))?;
        let words = DFA::builder()
            .syntax(syntax::Config::new().utf8(true))
            // Tables of large Unicode classes may need more than the default cache.
            .configure(DFA::config().skip_cache_capacity_check(true))
            .build(words)
            .map_err(|error| unsupported(&error.to_string()))?;
        Ok(Self { words, caches: Mutex::default() })
    }

    /// Returns the pieces of `text`, which follow each other without a gap.
    pub(crate) fn split<'t>(&self, text: &'t str) -> Vec<&'t str> {
        let kept = self.caches().pop();
        let mut cache = kept.unwrap_or_else(|| self.words.create_cache());
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let len = self.word(&mut cache, text, at).unwrap_or_else(|| white_space(&text[at..]));
            pieces.push(&text[at..at + len]);
            at += len;
        }
        self.caches().push(cache);
        pieces
    }

    fn caches(&self) -> MutexGuard<'_, Vec<Cache>> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn word(&self, cache: &mut Cache, text: &str, at: usize) -> Option<usize> {
        let input = Input::new(text).range(at..).anchored(Anchored::Yes);
        // A search fails only on settings that are not used here (quit bytes, giving up).
        let end = self.words.try_search_fwd(cache, &input).ok()??.offset();
        (end > at && text.is_char_boundary(end)).then_some(end - at)
    }
}

/// `\s+(?!\S)|\s+`: the run without its last character, unless that is all of it or the text ends.
/// What no alternative matches is passed character by character.
fn white_space(text: &str) -> usize {
    let run = text.len() - text.trim_start_matches(char::is_whitespace).len();
    let first = text.chars().next().map_or(text.len(), char::len_utf8);
    if run == text.len() {
        return run;
    }
    let last = text[..run].chars().next_back().map_or(0, char::len_utf8);
    (run - last).max(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split<'t>(pattern: &str, text: &'t str) -> Vec<&'t str> {
        Splitter::new(pattern).unwrap().split(text)
    }

    #[test]
    fn words_take_the_space_before_them() {
        assert_eq!(split(GPT_2, "a  b\n\n c's 12"), ["a", " ", " b", "\n\n", " c", "'s", " 12"]);
        assert_eq!(split(LLAMA_3, "x  1234\n  y"), ["x", " ", " ", "123", "4", "\n", " ", " y"]);
        assert_eq!(split(QWEN_2, "12 HE'LL"), ["1", "2", " HE", "'LL"]);
        assert_eq!(split(O200K, "fooBar's"), ["foo", "Bar's"]);
        assert_eq!(split(LLAMA_3, "a \u{3000} "), ["a", " \u{3000} "]);
        assert_eq!(split(GPT_2, ""), Vec::<&str>::new());
    }

    #[test]
    fn pieces_follow_each_other_without_a_gap() {
        let text =
            "{\"ключ\": [1, 22.5e-7, \"naïve 日本語 👩‍💻\"],\r\n\t\t\"x\" :null }\u{0}\u{85}  ";
        for pattern in [GPT_2, LLAMA_3, QWEN_2, O200K, TEKKEN] {
            assert_eq!(split(pattern, text).concat(), text);
        }
    }

    #[test]
    fn foreign_patterns_are_refused() {
        for pattern in [r"\w+", r"(?<=a)b|\s+(?!\S)|\s+"] {
            let error = Splitter::new(pattern).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::UnsupportedFeature { .. }));
        }
    }
}
