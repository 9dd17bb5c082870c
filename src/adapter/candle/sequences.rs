//! What a network remembers of several sequences: histories in, logits out, and no token is run that a
//! memory has.
//!
//! A history goes on from the memory with which it has most tokens in common. If that has other tokens
//! behind these, it is forked, or cut where little is lost. What has not been used for longest is
//! forgotten first.

use std::num::NonZeroUsize;

use candle_core::Result;

use crate::ids::TokenId;

/// Tokens that are run at a time for one sequence. Larger runs are hardly faster, and need more memory.
const PREFILL: usize = 256;

/// A memory with at most so many other tokens behind those in common is cut, not forked: running a
/// sequence again that far costs about what a copy costs. So it is where drafts are refused.
const SHORT: usize = 16;

/// A model whose memory of a sequence is apart from it.
pub(super) trait Network {
    /// Keys and values of one sequence.
    type Memory;

    /// Returns the memory of no token.
    fn fresh(&self) -> Self::Memory;

    /// Returns a memory of the first `len` tokens of another.
    fn fork(&self, memory: &Self::Memory, len: usize) -> Result<Self::Memory>;

    /// Forgets all but the first `len` tokens.
    fn cut(&self, memory: &mut Self::Memory, len: usize);

    /// Returns the bytes that a memory takes.
    fn bytes(&self, memory: &Self::Memory) -> usize;

    /// Runs on the tokens of each part, which follow on its memory, and returns the logits after the
    /// last of them: so many rows as the parts want together, in their order.
    fn run(&self, parts: &mut [Part<'_, Self::Memory>]) -> Result<Vec<Vec<f32>>>;
}

/// New tokens of one sequence.
pub(super) struct Part<'a, M> {
    pub(super) memory: &'a mut M,
    pub(super) tokens: &'a [u32],
    /// After how many of the last tokens logits are wanted.
    pub(super) rows: usize,
}

/// How much a [`super::GgufModel`] remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheLimits {
    /// The most sequences: 16 unless it is set. So many are run at a time, too.
    pub sequences: NonZeroUsize,
    /// The most bytes of keys and values between two calls: 2³⁰ unless it is set. The last sequence is
    /// kept even if it is larger, and a call takes what its own sequences need.
    pub bytes: usize,
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self { sequences: NonZeroUsize::new(16).unwrap_or(NonZeroUsize::MIN), bytes: 1 << 30 }
    }
}

impl CacheLimits {
    /// Sets [`CacheLimits::sequences`].
    #[must_use]
    pub const fn sequences(mut self, sequences: NonZeroUsize) -> Self {
        self.sequences = sequences;
        self
    }

    /// Sets [`CacheLimits::bytes`].
    #[must_use]
    pub const fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }
}

/// A network with what it remembers.
pub(super) struct Sequences<N: Network> {
    pub(super) network: N,
    pub(super) limits: CacheLimits,
    /// The last used is the last.
    known: Vec<Known<N::Memory>>,
}

/// A sequence that is remembered.
struct Known<M> {
    tokens: Vec<TokenId>,
    memory: M,
}

impl<N: Network> Sequences<N> {
    pub(super) const fn new(network: N, limits: CacheLimits) -> Self {
        Self { network, limits, known: Vec::new() }
    }

    /// Writes the logits after the last `rows` tokens of each history, one after another. Each history
    /// has at least so many tokens, and `rows` is not 0. After an error what is remembered is still true.
    pub(super) fn logits(
        &mut self,
        histories: &[&[TokenId]],
        rows: usize,
    ) -> Result<Vec<Vec<f32>>> {
        let mut logits = Vec::with_capacity(histories.len() * rows);
        for histories in histories.chunks(self.limits.sequences.get()) {
            let shared = shared_by(histories, rows);
            if histories.len() > 1 && self.remembered(shared) < shared.len() {
                // Once for all.
                let mut used = Vec::new();
                let taken = self.take(shared, shared.len(), &mut used);
                let ran = taken.and_then(|()| self.extend(&mut used, &[shared], 0));
                self.put_back(used);
                ran?;
            }
            let mut used = Vec::with_capacity(histories.len());
            let taken = histories
                .iter()
                .try_for_each(|history| self.take(history, history.len() - rows, &mut used));
            let ran = taken.and_then(|()| self.extend(&mut used, histories, rows));
            self.put_back(used);
            logits.extend(ran?);
        }
        Ok(logits)
    }

