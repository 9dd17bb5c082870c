//! Local masks: a state and a trie of token rests in, the tokens that the state's rule legalises and
//! the rests that go on in the frame below out. Masks of configurations are unions of these.
//!
//! The result depends on the state and the trie alone, not on the stack, so it is memoised for all
//! sequences. Costs a walk over the live part of the trie; for the vocabulary's own trie, states that
//! loop on a usual class of characters take the runs of the class instead.

use smallvec::smallvec;

use crate::automaton::Automaton;
use crate::error::{Error, ErrorKind};
use crate::ids::{StateId, TokenId};
use crate::limits::Budget;
use crate::mask::TokenMask;
use crate::token::run::{Chain, next_in_run};
use crate::token::total::total_states;
use crate::token::walk::{BASE, LocalStack, Place, Stop, Walked, Walker};
use crate::vocab::{Index, Partition, QUOTIENTS, RunClass, Runs, Trie, Vocabulary};

/// What a state makes legal of a trie of token rests.
#[derive(Debug)]
pub(crate) struct Local {
    /// The tokens whose rests stay within the state's rule, or end exactly where it may.
    pub(crate) mask: TokenMask,
    /// Whether the rule may end before the first byte, so that the whole trie goes on below.
    pub(crate) ends: bool,
    /// Tokens that end texts that must be fresh, or begin one, and how many. Tokens that go on with or end
    /// only the one that is open in the state are left out: the register tells which of those repeat a
    /// text.
    pub(crate) closers: Vec<(TokenId, u8)>,
}

/// A local mask, and the rests that are left where the rule ends inside a token.
pub(crate) type LocalAndBelow = (Local, Trie);

/// Walks of the plain trie that visit more nodes than this are given up for one of a quotient, which
/// has fewer.
const SMALL_WALK: usize = 2_500;

/// Walks of a quotient that visit more nodes than this are given up for a finer one.
const QUOTIENT_WALK: usize = 30_000;

/// Returns the local mask of `state` over the vocabulary's own trie. The rests below are left empty
/// unless `framed`.
pub(crate) fn of_vocabulary(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    state: StateId,
    framed: bool,
    budget: &mut Budget,
) -> Result<LocalAndBelow, Error> {
    let width = vocabulary.len();
    for (number, class) in Index::classes().into_iter().enumerate() {
        if next_in_run(automaton, state, class, budget)?.is_none() {
            continue;
        }
        if let Some(runs) = vocabulary.runs(number)
            && let Some(chain) = Chain::follow(automaton, state, runs, framed, budget)?
        {
            return chain.local(automaton, vocabulary, runs, framed, budget);
        }
        break;
    }
    let trie = vocabulary.trie();
    if let Some(walked) =
        walk(automaton, vocabulary, (trie, None), state, framed, SMALL_WALK, budget)?
    {
        return Ok(walked.into_local(width));
    }
    for number in 0..QUOTIENTS {
        let Some((partition, quotient)) = vocabulary.quotient(number) else { break };
        let quotient = (quotient, Some(partition));
        let nodes = if number + 1 == QUOTIENTS { usize::MAX } else { QUOTIENT_WALK };
        if let Some(walked) = walk(automaton, vocabulary, quotient, state, framed, nodes, budget)? {
            return Ok(walked.into_local(width));
        }
    }
    of_trie(automaton, vocabulary, trie, state, framed, budget)
}

/// The tokens that consist of members of a class: its number, and the least and the greatest number of
/// members.
pub(super) type Members = (usize, usize, usize);

/// Legal tokens of a state by where they lead.
pub(crate) struct Grouped {
    pub(super) groups: Vec<(Place, Vec<TokenId>, Option<Members>)>,
    pub(super) stacks: Vec<LocalStack>,
}

/// Walks for groups that visit more nodes than this are given up.
const GROUP_WALK: usize = 100_000;

