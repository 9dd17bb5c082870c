//! The tables that all sequences under one grammar share: local masks, rests, and unions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::automaton::{self, Automaton, Configuration, Stack, Thread};
use crate::error::Error;
use crate::ids::{StateId, TokenId};
use crate::ir::{Departure, Grammar};
use crate::limits::{Budget, Limits};
use crate::mask::TokenMask;
use crate::token::closing::{Completion, Way};
use crate::token::graph::Graph;
use crate::token::local::{self, Local, LocalAndBelow};
use crate::token::places::Places;
use crate::token::snapshot::{LocalSnapshot, Masks, TokenAutomatonSnapshot};
use crate::vocab::{Trie, Vocabulary};

/// What a local mask is of: a state, rests, and whether there may be a frame below.
pub(crate) type LocalId = (StateId, RestId, bool);

/// Where a stored local mask belongs: its state, its rests, whether there may be a frame below, and
/// the rests that go on there.
pub(crate) type LocalKey = (StateId, u32, bool, Option<u32>);

/// Where a trie of rests goes on: the state, the rests, and the frames below.
type Pending<'a> = (StateId, RestId, Option<&'a Arc<Stack>>);

pub(crate) type Map<K, V> = RwLock<HashMap<K, V, foldhash::fast::RandomState>>;

/// A grammar compiled against a vocabulary: states, and for each the set of legal tokens, computed
/// when it is first needed and then kept for all sequences. `Send + Sync`; share it in an [`Arc`].
#[derive(Debug)]
pub struct TokenAutomaton {
    automaton: Automaton,
    vocabulary: Arc<Vocabulary>,
    departures: Vec<Departure>,
    /// Local masks by state and rests.
    locals: Map<LocalId, Entry>,
    /// Tries of rests; number 0 stands for the vocabulary's own.
    rests: RwLock<Rests>,
    /// Whether states are total on plain JSON text.
    total: Map<StateId, bool>,
    /// Unions by the numbers of their members, and whether end tokens are added.
    unions: Map<(SmallVec<[u32; 4]>, bool), TokenMask>,
    /// Where the tokens of local masks lead; `None` where that is not known.
    pub(crate) places: Map<LocalId, Option<Arc<Places>>>,
    /// The shortest known ways to complete the output from places near the end of a budget, by their
    /// structure.
    pub(crate) ways: Map<Vec<u64>, Option<Way>>,
    /// How many tokens end the rules of states, and whether they write no text that must be fresh.
    pub(crate) closings: Map<StateId, (u64, bool)>,
    /// How the shortest outputs are completed, by a short search and by a long one, once it was asked for.
    pub(crate) start_completions: [OnceLock<Option<Completion>>; 2],
    pub(crate) graph: Graph,
    end_mask: TokenMask,
    next_number: AtomicUsize,
    mask_bytes: AtomicUsize,
}

/// An interned trie of rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RestId(u32);

impl RestId {
    pub(crate) const VOCABULARY: Self = Self(0);
}

#[derive(Debug, Default)]
struct Rests {
    tries: Vec<Arc<Trie>>,
    by_hash: HashMap<u64, Vec<u32>, foldhash::fast::RandomState>,
    hasher: foldhash::fast::RandomState,
}

/// A local mask with its number, and the rests that go on below.
#[derive(Clone, Debug)]
struct Entry {
    number: u32,
    local: Arc<Local>,
    below: Option<RestId>,
    /// Whether it is memoised, so that one who keeps its mask takes no more memory.
    kept: bool,
}

/// What an automaton has grown to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Expressions of the grammar and its derivatives.
    pub expressions: usize,
    /// States of the byte automaton.
    pub states: usize,
    /// Local masks: one for each state and trie of rests that was met.
    pub local_masks: usize,
    /// Masks of configurations that are unions of several local masks.
    pub unions: usize,
    /// States of the token-level automaton, which are places where sequences have been.
    pub token_states: usize,
    /// Tries of token rests.
    pub rests: usize,
    /// Bytes of all memoised masks and tries, of what is kept of the places that tokens lead to, and of
    /// the token-level automaton; not of the states of the byte automaton.
    pub mask_bytes: usize,
}

