//! llguidance, set up as its own benchmark does: `ParserFactory` with the slices for JSON, without
//! forced tokens and backtracking.

use std::path::Path;
use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{
    ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv,
};
use llguidance::{ParserFactory, TokenParser};
use schemac::TokenId;
use schemac::vocab::{Encoder, LoadOptions, load};

use crate::engine::Engine;
use crate::vocabulary;

/// Returns the factory. With a `tokenizer`, forced text is spelled by it; without, greedily.
pub(crate) fn factory(vocabulary: &Path, tokenizer: Option<&Path>) -> ParserFactory {
    let (mut words, mut ends) = (Vec::new(), Vec::new());
    for (id, word) in (0..).zip(vocabulary::read(vocabulary)) {
        ends.extend(word.end.then_some(id));
        words.push(match &word.special {
            Some(name) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat(),
            None => word.bytes(),
        });
    }
    let size = u32::try_from(words.len()).expect("ids have 32 bits");
    let trie = TokTrie::from(&TokRxInfo::new(size, ends[0]), &words).with_eos_tokens(&ends);
    let environment: TokEnv = match tokenizer {
        Some(path) => {
            let loaded = load(path, &LoadOptions::default()).expect("a tokenizer");
            Arc::new(Environment { trie, encoder: Arc::clone(loaded.encoder()) })
        }
        None => Arc::new(ApproximateTokEnv::new(trie)),
    };
    let slices = SlicedBiasComputer::json_slices();
    let mut factory = ParserFactory::new(&environment, InferenceCapabilities::default(), &slices)
        .expect("a factory");
    factory.quiet();
    factory
}

/// The tokenizer as llguidance wants it.
struct Environment {
    trie: TokTrie,
    encoder: Arc<Encoder>,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, text: &[u8]) -> Vec<u32> {
        let encode = |text: &str| {
            let tokens = self.encoder.encode(text).unwrap_or_default();
            tokens.into_iter().map(TokenId::get).collect()
        };
        self.trie.tokenize_with_greedy_fallback(text, encode)
    }
}

impl Engine for ParserFactory {
    type Grammar = TokenParser;
    type State = TokenParser;

    fn compile(&self, schema: &str) -> Result<TokenParser, String> {
        let schema = serde_json::from_str(schema).map_err(|error| error.to_string())?;
        let grammar = TopLevelGrammar::from_json_schema(schema);
        let mut parser = self.create_parser(grammar).map_err(|_| "refused".to_owned())?;
        parser.start_without_prompt();
        Ok(parser)
    }

    /// A clone shares the states of the lexer with the other texts, which a deep clone does not.
    fn start(&self, grammar: &TokenParser) -> TokenParser {
        grammar.clone()
    }

    fn mask(&self, state: &mut TokenParser) -> bool {
        state.compute_mask().is_ok()
    }

    fn mask_and_accept(&self, state: &mut TokenParser, token: u32) -> bool {
        let Ok(mask) = state.compute_mask() else { return false };
        mask.is_allowed(token) && state.consume_token(token).is_ok()
    }

    fn is_accepting(&self, state: &mut TokenParser) -> bool {
        state.is_accepting()
    }
}
