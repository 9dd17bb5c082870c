//! Spelling a text with as few tokens as possible: the last resort of a token budget.

use crate::ids::TokenId;
use crate::vocab::{Trie, Vocabulary};

/// Returns the fewest tokens whose bytes are exactly `text`, or `None` if no tokens spell it. Among
/// equally few, the longest token comes first; among tokens with the same bytes, the lowest id.
///
/// Cost: O(bytes · longest match in the trie).
#[must_use]
pub fn fewest_tokens(vocabulary: &Vocabulary, text: &[u8]) -> Option<Vec<TokenId>> {
    let trie = vocabulary.trie();
    // For each place the number of tokens from there to the end, and the first of them with its
    // length; filled backwards.
    let mut best: Vec<Option<(usize, TokenId, usize)>> = vec![None; text.len() + 1];
    for at in (0..text.len()).rev() {
        for (length, token) in matches(trie, &text[at..]) {
            let rest = at + length;
            let after = if rest == text.len() { Some(0) } else { best[rest].map(|(n, ..)| n) };
            if let Some(after) = after
                && best[at].is_none_or(|(fewest, ..)| after < fewest)
            {
                best[at] = Some((after + 1, token, length));
            }
        }
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let (_, token, length) = best[at]?;
        tokens.push(token);
        at += length;
    }
    Some(tokens)
}

/// Returns the tokens with which `text` begins and their lengths, the shortest first; of several
/// with the same bytes the lowest.
fn matches<'a>(trie: &'a Trie, text: &'a [u8]) -> impl Iterator<Item = (usize, TokenId)> + 'a {
    let mut node = None;
    let walk = text.iter().enumerate().map_while(move |(depth, &byte)| {
        let next = match node {
            None => trie.root_child(byte),
            Some(node) => trie.children(node).find(|&child| trie.byte(child) == byte),
        };
        node = next;
        next.map(|node| (depth + 1, node))
    });
    walk.filter_map(|(length, node)| Some((length, *trie.tokens(node).iter().min()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vocab::Token;

    fn vocabulary(texts: &[&str]) -> Vocabulary {
        let mut tokens: Vec<_> = texts.iter().map(|t| Token::Text(t.as_bytes().into())).collect();
        tokens.push(Token::Special("end".into()));
        Vocabulary::new(tokens, [TokenId::from_index(texts.len()).unwrap()]).unwrap()
    }

    fn spelled(vocabulary: &Vocabulary, text: &str) -> Option<Vec<u32>> {
        let tokens = fewest_tokens(vocabulary, text.as_bytes())?;
        assert_eq!(vocabulary.decode(&tokens), text.as_bytes());
        Some(tokens.into_iter().map(TokenId::get).collect())
    }

    #[test]
    fn fewest_beats_longest_first() {
        // Longest first takes `abc`, and then four single letters.
        let vocabulary = vocabulary(&["a", "b", "c", "d", "e", "f", "g", "abc", "ab", "cdefg"]);
        assert_eq!(spelled(&vocabulary, "abcdefg"), Some(vec![8, 9]));
        assert_eq!(spelled(&vocabulary, ""), Some(vec![]));
    }

    #[test]
    fn dead_ends_are_avoided_and_what_cannot_be_spelled_is_none() {
        let vocabulary = vocabulary(&["a", "aa", "aab", "bc", "bc"]);
        assert_eq!(spelled(&vocabulary, "aabc"), Some(vec![1, 3]));
        assert_eq!(spelled(&vocabulary, "aabb"), None);
    }

    #[test]
    fn single_bytes_spell_everything() {
        let mut tokens: Vec<_> = (0..=u8::MAX).map(|byte| Token::Text([byte].into())).collect();
        tokens.push(Token::Special("end".into()));
        let vocabulary = Vocabulary::new(tokens, [TokenId::new(256)]).unwrap();
        assert_eq!(spelled(&vocabulary, "né").map(|tokens| tokens.len()), Some(3));
    }
}
