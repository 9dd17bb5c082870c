//! Where tokens lead: the legal tokens of a state in groups of those that lead to one place. A place is
//! a state with frames on top of what was below, so that the groups depend on the state and the trie
//! alone, as local masks do, and are kept beside them.
//!
//! What must be known of every legal token, such as how many tokens an output still takes after it, is
//! so asked once for each place, of which there are few, and not for each token.
//!
//! Threads go on independently of each other where no earlier text matters, so that a token is followed
//! by what any of its places is followed by.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::automaton::{Configuration, Stack, Thread};
use crate::error::Error;
use crate::ids::{StateId, TokenId};
use crate::limits::Budget;
use crate::mask::TokenMask;
use crate::step_error::StepError;
use crate::token::UNKNOWN;
use crate::token::local::{self, Grouped, Members};
use crate::token::tables::{LocalId, RestId, TokenAutomaton, read, write};
use crate::token::walk::Place;
use crate::vocab::Runs;

/// The groups of one state and one trie of rests.
#[derive(Debug)]
pub(crate) struct Places {
    groups: Vec<Group>,
    /// For each local stack its frames: the state to return to, and the stack below; and whether it may
    /// also be at its bottom, which is number 0.
    stacks: Vec<(Vec<(StateId, u32)>, bool)>,
    /// The tokens that surely end the rule of the state after any legal token, or [`UNKNOWN`].
    most: u64,
}

/// Tokens that lead to one place.
#[derive(Debug)]
struct Group {
    place: Place,
    /// The lowest of the tokens.
    first: TokenId,
    tokens: Vec<TokenId>,
    /// Tokens of a class that are in it besides.
    run: Option<Members>,
    /// The tokens that surely end the rule of the state from here, or [`UNKNOWN`].
    own: u64,
}

/// The groups of a part of a configuration, and the stack that they lie on.
pub(crate) struct Part {
    places: Arc<Places>,
    stack: Option<Arc<Stack>>,
    /// The tokens that surely return all the way down from the stack, or [`UNKNOWN`].
    rest: u64,
    /// The local stacks on that of the part, once a place was asked for.
    stacks: OnceCell<Vec<Option<Arc<Stack>>>>,
}

impl TokenAutomaton {
    /// Returns the groups of the legal tokens of a configuration, in parts as its mask is, or `None`
    /// where earlier texts matter or a state tells too many texts apart.
    pub(crate) fn parts(
        &self,
        threads: &[Thread],
        budget: &mut Budget,
    ) -> Result<Option<Vec<Part>>, Error> {
        let mut parts = Vec::new();
        if threads.iter().any(|thread| thread.register.is_some() || thread.tape.is_some()) {
            return Ok(None);
        }
        let mut seen: Vec<(StateId, RestId, *const Stack)> = Vec::new();
        let mut pending: Vec<(StateId, RestId, Option<&Arc<Stack>>)> = threads
            .iter()
            .map(|thread| (thread.state, RestId::VOCABULARY, thread.stack.as_ref()))
            .collect();
        while let Some((state, rest, stack)) = pending.pop() {
            let key = (state, rest, stack.map_or(std::ptr::null(), Arc::as_ptr));
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            budget.spend(1 + seen.len() as u64 / 8)?;
            let framed = stack.is_some_and(|stack| !stack.frames.is_empty());
            let id = (state, rest, framed);
            let Some(places) = self.places(id, budget)? else { return Ok(None) };
            let below = stack.map_or(Ok(0), |stack| self.rest_tokens(stack, budget))?;
            parts.push(Part {
                places,
                stack: stack.cloned(),
                rest: below,
                stacks: OnceCell::new(),
            });
            let (ends, below) = self.local_ends(id, budget)?;
            for rest in [ends.then_some(rest), below].into_iter().flatten() {
                for frame in stack.into_iter().flat_map(|stack| &stack.frames) {
                    if frame.register.is_some() {
                        return Ok(None);
                    }
                    pending.push((frame.ret, rest, frame.below.as_ref()));
                }
            }
        }
        Ok(Some(parts))
    }