impl TokenAutomaton {
    /// Returns the token automaton of `grammar` over `vocabulary`. Computes no mask yet.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Unsatisfiable`] if nothing matches the grammar, and
    /// [`crate::ErrorKind::BudgetExceeded`].
    pub fn new(
        mut grammar: Grammar,
        vocabulary: Arc<Vocabulary>,
        limits: Limits,
    ) -> Result<Self, Error> {
        let departures = std::mem::take(&mut grammar.departures);
        let automaton = Automaton::new(grammar, limits)?;
        Ok(Self::over(automaton, vocabulary, departures))
    }

    /// Returns the token automaton without a mask yet.
    fn over(automaton: Automaton, vocabulary: Arc<Vocabulary>, departures: Vec<Departure>) -> Self {
        let end_mask = TokenMask::from_ids(vocabulary.len(), vocabulary.end_tokens().to_vec());
        Self {
            graph: Graph::new(&automaton),
            automaton,
            vocabulary,
            departures,
            locals: Map::default(),
            rests: RwLock::default(),
            total: Map::default(),
            unions: Map::default(),
            places: Map::default(),
            ways: Map::default(),
            closings: Map::default(),
            start_completions: Default::default(),
            end_mask,
            next_number: AtomicUsize::new(0),
            mask_bytes: AtomicUsize::new(0),
        }
    }

    /// Returns the vocabulary.
    #[must_use]
    pub const fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the byte automaton.
    #[must_use]
    pub const fn automaton(&self) -> &Automaton {
        &self.automaton
    }

    /// Returns the constraints that were loosened on request.
    #[must_use]
    pub fn departures(&self) -> &[Departure] {
        &self.departures
    }