    /// Returns how many of the first tokens of `history` a memory has, at most.
    fn remembered(&self, history: &[TokenId]) -> usize {
        self.known.iter().map(|known| in_common(&known.tokens, history)).max().unwrap_or(0)
    }

    /// Moves to `used` a memory of as much as there is of the first `most` tokens of `history`, and of
    /// nothing else.
    fn take(
        &mut self,
        history: &[TokenId],
        most: usize,
        used: &mut Vec<Known<N::Memory>>,
    ) -> Result<()> {
        let history = &history[..most];
        // Of the same length, one that need not be forked, and of these the last used.
        let rank = |(at, known): (usize, &Known<N::Memory>)| {
            let common = in_common(&known.tokens, history);
            (common, known.tokens.len() - common <= SHORT, at)
        };
        let free = self.known.iter().enumerate().map(rank).max();
        if let Some((common, true, at)) = free
            && common > 0
            && used.iter().all(|used| in_common(&used.tokens, history) <= common)
        {
            let mut known = self.known.remove(at);
            known.tokens.truncate(common);
            self.network.cut(&mut known.memory, common);
            used.push(known);
            return Ok(());
        }
        let all = self.known.iter().chain(used.iter());
        let best = all.max_by_key(|known| in_common(&known.tokens, history));
        let common = best.map_or(0, |best| in_common(&best.tokens, history));
        let memory = match best {
            Some(best) if common > 0 => self.network.fork(&best.memory, common)?,
            _ => self.network.fresh(),
        };
        used.push(Known { tokens: history[..common].to_vec(), memory });
        if self.known.len() + used.len() > self.limits.sequences.get() && !self.known.is_empty() {
            self.known.remove(0);
        }
        Ok(())
    }

    /// Runs the memories that were taken on what the histories have more, and returns the rows.
    fn extend(
        &self,
        used: &mut [Known<N::Memory>],
        histories: &[&[TokenId]],
        rows: usize,
    ) -> Result<Vec<Vec<f32>>> {
        for (known, history) in used.iter_mut().zip(histories) {
            // A shared run at the end, of those tokens that give rows.
            while history.len() - known.tokens.len() > PREFILL.max(rows) {
                let next = &history[known.tokens.len()..][..PREFILL];
                self.run(std::slice::from_mut(known), &[next], 0)?;
            }
        }
        let rest: Vec<_> =
            used.iter().zip(histories).map(|(known, all)| &all[known.tokens.len()..]).collect();
        self.run(used, &rest, rows)
    }

    fn run(
        &self,
        used: &mut [Known<N::Memory>],
        tokens: &[&[TokenId]],
        rows: usize,
    ) -> Result<Vec<Vec<f32>>> {
        let ids: Vec<Vec<u32>> =
            tokens.iter().map(|tokens| tokens.iter().map(|token| token.get()).collect()).collect();
        let mut parts: Vec<_> = used
            .iter_mut()
            .zip(&ids)
            .map(|(known, tokens)| Part { memory: &mut known.memory, tokens, rows })
            .collect();
        let ran = self.network.run(&mut parts);
        for (known, tokens) in used.iter_mut().zip(tokens) {
            if ran.is_ok() {
                known.tokens.extend_from_slice(tokens);
            } else {
                self.network.cut(&mut known.memory, known.tokens.len());
            }
        }
        ran
    }

    /// Remembers what was used, as far as there is room.
    fn put_back(&mut self, used: Vec<Known<N::Memory>>) {
        self.known.extend(used.into_iter().filter(|known| !known.tokens.is_empty()));
        let mut bytes: usize =
            self.known.iter().map(|known| self.network.bytes(&known.memory)).sum();
        while self.known.len() > 1
            && (self.known.len() > self.limits.sequences.get() || bytes > self.limits.bytes)
        {
            bytes -= self.network.bytes(&self.known.remove(0).memory);
        }
    }
}

