//! schemac, with unknown formats as annotations, so that every schema compiles that can be satisfied.

use std::path::Path;
use std::sync::Arc;

use schemac::frontend::json_schema::{Formats, JsonOptions};
use schemac::token::{Matcher, TokenAutomaton};
use schemac::vocab::Token;
use schemac::{Compiler, TokenId, Vocabulary};

use crate::engine::Engine;
use crate::vocabulary;

pub(crate) struct Schemac {
    pub(crate) compiler: Compiler,
    /// Whether each mask is written out as dense words, which is the form that llguidance gives.
    dense: bool,
}

impl Schemac {
    pub(crate) fn new(path: &Path, dense: bool) -> Self {
        let (mut tokens, mut ends) = (Vec::new(), Vec::new());
        for (id, word) in vocabulary::read(path).enumerate() {
            ends.extend(TokenId::from_index(id).filter(|_| word.end));
            tokens.push(match word.special {
                Some(name) => Token::Special(name.into()),
                None if word.bytes.is_empty() => Token::Unused,
                None => Token::Text(word.bytes().into()),
            });
        }
        let vocabulary = Arc::new(Vocabulary::new(tokens, ends).expect("a vocabulary"));
        // What is built once for each vocabulary is in no time.
        vocabulary.prepare();
        let options = JsonOptions::default().formats(Formats::AssertStandard);
        Self { compiler: Compiler::new(vocabulary).json_options(options), dense }
    }
}

impl Engine for Schemac {
    type Grammar = Arc<TokenAutomaton>;
    type State = (Matcher, Vec<u64>);

    fn compile(&self, schema: &str) -> Result<Self::Grammar, String> {
        self.compiler.compile_schema(schema).map_err(|error| error.kind().name().to_owned())
    }

    fn start(&self, grammar: &Self::Grammar) -> Self::State {
        let words = if self.dense { self.compiler.vocabulary().len().div_ceil(64) } else { 0 };
        (Matcher::new(Arc::clone(grammar)), vec![0; words])
    }

    fn mask(&self, (matcher, words): &mut Self::State) -> bool {
        let Ok(mask) = matcher.mask() else { return false };
        if self.dense {
            mask.write_words(words);
        }
        true
    }

    fn mask_and_accept(&self, (matcher, words): &mut Self::State, token: u32) -> bool {
        let Ok(mask) = matcher.mask() else { return false };
        let legal = if self.dense {
            mask.write_words(words);
            words[token as usize / 64] >> (token % 64) & 1 == 1
        } else {
            mask.contains(TokenId::new(token))
        };
        legal && matcher.accept(TokenId::new(token)).is_ok()
    }

    fn is_accepting(&self, (matcher, _): &mut Self::State) -> bool {
        matcher.is_accepting().unwrap_or(false)
    }

    fn size(&self, grammar: &Self::Grammar) -> [usize; 4] {
        let stats = grammar.stats();
        [stats.rests, stats.local_masks, stats.unions, stats.states]
    }

    fn cause(&self, before: [usize; 4], after: [usize; 4]) -> Option<u8> {
        let [rests, masks, unions, states] = std::array::from_fn(|i| after[i] - before[i]);
        Some(match (rests, masks, unions, states) {
            (1.., ..) => 0,
            (_, 2.., ..) => 1,
            (_, 1, ..) => 2,
            (_, _, 1.., _) => 3,
            (_, _, _, 1..) => 4,
            _ => 5,
        })
    }

    fn is_exact(&self, (matcher, _): &mut Self::State) -> Option<bool> {
        let mask = matcher.mask().ok()?;
        let fresh = matcher.clone();
        Some(
            self.compiler
                .vocabulary()
                .ids()
                .all(|token| mask.contains(token) == fresh.clone().accept(token).is_ok()),
        )
    }
}