    /// Returns the groups of a state over a trie of rests; `None` if they are not known.
    fn places(&self, id: LocalId, budget: &mut Budget) -> Result<Option<Arc<Places>>, Error> {
        if let Some(known) = read(&self.places).get(&id) {
            return Ok(known.clone());
        }
        let (state, rest, framed) = id;
        let (automaton, vocabulary) = (self.automaton(), &**self.vocabulary());
        let grouped = match self.rest_trie(rest) {
            None => local::groups_of_vocabulary(automaton, vocabulary, state, framed, budget)?,
            Some(trie) => {
                local::groups_of_trie(automaton, vocabulary, &trie, state, framed, budget)?
            }
        };
        let places = match grouped {
            Some(grouped) => Some(Arc::new(self.new_places(grouped, budget)?)),
            None => None,
        };
        let bytes = places.as_ref().map_or(0, |places| places.memory()) + 64;
        if self.reserve(bytes) {
            write(&self.places).insert(id, places.clone());
        }
        Ok(places)
    }

    fn new_places(&self, grouped: Grouped, budget: &mut Budget) -> Result<Places, Error> {
        let mut stacks: Vec<(Vec<(StateId, u32)>, bool)> = Vec::new();
        let mut below: Vec<u64> = Vec::new();
        for stack in grouped.stacks {
            // Stacks are made after those below them.
            let mut least = if stack.bottom { 0 } else { UNKNOWN };
            for &(ret, on) in &stack.frames {
                let own = self.own_tokens(ret, budget)?;
                least = least.min(own.saturating_add(below[on as usize]));
            }
            below.push(least);
            stacks.push((stack.frames.into_vec(), stack.bottom));
        }
        let mut groups = Vec::with_capacity(grouped.groups.len());
        for (place, tokens, run) in grouped.groups {
            let first = tokens.iter().copied().min();
            let of_run = run.and_then(|(class, least, most)| {
                let runs = self.vocabulary().runs(class)?;
                run_words(runs, least, most).find_map(lowest)
            });
            let Some(first) = first.into_iter().chain(of_run).min() else { continue };
            let mut own = UNKNOWN;
            for &(state, stack) in &place {
                let state = self.own_tokens(state, budget)?;
                own = own.min(state.saturating_add(below[stack as usize]));
            }
            groups.push(Group { place, first, tokens, run, own });
        }
        groups.sort_unstable_by_key(|group| group.first);
        let most = groups.iter().map(|group| group.own).max().unwrap_or(0);
        Ok(Places { groups, stacks, most })
    }

    /// Returns the legal tokens, without end tokens, after which the output is completed by fewer than
    /// `goal` tokens and an end token, as far as the bounds of places tell or `ends` knows, which is only
    /// asked where they do not.
    pub(crate) fn legal_within(
        &self,
        parts: &[Part],
        goal: u64,
        mut ends: impl FnMut(&[Thread]) -> Result<bool, StepError>,
    ) -> Result<TokenMask, StepError> {
        let width = self.vocabulary().len();
        let mut words = vec![0_u64; width.div_ceil(64)];
        for part in parts {
            for group in &part.places.groups {
                let known = group.own.saturating_add(part.rest) < goal;
                if !known && !ends(&part.threads_of(group))? {
                    continue;
                }
                for token in &group.tokens {
                    words[token.index() / 64] |= 1 << (token.index() % 64);
                }
                if let Some((class, least, most)) = group.run
                    && let Some(runs) = self.vocabulary().runs(class)
                {
                    let run = run_words(runs, least, most);
                    run.zip(&mut words).for_each(|((_, run), word)| *word |= run);
                }
            }
        }
        Ok(TokenMask::from_words(width, words))
    }
}

/// Returns the words of the tokens that consist of at least `least` and at most `most` members, with
/// their numbers.
fn run_words(runs: &Runs, least: usize, most: usize) -> impl Iterator<Item = (usize, u64)> {
    let (up_to, before) = (runs.up_to(most), runs.up_to(least - 1));
    up_to.iter().zip(before.iter()).map(|(a, b)| a & !b).enumerate()
}

/// Returns the lowest token of a word.
fn lowest((at, word): (usize, u64)) -> Option<TokenId> {
    if word == 0 { None } else { TokenId::from_index(at * 64 + word.trailing_zeros() as usize) }
}

impl Places {
    fn memory(&self) -> usize {
        let group = |group: &Group| group.tokens.len() * 4 + size_of::<Group>();
        self.groups.iter().map(group).sum::<usize>() + self.stacks.len() * 64
    }
}