/// Returns the legal tokens of `state` over the vocabulary by where they lead: the tokens of a group, and
/// the number of a class and of members, of which those consist that are in it besides. `None` if texts
/// must be fresh, or there is too much to walk.
pub(crate) fn groups_of_vocabulary(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    state: StateId,
    framed: bool,
    budget: &mut Budget,
) -> Result<Option<Grouped>, Error> {
    for (number, class) in Index::classes().into_iter().enumerate() {
        if next_in_run(automaton, state, class, budget)?.is_none() {
            continue;
        }
        if let Some(runs) = vocabulary.runs(number)
            && let Some(chain) = Chain::follow(automaton, state, runs, framed, budget)?
        {
            let mut walker = Walker::new(automaton, vocabulary, None, framed, budget).grouping();
            let members = chain.walk(&mut walker, runs);
            let Some((members, mut found)) = grouped(walker, members)? else { return Ok(None) };
            found.groups.extend(members.into_iter().map(|(state, least, most)| {
                (smallvec![(state, BASE)], Vec::new(), Some((number, least, most)))
            }));
            return Ok(Some(found));
        }
        break;
    }
    groups_of_trie(automaton, vocabulary, vocabulary.trie(), state, framed, budget)
}

/// Returns the same over a trie of rests.
pub(crate) fn groups_of_trie(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    trie: &Trie,
    state: StateId,
    framed: bool,
    budget: &mut Budget,
) -> Result<Option<Grouped>, Error> {
    let walker = Walker::new(automaton, vocabulary, None, framed, budget);
    let mut walker = walker.at_most(GROUP_WALK).grouping();
    let walked = walker.walk(state, trie);
    Ok(grouped(walker, walked)?.map(|((), found)| found))
}

/// Returns what a walk that takes note of groups gave and found; `None` if it gave up, or met a text that
/// must be fresh.
fn grouped<T>(
    walker: Walker<'_, '_>,
    walked: Result<T, Stop>,
) -> Result<Option<(T, Grouped)>, Error> {
    let gave = match walked {
        Ok(gave) => gave,
        Err(Stop::TooCoarse | Stop::TooMany) => return Ok(None),
        Err(Stop::Error(error)) => return Err(error),
    };
    Ok(walker.into_groups().map(|(groups, stacks)| {
        let groups = groups.into_iter().map(|(place, tokens)| (place, tokens, None)).collect();
        (gave, Grouped { groups, stacks })
    }))
}

/// Bytes that few texts go on with, tried in order to find the state that all but a few ways lead to.
const RARE: [u8; 3] = [b'~', b'^', 0x7f];

/// A state with fewer live bytes than this has a small walk.
const MANY_BYTES: usize = 48;

/// Returns a state that loops on plain JSON text and that `state`, which does not, leads to by a rare
/// byte, if there is one.
pub(crate) fn text_loop_near(
    automaton: &Automaton,
    state: StateId,
    budget: &mut Budget,
) -> Result<Option<StateId>, Error> {
    let row = automaton.row(state, budget)?;
    if row.bytes().iter().count() < MANY_BYTES {
        return Ok(None);
    }
    for byte in RARE {
        if let Some(next) = row.simple(byte)
            && next != state
            && next_in_run(automaton, next, RunClass::json_text(), budget)? == Some(next)
        {
            return Ok(Some(next));
        }
    }
    Ok(None)
}