    /// Returns what the automaton has grown to so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            expressions: self.automaton.expression_count(),
            states: self.automaton.state_count(),
            local_masks: read(&self.locals).len(),
            unions: read(&self.unions).len(),
            token_states: self.graph.len(),
            rests: read(&self.rests).tries.len(),
            mask_bytes: self.mask_bytes.load(Ordering::Relaxed),
        }
    }

    /// Returns the tokens that are legal in a configuration, end tokens included, and whether that mask
    /// is memoised, so that keeping it takes no more memory.
    pub(crate) fn mask(
        &self,
        threads: &[Thread],
        budget: &mut Budget,
    ) -> Result<(TokenMask, bool), Error> {
        let mut parts: SmallVec<[Entry; 4]> = SmallVec::new();
        let mut accepting = false;
        let mut registers =
            threads.iter().any(|thread| thread.register.is_some() || thread.tape.is_some());
        let mut pending: SmallVec<[Pending<'_>; 4]> = threads
            .iter()
            .map(|thread| (thread.state, RestId::VOCABULARY, thread.stack.as_ref()))
            .collect();
        let mut seen: SmallVec<[(StateId, RestId, *const Stack); 8]> = SmallVec::new();
        while let Some((state, rest, stack)) = pending.pop() {
            let key = (state, rest, stack.map_or(std::ptr::null(), Arc::as_ptr));
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            budget.spend(seen.len() as u64 / 8)?;
            let framed = stack.is_some_and(|stack| !stack.frames.is_empty());
            let entry = self.local((state, rest, framed), budget)?;
            for rest in [entry.local.ends.then_some(rest), entry.below].into_iter().flatten() {
                for frame in stack.into_iter().flat_map(|stack| &stack.frames) {
                    registers |= frame.register.is_some();
                    pending.push((frame.ret, rest, frame.below.as_ref()));
                }
            }
            let bottom = stack.is_none_or(|stack| stack.bottom);
            accepting |= bottom && entry.local.ends && rest == RestId::VOCABULARY;
            if !parts.iter().any(|part| part.number == entry.number) {
                parts.push(entry);
            }
        }
        let (mask, kept) = self.union(&parts, accepting);
        if registers
            || parts.iter().any(|part| part.local.closers.iter().any(|&(_, closes)| closes > 1))
        {
            let mask = self.without_repeats(threads, &parts, registers, mask, budget)?;
            return Ok((mask, false));
        }
        Ok((mask, kept))
    }

    /// Returns the local mask of a state over a trie of rests.
    fn local(&self, id: LocalId, budget: &mut Budget) -> Result<Entry, Error> {
        self.local_by(id, true, budget)
    }

    /// Returns the local mask of a state over a trie of rests. If it must be made, the mask of another
    /// state may be made first if `near`.
    fn local_by(
        &self,
        (state, rest, framed): LocalId,
        near: bool,
        budget: &mut Budget,
    ) -> Result<Entry, Error> {
        let reach = u32::try_from(self.vocabulary.longest()).unwrap_or(u32::MAX - 1);
        let state = self.automaton.mask_state(state, reach, budget)?;
        if let Some(entry) = read(&self.locals).get(&(state, rest, framed)) {
            return Ok(entry.clone());
        }
        let (local, below) = self.make_local((state, rest, framed), near, budget)?;
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let below = if below.is_empty() { None } else { Some(self.intern_rests(below)) };
        let entry = Entry {
            number: u32::try_from(number).unwrap_or(u32::MAX),
            kept: self.reserve(local_memory(&local)),
            local: Arc::new(local),
            below,
        };
        if entry.kept {
            return Ok(write(&self.locals).entry((state, rest, framed)).or_insert(entry).clone());
        }
        Ok(entry)
    }

    fn make_local(
        &self,
        (state, rest, framed): LocalId,
        near: bool,
        budget: &mut Budget,
    ) -> Result<LocalAndBelow, Error> {
        let (automaton, vocabulary) = (&self.automaton, &*self.vocabulary);
        if rest != RestId::VOCABULARY {
            let trie = read(&self.rests).tries[rest.0 as usize - 1].clone();
            return local::of_trie(automaton, vocabulary, &trie, state, framed, budget);
        }
        if near && let Some(other) = local::text_loop_near(automaton, state, budget)? {
            let known = self.local_by((other, rest, framed), false, budget)?;
            if known.below.is_none() {
                let known = (other, &*known.local);
                // Where no plain text is illegal, neither here nor there, only the others can differ.
                let trie = match vocabulary.runs(0) {
                    Some(runs) if local::is_endless(automaton, state, budget)? => {
                        runs.leaving(vocabulary)
                    }
                    _ => vocabulary.trie(),
                };
                let over = (vocabulary, trie);
                let found = local::beside(automaton, over, state, known, framed, budget)?;
                if let Some(found) = found {
                    return Ok(found);
                }
            }
        }
        if self.is_total(state, budget)?
            && let Some(runs) = vocabulary.runs(0)
        {
            return local::of_total(automaton, vocabulary, state, runs, framed, budget);
        }
        local::of_vocabulary(automaton, vocabulary, state, framed, budget)
    }

    /// Returns whether `state` is total on plain JSON text, and does not loop on it.
    fn is_total(&self, state: StateId, budget: &mut Budget) -> Result<bool, Error> {
        if let Some(&known) = read(&self.total).get(&state) {
            return Ok(known);
        }
        let (total, states) = local::total_without_loop(&self.automaton, state, budget)?;
        write(&self.total).extend(states.into_iter().map(|state| (state, total)));
        Ok(total)
    }

    /// Computes the local mask of a state over rests, and returns the rests that go on below.
    pub(crate) fn local_rest(
        &self,
        id: LocalId,
        budget: &mut Budget,
    ) -> Result<Option<RestId>, Error> {
        Ok(self.local(id, budget)?.below)
    }

    /// Returns whether the rule of a state may end before the first byte, and the rests that go on below.
    pub(crate) fn local_ends(
        &self,
        id: LocalId,
        budget: &mut Budget,
    ) -> Result<(bool, Option<RestId>), Error> {
        let entry = self.local(id, budget)?;
        Ok((entry.local.ends, entry.below))
    }

    /// Returns the trie of these rests; `None` stands for the vocabulary's own.
    pub(crate) fn rest_trie(&self, rest: RestId) -> Option<Arc<Trie>> {
        let at = (rest.0 as usize).checked_sub(1)?;
        read(&self.rests).tries.get(at).cloned()
    }

    /// Returns the number of local masks that differ from each other.
    pub(crate) fn distinct_masks(&self) -> usize {
        let locals = read(&self.locals);
        let hasher = foldhash::fast::RandomState::default();
        let hashes: hashbrown::HashSet<u64> = locals
            .values()
            .map(|entry| {
                std::hash::BuildHasher::hash_one(&hasher, entry.local.mask.words().as_ref())
            })
            .collect();
        hashes.len()
    }

    /// Returns the automaton with everything it has grown to as data, without the vocabulary.
    #[must_use]
    pub fn snapshot(&self) -> TokenAutomatonSnapshot {
        let mut masks = Masks::default();
        let locals = read(&self.locals);
        let mut sorted: Vec<_> = locals.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| (key.0, key.1.0, key.2));
        let locals: Vec<LocalSnapshot> = sorted
            .into_iter()
            .map(|(&(state, rest, framed), entry)| {
                let key = (state, rest.0, framed, entry.below.map(|below| below.0));
                LocalSnapshot::new(key, &entry.local, &mut masks)
            })
            .collect();
        let (bases, masks) = masks.finish();
        TokenAutomatonSnapshot {
            automaton: self.automaton.snapshot(),
            departures: self.departures.clone(),
            bases,
            masks,
            locals,
            rests: read(&self.rests).tries.iter().map(|trie| (**trie).clone()).collect(),
        }
    }

    /// Returns the automaton of a snapshot that has been checked.
    pub(crate) fn restore(
        automaton: Automaton,
        vocabulary: Arc<Vocabulary>,
        departures: Vec<Departure>,
        locals: Vec<(LocalKey, Local)>,
        rests: Vec<Trie>,
    ) -> Self {
        let restored = Self::over(automaton, vocabulary, departures);
        for trie in rests {
            restored.intern_rests(trie);
        }
        for ((state, rest, framed, below), local) in locals {
            let number = restored.next_number.fetch_add(1, Ordering::Relaxed);
            restored.mask_bytes.fetch_add(local_memory(&local), Ordering::Relaxed);
            let entry = Entry {
                number: u32::try_from(number).unwrap_or(u32::MAX),
                local: Arc::new(local),
                below: below.map(RestId),
                kept: true,
            };
            write(&restored.locals).insert((state, RestId(rest), framed), entry);
        }
        restored
    }

    /// Takes `bytes` from the memory limit of masks, and returns whether they were left.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let limit = self.automaton.limits().mask_bytes;
        let taken = self.mask_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|&sum| sum <= limit)
        });
        taken.is_ok()
    }

    fn intern_rests(&self, trie: Trie) -> RestId {
        let mut rests = write(&self.rests);
        let hash = trie.content_hash(&rests.hasher);
        let Rests { tries, by_hash, .. } = &mut *rests;
        let same = by_hash.entry(hash).or_default();
        if let Some(&known) = same.iter().find(|&&index| *tries[index as usize - 1] == trie) {
            return RestId(known);
        }
        self.mask_bytes.fetch_add(trie.memory(), Ordering::Relaxed);
        tries.push(Arc::new(trie));
        let id = u32::try_from(tries.len()).unwrap_or(u32::MAX);
        same.push(id);
        RestId(id)
    }

    /// Returns the union of masks, and whether it is memoised.
    fn union(&self, parts: &[Entry], accepting: bool) -> (TokenMask, bool) {
        if let ([one], false) = (parts, accepting) {
            return (one.local.mask.clone(), one.kept);
        }
        let mut key: SmallVec<[u32; 4]> = parts.iter().map(|part| part.number).collect();
        key.sort_unstable();
        let key = (key, accepting);
        if let Some(mask) = read(&self.unions).get(&key) {
            return (mask.clone(), true);
        }
        let mut mask =
            if accepting { self.end_mask.clone() } else { TokenMask::empty(self.vocabulary.len()) };
        for part in parts {
            mask = mask.union(&part.local.mask);
        }
        let kept = self.reserve(mask.memory() + 64);
        if kept {
            write(&self.unions).insert(key, mask.clone());
        }
        (mask, kept)
    }

    /// Takes from `mask` the tokens that would write a text again which must be fresh.
    ///
    /// Candidates are the tokens that end an open text of a register in one of the ways in which it
    /// was ended before, and those that end other such texts; each is tried on the threads.
    fn without_repeats(
        &self,
        threads: &[Thread],
        parts: &[Entry],
        registers: bool,
        mask: TokenMask,
        budget: &mut Budget,
    ) -> Result<TokenMask, Error> {
        let mut candidates: Vec<TokenId> = Vec::new();
        for part in parts {
            let closers = part.local.closers.iter();
            candidates
                .extend(closers.filter(|&&(_, n)| registers || n > 1).map(|&(token, _)| token));
        }
        let trie = self.vocabulary.trie();
        for thread in threads {
            thread.each_register(budget, |register, open, budget| {
                let open: Arc<[u8]> = open.into();
                for text in
                    register.seen.range(open.clone()..).take_while(|text| text.starts_with(&open))
                {
                    // Those that end inside the text may leave no other way to end it.
                    let rest = &text[open.len()..];
                    for end in 1..rest.len() {
                        budget.spend(1)?;
                        let Some(node) = trie.find(&rest[..end]) else { break };
                        candidates.extend_from_slice(trie.tokens(node));
                    }
                    budget.spend(1)?;
                    if let Some(node) = trie.find(rest) {
                        candidates.extend_from_slice(trie.subtree_tokens(node));
                    }
                }
                Ok(())
            })?;
        }
        candidates.sort_unstable();
        candidates.dedup();
        let mut removed = Vec::new();
        for token in candidates {
            if mask.contains(token)
                && self.after(threads, self.vocabulary.bytes(token), budget)?.is_err()
            {
                removed.push(token);
            }
        }
        Ok(if removed.is_empty() { mask } else { mask.without(&removed) })
    }

    /// Returns the configuration after `bytes`, or the number of bytes that were legal.
    pub(crate) fn after(
        &self,
        threads: &[Thread],
        bytes: &[u8],
        budget: &mut Budget,
    ) -> Result<Result<Configuration, usize>, Error> {
        let mut threads: Configuration = threads.into();
        let mut index = 0;
        while index < bytes.len() {
            if let [thread] = &mut threads[..] {
                index +=
                    automaton::follow_single(&self.automaton, thread, &bytes[index..], budget)?;
            }
            let Some(&byte) = bytes.get(index) else { break };
            threads = automaton::step(&self.automaton, &threads, byte, budget)?;
            if threads.is_empty() {
                return Ok(Err(index));
            }
            index += 1;
        }
        Ok(Ok(threads))
    }
}

/// The bytes that a memoised local mask takes, with its place in the table.
fn local_memory(local: &Local) -> usize {
    local.mask.memory() + local.closers.len() * 8 + 128
}

/// Locks for reading. A panic elsewhere leaves the memo tables usable: entries are whole or absent.
pub(crate) fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