fn in_common(a: &[TokenId], b: &[TokenId]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns the tokens with which all histories begin, without the last `rows` of any.
fn shared_by<'a>(histories: &[&'a [TokenId]], rows: usize) -> &'a [TokenId] {
    let Some(&first) = histories.first() else { return &[] };
    let common = histories.iter().map(|history| in_common(&history[..history.len() - rows], first));
    &first[..common.min().unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Remembers its tokens; the logits after a token are the history up to it. Counts tokens, runs and
    /// the tokens that forks copy.
    #[derive(Default)]
    struct Recorder {
        tokens: Cell<usize>,
        runs: Cell<usize>,
        copied: Cell<usize>,
    }

    fn add(to: &Cell<usize>, count: usize) {
        to.set(to.get() + count);
    }

    fn as_logits(tokens: &[u32]) -> Vec<f32> {
        tokens.iter().map(|&token| token as f32).collect()
    }

    impl Network for Recorder {
        type Memory = Vec<u32>;

        fn fresh(&self) -> Vec<u32> {
            Vec::new()
        }

        fn fork(&self, memory: &Vec<u32>, len: usize) -> Result<Vec<u32>> {
            add(&self.copied, len);
            Ok(memory[..len].to_vec())
        }

        fn cut(&self, memory: &mut Vec<u32>, len: usize) {
            memory.truncate(len);
        }

        fn bytes(&self, memory: &Vec<u32>) -> usize {
            memory.len()
        }

        fn run(&self, parts: &mut [Part<'_, Vec<u32>>]) -> Result<Vec<Vec<f32>>> {
            add(&self.runs, 1);
            let mut rows = Vec::new();
            for part in parts {
                assert!(!part.tokens.is_empty() && part.tokens.len() <= PREFILL.max(part.rows));
                add(&self.tokens, part.tokens.len());
                part.memory.extend_from_slice(part.tokens);
                if part.tokens.contains(&u32::MAX) {
                    candle_core::bail!("no such token");
                }
                let len = part.memory.len();
                rows.extend((len - part.rows..len).map(|at| as_logits(&part.memory[..=at])));
            }
            Ok(rows)
        }
    }

    fn ids(tokens: &[u32]) -> Vec<TokenId> {
        tokens.iter().copied().map(TokenId::new).collect()
    }

    fn sequences(limits: CacheLimits) -> Sequences<Recorder> {
        Sequences::new(Recorder::default(), limits)
    }

    fn most(sequences: usize) -> CacheLimits {
        CacheLimits::default().sequences(NonZeroUsize::new(sequences).unwrap())
    }

    /// Asks for histories together, checks the rows, and returns the tokens and runs that it took.
    fn ask(model: &mut Sequences<Recorder>, histories: &[&[u32]], rows: usize) -> (usize, usize) {
        let before = (model.network.tokens.get(), model.network.runs.get());
        let tokens: Vec<Vec<TokenId>> = histories.iter().map(|history| ids(history)).collect();
        let found = model.logits(&tokens.iter().map(Vec::as_slice).collect::<Vec<_>>(), rows);
        let wanted: Vec<Vec<f32>> = histories
            .iter()
            .flat_map(|history| (history.len() - rows..history.len()).map(|at| &history[..=at]))
            .map(as_logits)
            .collect();
        assert_eq!(found.unwrap(), wanted);
        (model.network.tokens.get() - before.0, model.network.runs.get() - before.1)
    }

    #[test]
    fn a_continuation_runs_on_what_is_new() {
        let mut model = sequences(CacheLimits::default());
        for (history, tokens) in [
            (&[1, 2, 3][..], 3),
            (&[1, 2, 3, 4], 1),
            // The logits themselves are not kept.
            (&[1, 2, 3, 4], 1),
            (&[1, 2, 3, 4, 5, 6], 2),
        ] {
            assert_eq!(ask(&mut model, &[history], 1), (tokens, 1));
        }
        assert_eq!(model.network.copied.get(), 0);
    }

    #[test]
    fn refused_drafts_are_cut_off_and_accepted_ones_are_kept() {
        let mut model = sequences(CacheLimits::default());
        ask(&mut model, &[&[1, 2, 3]], 1);
        // Three drafts, judged with the token before them in one run.
        assert_eq!(ask(&mut model, &[&[1, 2, 3, 4, 5, 6]], 4), (4, 1));
        // The second was refused.
        assert_eq!(ask(&mut model, &[&[1, 2, 3, 4, 9, 7, 8]], 3), (3, 1));
        assert_eq!((model.network.copied.get(), model.known.len()), (0, 1));
    }

    #[test]
    fn sequences_that_part_are_all_remembered() {
        let mut model = sequences(CacheLimits::default());
        let prompt: Vec<u32> = (100..150).collect();
        let long = |token: u32| [&prompt[..], &[token; 20]].concat();
        ask(&mut model, &[&long(1)], 1);
        assert_eq!(ask(&mut model, &[&long(2)], 1), (20, 1));
        assert_eq!(ask(&mut model, &[&long(3)], 1), (20, 1));
        assert_eq!(model.network.copied.get(), 100);
        for token in 1..=3 {
            assert_eq!(ask(&mut model, &[&[&long(token)[..], &[9]].concat()], 1), (1, 1));
        }
    }

    #[test]
    fn what_sequences_share_is_run_once_and_the_rest_together() {
        let mut model = sequences(CacheLimits::default());
        let prompt: Vec<u32> = (0..50).collect();
        let same = vec![&prompt[..]; 8];
        // All but the last token once, and that for each.
        assert_eq!(ask(&mut model, &same, 1), (49 + 8, 2));
        let parted: Vec<Vec<u32>> = (0..8).map(|i| [&prompt[..], &[i]].concat()).collect();
        let parted: Vec<&[u32]> = parted.iter().map(Vec::as_slice).collect();
        assert_eq!(ask(&mut model, &parted, 1), (8, 1));
    }

    #[test]
    fn a_beam_goes_on_from_what_it_keeps() {
        let mut model = sequences(CacheLimits::default());
        ask(&mut model, &[&[1, 2, 3]], 1);
        ask(&mut model, &[&[1, 2, 3, 4], &[1, 2, 3, 5]], 1);
        // Both go on from the same one.
        assert_eq!(ask(&mut model, &[&[1, 2, 3, 5, 6], &[1, 2, 3, 5, 7]], 1), (2, 1));
        assert_eq!(ask(&mut model, &[&[1, 2, 3, 5, 6, 8], &[1, 2, 3, 5, 7, 9]], 1), (2, 1));
    }

    #[test]
    fn what_was_not_used_for_longest_is_forgotten_first() {
        let mut model = sequences(most(2));
        let [a, b, c] = [[1, 1, 1], [2, 2, 2], [3, 3, 3]];
        for (history, tokens) in [(&a, 3), (&b, 3), (&a, 1), (&c, 3), (&a, 1), (&b, 3), (&c, 3)] {
            assert_eq!(ask(&mut model, &[history], 1), (tokens, 1));
            assert!(model.known.len() <= 2);
        }
        // More than are remembered are run by so many at a time.
        assert_eq!(ask(&mut model, &[&a, &b, &c], 1).1, 2);
        assert_eq!(model.known.len(), 2);
        // By bytes: one of them is too many, and the last one stays.
        let mut model = sequences(CacheLimits::default().bytes(5));
        ask(&mut model, &[&a], 1);
        ask(&mut model, &[&b], 1);
        assert_eq!((ask(&mut model, &[&a], 1), model.known.len()), ((3, 1), 1));
        ask(&mut model, &[&[1; 9]], 1);
        assert_eq!(ask(&mut model, &[&[1; 10]], 1), (1, 1));
    }

    #[test]
    fn long_prompts_run_in_parts() {
        let long: Vec<u32> = (0..1_000).collect();
        let mut model = sequences(CacheLimits::default());
        assert_eq!(ask(&mut model, &[&long], 1), (1_000, 4));
        assert_eq!(ask(&mut model, &[&long[..999]], 1), (1, 1));
        assert_eq!(ask(&mut model, &[&long], 600), (600, 1));
    }

    #[test]
    fn a_failed_run_leaves_nothing_half_remembered() {
        let mut model = sequences(CacheLimits::default());
        ask(&mut model, &[&[1, 2]], 1);
        assert!(model.logits(&[&ids(&[1, 2, u32::MAX])], 1).is_err());
        assert!(model.logits(&[&ids(&[1, 2, 4]), &ids(&[1, 2, u32::MAX])], 1).is_err());
        assert_eq!(ask(&mut model, &[&[1, 2, 3]], 1), (1, 1));
    }

    /// Any series of histories gives the rows of each alone, which [`ask`] checks.
    #[test]
    fn memories_never_mix() {
        use rand::{Rng, SeedableRng};
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(3);
        for most_sequences in 1..6 {
            let mut model = sequences(most(most_sequences).bytes(150));
            for _ in 0..500 {
                let rows = random.random_range(1..4);
                let histories: Vec<Vec<u32>> = (0..random.random_range(1..8))
                    .map(|_| {
                        let len = random.random_range(rows..40);
                        (0..len).map(|_| u32::from(random.random_bool(0.1))).collect()
                    })
                    .collect();
                let histories: Vec<&[u32]> = histories.iter().map(Vec::as_slice).collect();
                ask(&mut model, &histories, rows);
                assert!(model.known.len() <= most_sequences);
            }
        }
    }
}
