//! Text in, token ids out, by the longest token at each place: the encoding of vocabularies that
//! have no tokenizer.

use crate::ids::TokenId;
use crate::vocab::{Trie, Vocabulary};

impl Trie {
    /// Returns the token whose bytes are `text`. Of several it is the one with the highest id: where
    /// published vocabularies have two, the lower is the byte-fallback token, which models use only
    /// for what has no other.
    pub(crate) fn token_of(&self, text: &[u8]) -> Option<TokenId> {
        self.tokens(self.find(text)?).last().copied()
    }

    /// Returns the length in bytes of the longest token with which `text` begins, and that token, as
    /// [`Trie::token_of`] chooses it.
    pub(crate) fn longest_prefix(&self, text: &[u8]) -> Option<(usize, TokenId)> {
        let mut found = None;
        let mut node = self.root_child(*text.first()?);
        for len in 1..=text.len() {
            let Some(here) = node else { break };
            if let Some(&token) = self.tokens(here).last() {
                found = Some((len, token));
            }
            let next = text.get(len).copied();
            node = self.children(here).find(|&child| Some(self.byte(child)) == next);
        }
        found
    }
}

impl Vocabulary {
    /// Returns tokens whose bytes are exactly `text`, taking the longest possible token at each
    /// place and of equal ones the highest id, or `None` if some place begins no token.
    ///
    /// This is not how models cut text. It is for vocabularies without a tokenizer, and never fails
    /// where every byte is a token. Cost: O(bytes); the first call makes [`Vocabulary::trie`].
    ///
    /// ```
    /// let vocabulary = schemac::Vocabulary::embedded();
    /// let tokens = vocabulary.encode_greedy(br#"{"name":"#).unwrap();
    /// assert_eq!(vocabulary.decode(&tokens), br#"{"name":"#);
    /// ```
    #[must_use]
    pub fn encode_greedy(&self, text: &[u8]) -> Option<Vec<TokenId>> {
        let trie = self.trie();
        let mut tokens = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (len, token) = trie.longest_prefix(rest)?;
            tokens.push(token);
            rest = &rest[len..];
        }
        Some(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::Token;

    #[test]
    fn longest_prefix_equals_a_scan_of_all_entries() {
        let texts = ["a", "ab", "abc", "abcde", "b", "ba", "bab", "c", "ab", "é"];
        let id = |index| TokenId::from_index(index).unwrap();
        let entries = texts.iter().enumerate().map(|(index, text)| (text.as_bytes(), id(index)));
        let trie = Trie::from_entries(entries.collect());
        for text in ["abcd", "abcde", "abab", "babab", "d", "", "éa", "ca", "aé"] {
            let scan = texts
                .iter()
                .enumerate()
                .filter(|(_, own)| text.starts_with(**own))
                .max_by_key(|(index, own)| (own.len(), *index))
                .map(|(index, own)| (own.len(), id(index)));
            assert_eq!(trie.longest_prefix(text.as_bytes()), scan, "{text}");
        }
        assert_eq!(trie.token_of(b"ab"), Some(id(8)), "the highest id");
        assert_eq!(trie.token_of(b"abcd"), None);
    }

    #[test]
    fn greedy_encoding_spells_exactly_or_not_at_all() {
        let tokens = ["a", "ab", "abc", "b"].map(|text| Token::Text(text.as_bytes().into()));
        let end = Token::Special("end".into());
        let vocabulary =
            Vocabulary::new(tokens.into_iter().chain([end]).collect(), [TokenId::new(4)]).unwrap();
        let encode = |text: &str| vocabulary.encode_greedy(text.as_bytes());
        assert_eq!(encode("abcab").unwrap(), [TokenId::new(2), TokenId::new(1)]);
        assert_eq!(encode(""), Some(vec![]));
        assert_eq!(encode("abd"), None);
        assert_eq!(encode("end"), None, "special tokens have no text");
    }
}
