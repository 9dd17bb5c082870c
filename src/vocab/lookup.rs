//! Byte strings of tokens in, ids out: exact and longest-prefix look-up, and the greedy encoding of
//! vocabularies that have no tokenizer.
//!
//! A sorted table: a look-up narrows a range by one byte at a time, O(length · log tokens).

use std::cmp::Reverse;

use crate::ids::TokenId;
use crate::vocab::Vocabulary;

/// Sorted byte strings and their ids. Of several ids with the same bytes it knows the highest: where
/// published vocabularies have two, the lower is the byte-fallback token, which models use for what
/// has no other.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    entries: Vec<(Box<[u8]>, TokenId)>,
}

impl Lookup {
    pub(crate) fn new(entries: impl IntoIterator<Item = (Box<[u8]>, TokenId)>) -> Self {
        let mut entries: Vec<_> =
            entries.into_iter().filter(|(bytes, _)| !bytes.is_empty()).collect();
        entries.sort_unstable_by(|a, b| (&a.0, Reverse(a.1)).cmp(&(&b.0, Reverse(b.1))));
        entries.dedup_by(|later, first| later.0 == first.0);
        Self { entries }
    }

    /// Returns the look-up of all text tokens.
    pub(crate) fn of_text(vocabulary: &Vocabulary) -> Self {
        Self::new(vocabulary.ids().map(|id| (vocabulary.bytes(id).into(), id)))
    }

    pub(crate) fn get(&self, bytes: &[u8]) -> Option<TokenId> {
        let position = self.entries.binary_search_by(|(own, _)| (**own).cmp(bytes)).ok()?;
        Some(self.entries[position].1)
    }

    /// Returns the longest entry with which `text` begins, and its length in bytes.
    pub(crate) fn longest_prefix(&self, text: &[u8]) -> Option<(usize, TokenId)> {
        let mut found = None;
        // All entries here agree with `text` in the bytes before `depth`.
        let mut range = &self.entries[..];
        for (depth, byte) in text.iter().enumerate() {
            let start = range.partition_point(|(own, _)| own.get(depth) < Some(byte));
            range = &range[start..];
            let end = range.partition_point(|(own, _)| own.get(depth) == Some(byte));
            range = &range[..end];
            let Some((first, id)) = range.first() else { break };
            if first.len() == depth + 1 {
                found = Some((depth + 1, *id));
            }
        }
        found
    }
}

impl Vocabulary {
    /// Returns tokens whose bytes are exactly `text`, taking the longest possible token at each
    /// place and of equal ones the highest id, or `None` if some place begins no token.
    ///
    /// This is not how models cut text. It is for vocabularies without a tokenizer, and never fails
    /// where every byte is a token. Cost: O(bytes · log tokens); the first call sorts the tokens.
    ///
    /// ```
    /// let vocabulary = schemac::Vocabulary::embedded();
    /// let tokens = vocabulary.encode_greedy(br#"{"name":"#).unwrap();
    /// assert_eq!(vocabulary.decode(&tokens), br#"{"name":"#);
    /// ```
    #[must_use]
    pub fn encode_greedy(&self, text: &[u8]) -> Option<Vec<TokenId>> {
        let lookup = self.lookup();
        let mut tokens = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let (len, id) = lookup.longest_prefix(&text[at..])?;
            tokens.push(id);
            at += len;
        }
        Some(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::Token;

    fn lookup(texts: &[&str]) -> Lookup {
        let entry =
            |(id, text): (usize, &&str)| (text.as_bytes().into(), TokenId::from_index(id).unwrap());
        Lookup::new(texts.iter().enumerate().map(entry))
    }

    #[test]
    fn longest_prefix_equals_a_scan_of_all_entries() {
        let texts = ["", "a", "ab", "abc", "abcde", "b", "ba", "bab", "c", "ab", "é"];
        let lookup = lookup(&texts);
        for text in ["abcd", "abcde", "abab", "babab", "d", "", "éa", "ca", "aé"] {
            let scan = texts
                .iter()
                .enumerate()
                .filter(|(_, own)| !own.is_empty() && text.starts_with(**own))
                .max_by_key(|(id, own)| (own.len(), *id))
                .map(|(id, own)| (own.len(), TokenId::from_index(id).unwrap()));
            assert_eq!(lookup.longest_prefix(text.as_bytes()), scan, "{text}");
        }
        assert_eq!(lookup.get(b"ab"), TokenId::from_index(9), "the highest id");
        assert_eq!(lookup.get(b"abcd"), None);
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
