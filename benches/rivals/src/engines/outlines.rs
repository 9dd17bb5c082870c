//! outlines-core: the schema becomes a regular expression, and that an index of all its states. A mask
//! is written out as its `Guide` does.

use std::path::Path;

use outlines_core::json_schema::regex_from_str;
use outlines_core::prelude::{Index, StateId, Vocabulary};

use crate::engine::Engine;
use crate::vocabulary;

pub(crate) struct Outlines {
    vocabulary: Vocabulary,
}

impl Outlines {
    pub(crate) fn new(path: &Path) -> Self {
        let end = vocabulary::read(path).position(|word| word.end).expect("an end token");
        let mut vocabulary = Vocabulary::new(u32::try_from(end).expect("ids have 32 bits"));
        for (id, word) in (0..).zip(vocabulary::read(path)) {
            if word.special.is_none() && !word.bytes.is_empty() {
                vocabulary.try_insert(word.bytes(), id).expect("a token");
            }
        }
        Self { vocabulary }
    }

    pub(crate) fn index(&self, regex: &str) -> Result<Index, String> {
        Index::new(regex, &self.vocabulary).map_err(|error| error.to_string())
    }
}

/// A state, and the words that the mask is written to.
pub(crate) struct Guide {
    index: std::rc::Rc<Index>,
    state: StateId,
    words: Vec<u32>,
}

impl Engine for Outlines {
    type Grammar = std::rc::Rc<Index>;
    type State = Guide;

    fn compile(&self, schema: &str) -> Result<Self::Grammar, String> {
        let regex = regex_from_str(schema, None, None).map_err(|error| error.to_string())?;
        self.index(&regex).map(Into::into)
    }

    fn start(&self, grammar: &Self::Grammar) -> Guide {
        let words = vec![0; 128_256_usize.max(grammar.vocab_size()).div_ceil(32)];
        Guide { index: grammar.clone(), state: grammar.initial_state(), words }
    }

    fn mask(&self, guide: &mut Guide) -> bool {
        guide.words.fill(0);
        let Some(tokens) = guide.index.allowed_tokens_iter(&guide.state) else { return false };
        for &token in tokens {
            if let Some(word) = guide.words.get_mut(token as usize / 32) {
                *word |= 1 << (token % 32);
            }
        }
        true
    }

    fn mask_and_accept(&self, guide: &mut Guide, token: u32) -> bool {
        let legal = self.mask(guide)
            && guide
                .words
                .get(token as usize / 32)
                .is_some_and(|word| word >> (token % 32) & 1 == 1);
        match guide.index.next_state(&guide.state, &token) {
            Some(next) if legal => {
                guide.state = next;
                true
            }
            _ => false,
        }
    }

    fn is_accepting(&self, guide: &mut Guide) -> bool {
        guide.index.is_final_state(&guide.state)
    }
}