impl Part {
    /// Returns a number of tokens that surely complete the output after any token of this part, or
    /// [`UNKNOWN`].
    pub(crate) fn most(&self) -> u64 {
        self.places.most.saturating_add(self.rest)
    }

    /// Returns the places of this part, each with the lowest token that leads to it.
    pub(crate) fn places(&self) -> impl Iterator<Item = (TokenId, Configuration)> {
        self.places.groups.iter().map(|group| (group.first, self.threads_of(group)))
    }

    fn threads_of(&self, group: &Group) -> Configuration {
        let stacks = self.stacks.get_or_init(|| self.local_stacks());
        let thread = |&(state, stack): &(StateId, u32)| {
            let stack = stacks[stack as usize].clone();
            Thread { state, register: None, stack, tape: None }
        };
        group.place.iter().map(thread).collect()
    }

    fn local_stacks(&self) -> Vec<Option<Arc<Stack>>> {
        let mut made = vec![self.stack.clone()];
        for (frames, bottom) in &self.places.stacks[1..] {
            let below = |&(ret, on): &(StateId, u32)| (ret, made[on as usize].clone());
            let own = Arc::new(Stack::of(frames.iter().map(below)));
            made.push(if *bottom {
                Stack::join(Some(&own), self.stack.as_ref())
            } else {
                Some(own)
            });
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Limits;
    use crate::automaton;
    use crate::frontend::gbnf;
    use crate::ir::Grammar;
    use crate::token::Matcher;
    use crate::vocab::Loaded;

    fn automaton(grammar: &str) -> Arc<TokenAutomaton> {
        let limits = Limits::default();
        let grammar: Grammar = gbnf::compile(grammar, &limits).unwrap();
        let vocabulary = Arc::clone(Loaded::embedded().vocabulary());
        Arc::new(TokenAutomaton::new(grammar, vocabulary, limits).unwrap())
    }

    /// JSON text that loops, text that is counted, digits and nesting; one that has two parses.
    const GRAMMARS: [&str; 4] = [
        r#"root ::= "[" (item ("," item)*)? "]"
           item ::= string | [0-9]{1,12} | root
           string ::= "\"" ([^"\\\x00-\x1f] | "\\" ["\\/bfnrt])* "\"""#,
        r#"root ::= "{\"a\":\"" [^"\\\x00-\x1f]{2,40} "\"}""#,
        r#"root ::= ("(" root ")")* [a-z ]*"#,
        r#"root ::= a | b
           a ::= "x" a? "y"
           b ::= "x"+ "y"+"#,
    ];

    #[test]
    fn every_legal_token_is_in_a_group_and_leads_where_the_group_says() {
        for grammar in GRAMMARS {
            let automaton = automaton(grammar);
            let mut random = 7_usize;
            let mut checked = 0;
            for _ in 0..8 {
                let mut matcher = Matcher::new(automaton.clone());
                for _ in 0..12 {
                    let mut budget = automaton.automaton().step_budget();
                    let from = matcher.threads().clone();
                    let parts = automaton.parts(&from, &mut budget).unwrap().unwrap();
                    let all = automaton.legal_within(&parts, 0, |_| Ok(true)).unwrap();
                    let mask = matcher.mask().unwrap();
                    let ends = automaton.vocabulary().end_tokens();
                    assert_eq!(all.words(), mask.without(ends).words(), "{grammar}");
                    let most = parts.iter().map(Part::most).max().unwrap();
                    for part in &parts {
                        for (token, place) in part.places() {
                            let bytes = automaton.vocabulary().bytes(token);
                            let after =
                                automaton.after(&from, bytes, &mut budget).unwrap().unwrap();
                            assert!(automaton.enough_tokens(&after, &mut budget).unwrap() <= most);
                            if from.len() == 1 && parts.len() == 1 {
                                let found = automaton::structure(&after, &mut budget).unwrap();
                                let said = automaton::structure(&place, &mut budget).unwrap();
                                assert_eq!(found, said, "{grammar} {}", bytes.escape_ascii());
                            }
                            checked += 1;
                        }
                    }
                    let legal: Vec<_> = mask.without(ends).iter().collect();
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
                    let Some(&token) = legal.get((random >> 33) % legal.len().max(1)) else {
                        break;
                    };
                    matcher.accept(token).unwrap();
                }
            }
            assert!(checked > 20, "{grammar} {checked}");
        }
    }
}
