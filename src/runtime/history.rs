//! The tokens of a sequence, and how often each stands in the window of the penalties.

use std::num::NonZeroUsize;

use hashbrown::HashMap;

use crate::ids::TokenId;

/// The tokens of one sequence: a prompt that penalties may look at, then what was generated.
#[derive(Clone, Debug, Default)]
pub struct History {
    tokens: Vec<TokenId>,
    /// How many of them are the prompt.
    prompt: usize,
    /// The number of latest tokens that are counted; `None` is all.
    window: Option<NonZeroUsize>,
    /// How often each token stands in the window; kept only where somebody asks.
    counts: Option<HashMap<TokenId, u32>>,
}

impl History {
    /// Returns the history without tokens, whose counts nobody asks for.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the history of the prompt `prompt`, which counts how often each token stands among
    /// the latest `window` tokens (all, if `None`).
    #[must_use]
    pub fn counting(prompt: &[TokenId], window: Option<NonZeroUsize>) -> Self {
        let mut history = Self { window, counts: Some(HashMap::new()), ..Self::default() };
        prompt.iter().for_each(|&token| history.push(token));
        history.prompt = prompt.len();
        history
    }

    /// Returns the generated tokens.
    #[must_use]
    pub fn generated(&self) -> &[TokenId] {
        &self.tokens[self.prompt..]
    }

    /// Returns the tokens before the generated ones, if they are looked at.
    #[must_use]
    pub fn prompt(&self) -> &[TokenId] {
        &self.tokens[..self.prompt]
    }

    /// Returns the tokens of the window and how often each stands in it, in no order. Empty if the
    /// history does not count.
    pub fn counts(&self) -> impl Iterator<Item = (TokenId, u32)> + '_ {
        self.counts.iter().flatten().map(|(&token, &count)| (token, count))
    }

    /// Appends a token.
    pub fn push(&mut self, token: TokenId) {
        self.tokens.push(token);
        self.count(token, true);
        if let Some(left) = self.before_window() {
            self.count(left, false);
        }
    }

    /// Takes the last `tokens` generated tokens away, or all there are.
    pub fn truncate(&mut self, tokens: usize) {
        for _ in 0..tokens.min(self.generated().len()) {
            let entering = self.before_window();
            if let Some(last) = self.tokens.pop() {
                self.count(last, false);
            }
            if let Some(token) = entering {
                self.count(token, true);
            }
        }
    }

    /// Returns the token just before the window.
    fn before_window(&self) -> Option<TokenId> {
        let at = self.tokens.len().checked_sub(self.window?.get() + 1)?;
        Some(self.tokens[at])
    }

    fn count(&mut self, token: TokenId, more: bool) {
        let Some(counts) = &mut self.counts else { return };
        let count = counts.entry(token).or_insert(0);
        *count = if more { count.saturating_add(1) } else { count.saturating_sub(1) };
        if *count == 0 {
            counts.remove(&token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &[u32]) -> Vec<TokenId> {
        list.iter().map(|&id| TokenId::new(id)).collect()
    }

    fn sorted(history: &History) -> Vec<(u32, u32)> {
        let mut counts: Vec<_> = history.counts().map(|(id, n)| (id.get(), n)).collect();
        counts.sort_unstable();
        counts
    }

    #[test]
    fn counts_follow_the_window_forwards_and_backwards() {
        for window in [None, NonZeroUsize::new(1), NonZeroUsize::new(3), NonZeroUsize::new(100)] {
            let all = ids(&[1, 2, 1, 1, 3, 2, 2, 1, 5, 1]);
            let mut history = History::counting(&all[..2], window);
            let mut seen = vec![sorted(&history)];
            for (i, &token) in all.iter().enumerate().skip(2) {
                history.push(token);
                let start = window.map_or(0, |w| (i + 1).saturating_sub(w.get()));
                let mut expected = std::collections::BTreeMap::new();
                all[start..=i].iter().for_each(|t| *expected.entry(t.get()).or_insert(0) += 1);
                assert_eq!(sorted(&history), expected.into_iter().collect::<Vec<_>>());
                seen.push(sorted(&history));
            }
            while let Some(expected) = seen.pop() {
                assert_eq!(sorted(&history), expected);
                history.truncate(1);
            }
            assert!(history.generated().is_empty());
            history.truncate(5);
            assert!(!sorted(&history).is_empty(), "the prompt stays");
        }
    }
}