/// Returns whether `state` holds endlessly many texts after each plain JSON text, as one in a key does
/// where additional keys are open.
pub(crate) fn is_endless(
    automaton: &Automaton,
    state: StateId,
    budget: &mut Budget,
) -> Result<bool, Error> {
    for part in automaton.endless_parts(state, budget)? {
        if next_in_run(automaton, part, RunClass::json_text(), budget)? == Some(part) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the local mask of `state` by what sets it apart from `other`, whose local mask over the
/// vocabulary is `known` and has no rests below; or `None` if the two differ in too many places. They
/// can differ in the tokens of `trie` only.
pub(crate) fn beside(
    automaton: &Automaton,
    (vocabulary, trie): (&Vocabulary, &Trie),
    state: StateId,
    (other, known): (StateId, &Local),
    framed: bool,
    budget: &mut Budget,
) -> Result<Option<LocalAndBelow>, Error> {
    let ends = automaton.row(state, budget)?.is_accepting();
    let mut walker = Walker::new(automaton, vocabulary, None, framed, budget).at_most(SMALL_WALK);
    let mut difference = match walker.walk_beside(state, other, trie) {
        Ok(difference) => difference,
        Err(Stop::TooCoarse | Stop::TooMany) => return Ok(None),
        Err(Stop::Error(error)) => return Err(error),
    };
    let Walked { accepted, below, mut closers, .. } = walker.finish();
    difference.tokens.sort_unstable();
    let same = |token: &TokenId| difference.tokens.binary_search(token).is_err();
    closers.extend(known.closers.iter().filter(|(token, _)| same(token)));
    let mask = known.mask.with_changes(accepted, difference.illegal);
    Ok(Some((Local { mask, ends, closers }, below)))
}

/// Returns whether plain JSON text kills no state that it leads to from `state`, which does not simply
/// loop on it, and the states of which the same is known now.
pub(crate) fn total_without_loop(
    automaton: &Automaton,
    state: StateId,
    budget: &mut Budget,
) -> Result<(bool, Vec<StateId>), Error> {
    let class = RunClass::json_text();
    let row = automaton.row(state, budget)?;
    if !class.ascii.difference(&row.bytes()).is_empty()
        || next_in_run(automaton, state, class, budget)?.is_some()
    {
        return Ok((false, vec![state]));
    }
    total_states(automaton, state, class, budget)
}

/// Returns the local mask of a state that is total on the class of `runs`: see [`total_states`].
pub(crate) fn of_total(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    state: StateId,
    runs: &Runs,
    framed: bool,
    budget: &mut Budget,
) -> Result<LocalAndBelow, Error> {
    let leaving = runs.leaving(vocabulary);
    let (mut local, below) = of_trie(automaton, vocabulary, leaving, state, framed, budget)?;
    let accepted = local.mask.iter().collect();
    let whole = runs.up_to(runs.longest());
    local.mask = TokenMask::from_base(vocabulary.len(), whole, accepted, Vec::new());
    Ok((local, below))
}

/// Returns the local mask of `state` over a trie of rests.
pub(crate) fn of_trie(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    trie: &Trie,
    state: StateId,
    framed: bool,
    budget: &mut Budget,
) -> Result<LocalAndBelow, Error> {
    let walked = walk(automaton, vocabulary, (trie, None), state, framed, usize::MAX, budget)?;
    Ok(walked.ok_or_else(too_coarse)?.into_local(vocabulary.len()))
}

/// Walks one trie. Returns `None` if its partition is too coarse for a state that the walk met, or if
/// it would visit more than `nodes` nodes.
fn walk(
    automaton: &Automaton,
    vocabulary: &Vocabulary,
    (trie, partition): (&Trie, Option<&Partition>),
    state: StateId,
    framed: bool,
    nodes: usize,
    budget: &mut Budget,
) -> Result<Option<Walked>, Error> {
    let ends = automaton.row(state, budget)?.is_accepting();
    let mut walker = Walker::new(automaton, vocabulary, partition, framed, budget).at_most(nodes);
    match walker.walk(state, trie) {
        Ok(()) => Ok(Some(Walked { ends, ..walker.finish() })),
        Err(Stop::TooCoarse | Stop::TooMany) => Ok(None),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// The error of a walk over bytes as they are that finds them too coarse, which cannot be.
pub(super) fn too_coarse() -> Error {
    let kind = ErrorKind::UnsupportedFeature { feature: "quotient".into() };
    Error::new(kind, "a walk over bytes asked for a finer partition of them")
}

impl Walked {
    fn into_local(self, width: usize) -> LocalAndBelow {
        let mask = TokenMask::from_ids(width, self.accepted);
        (Local { mask, ends: self.ends, closers: self.closers }, self.below)
    }
}
