//! The state table: expressions in, rows of moves out. Threads step along it.
//!
//! A state is a live expression; its row is computed when it is first used and never changes. Rows are
//! read without a lock; only growing takes the one of the [`Grower`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::automaton::linear::{Action, Grower, Part};
use crate::automaton::snapshot::{AutomatonSnapshot, RowSnapshot, StateSnapshot};
use crate::error::Error;
use crate::ids::{ExprId, FamilyId, StateId};
use crate::ir::{ByteSet, Grammar};
use crate::limits::{Budget, BudgetExceeded, Limits};

/// A byte automaton with a stack, grown on demand. `Send + Sync`.
#[derive(Debug)]
pub struct Automaton {
    states: boxcar::Vec<State>,
    grower: Mutex<Growth>,
    limits: Limits,
    start: StateId,
    /// The number of expressions, which is asked for while others grow the tables.
    expressions: AtomicUsize,
}

#[derive(Debug)]
pub(super) struct Growth {
    pub(super) grower: Grower,
    ids: HashMap<ExprId, StateId, foldhash::fast::RandomState>,
}

/// One state.
#[derive(Debug)]
struct State {
    expr: ExprId,
    row: OnceLock<Row>,
    mask_state: OnceLock<StateId>,
}

/// What each byte leads to from a state.
#[derive(Debug)]
pub struct Row {
    /// The class of each byte: a position in `classes`.
    class_of: Box<[u8; 256]>,
    classes: Box<[Class]>,
    /// The bytes that lead anywhere.
    live: ByteSet,
    /// Whether the state ends its rule.
    accepting: bool,
    /// Whether a text that must be fresh may begin or go on here.
    recording: bool,
}

/// What the bytes of one class lead to.
#[derive(Debug)]
struct Class {
    /// The only target, if there is one and neither frames nor another activation are involved.
    simple: Option<StateId>,
    /// Whether the only move records a text that must be fresh.
    records: bool,
    moves: SmallVec<[Move; 1]>,
}

/// One transition.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Move {
    /// The next state.
    pub target: StateId,
    /// The states to return to when the target's rule ends, outermost first.
    pub pushes: Box<[StateId]>,
    /// Whether the target belongs to a new rule activation.
    pub fresh: bool,
    /// Whether the first of `pushes` belongs to the present activation.
    pub keep: bool,
    /// What the byte does to the history register of the target's activation.
    pub action: Action,
    /// Whether the byte, which a callee reads, belongs to a text of the present activation that must
    /// be fresh.
    pub record: bool,
}

impl Row {
    /// Returns the transitions on `byte`.
    #[must_use]
    pub fn moves(&self, byte: u8) -> &[Move] {
        &self.classes[usize::from(self.class_of[usize::from(byte)])].moves
    }

    /// Returns the next state on `byte` if it is the only one and no frame is pushed. The history
    /// register is not considered.
    #[must_use]
    pub fn simple(&self, byte: u8) -> Option<StateId> {
        self.classes[usize::from(self.class_of[usize::from(byte)])].simple
    }

    /// Returns whether the only move on `byte` records a text that must be fresh.
    pub(crate) fn records(&self, byte: u8) -> bool {
        self.classes[usize::from(self.class_of[usize::from(byte)])].records
    }

    /// Returns the class of each byte: bytes of one class lead alike.
    pub(crate) const fn class_of(&self) -> &[u8; 256] {
        &self.class_of
    }

    /// Returns whether the state ends its rule.
    #[must_use]
    pub const fn is_accepting(&self) -> bool {
        self.accepting
    }

    /// Returns whether a text that must be fresh may begin or go on with the next byte.
    #[must_use]
    pub const fn is_recording(&self) -> bool {
        self.recording
    }

    /// Returns the sets of bytes that lead alike, and where they lead.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (ByteSet, Vec<Move>)> + '_ {
        self.classes.iter().enumerate().filter(|(_, class)| !class.moves.is_empty()).map(
            |(index, class)| {
                let bytes = (0..=255)
                    .filter(|&byte| usize::from(self.class_of[usize::from(byte)]) == index);
                (bytes.collect(), class.moves.to_vec())
            },
        )
    }

    /// Returns the row of these transitions, of which several may share a byte.
    fn new(accepting: bool, moves: Vec<(ByteSet, Move)>) -> Self {
        let recording = moves.iter().any(|(_, next)| next.action != Action::None && !next.fresh);
        let mut live = ByteSet::EMPTY;
        let mut disjoint = true;
        for (bytes, _) in &moves {
            disjoint &= bytes.intersection(&live).is_empty();
            live = live.union(bytes);
        }
        let mut class_of = Box::new([0_u8; 256]);
        let classes = if disjoint {
            // Each move has a class of its own. There are no more than bytes, and one class more for
            // those that lead nowhere: with 256 moves there are none.
            let dead = usize::from(live != ByteSet::ALL);
            for (index, (bytes, _)) in moves.iter().enumerate() {
                let class = u8::try_from(index + dead).unwrap_or(u8::MAX);
                bytes.iter().for_each(|byte| class_of[usize::from(byte)] = class);
            }
            let none = (dead == 1).then(|| Class::new(SmallVec::new()));
            none.into_iter().chain(moves.into_iter().map(|(_, next)| Class::of(next))).collect()
        } else {
            classes_of_overlapping(&moves, &mut class_of)
        };
        Self { class_of, classes, live, accepting, recording }
    }

    /// Returns the bytes that lead anywhere from here.
    #[must_use]
    pub const fn bytes(&self) -> ByteSet {
        self.live
    }
}

impl Automaton {
    /// Returns the automaton of `grammar`. Nothing but the start state is grown.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::Unsatisfiable`] if nothing matches the grammar, or one of its needed parts, and
    /// [`crate::ErrorKind::BudgetExceeded`].
    pub fn new(grammar: Grammar, limits: Limits) -> Result<Self, Error> {
        grammar.arena.check()?;
        let start = grammar.start;
        let mut grower = Grower::new(grammar, limits.clone());
        for part in 0..grower.grammar.needed.len() {
            if !grower.live(grower.grammar.needed[part])? {
                return Err(grower.unsatisfiable(Some(part)));
            }
        }
        if !grower.live(start)? {
            return Err(grower.unsatisfiable(None));
        }
        let states = boxcar::Vec::new();
        let mut growth = Growth { grower, ids: HashMap::default() };
        let start = growth.state(&states, start)?;
        let expressions = AtomicUsize::new(growth.grower.grammar.arena.len());
        Ok(Self { states, grower: Mutex::new(growth), limits, start, expressions })
    }

    /// Returns the automaton as data.
    #[must_use]
    pub fn snapshot(&self) -> AutomatonSnapshot {
        let growth = self.lock();
        let state = |state: &State| StateSnapshot {
            expr: state.expr,
            row: state.row.get().map(RowSnapshot::new),
            mask_state: state.mask_state.get().copied(),
        };
        AutomatonSnapshot {
            grammar: growth.grower.grammar.snapshot(),
            start: self.start,
            expansions: growth.grower.expansions(),
            states: (0..self.states.count()).map(|index| state(&self.states[index])).collect(),
        }
    }

    /// Returns the automaton of a snapshot that has been checked, or `None` if two states are one.
    pub(crate) fn restore(
        grammar: Grammar,
        limits: Limits,
        start: StateId,
        expansions: Vec<(FamilyId, ExprId)>,
        stored: Vec<StateSnapshot>,
    ) -> Option<Self> {
        let states = boxcar::Vec::new();
        let mut ids = HashMap::default();
        for state in stored {
            let row: OnceLock<Row> = OnceLock::new();
            if let Some(stored) = state.row {
                let moves: Vec<(ByteSet, Move)> = stored
                    .classes
                    .into_iter()
                    .flat_map(|(bytes, moves)| moves.into_iter().map(move |step| (bytes, step)))
                    .collect();
                row.set(Row::new(stored.accepting, moves)).ok()?;
            }
            let mask_state = state.mask_state.map_or_else(OnceLock::new, OnceLock::from);
            let id = StateId::from_index(states.push(State { expr: state.expr, row, mask_state }))?;
            if ids.insert(state.expr, id).is_some() {
                return None;
            }
        }
        let grower = Grower::restore(grammar, limits.clone(), expansions);
        let expressions = AtomicUsize::new(grower.grammar.arena.len());
        let grower = Mutex::new(Growth { grower, ids });
        Some(Self { states, grower, limits, start, expressions })
    }

    /// Returns the start state.
    #[must_use]
    pub const fn start(&self) -> StateId {
        self.start
    }

    /// Returns the number of states so far.
    #[must_use]
    pub fn state_count(&self) -> usize {
        self.states.count()
    }

    /// Returns the number of expressions so far. Does not wait for what is being grown.
    #[must_use]
    pub fn expression_count(&self) -> usize {
        self.expressions.load(Ordering::Relaxed)
    }

    /// Returns the limits.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Calls `look` with the grammar as it is grown so far.
    pub fn with_grammar<T>(&self, look: impl FnOnce(&Grammar) -> T) -> T {
        look(&self.lock().grower.grammar)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Growth> {
        // A panic while growing leaves memo tables that are each either absent or complete.
        self.grower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a fresh budget for one step: a mask, or an accepted token.
    #[must_use]
    pub const fn step_budget(&self) -> Budget {
        Budget::new("step_work", self.limits.step_work)
    }

    /// Grows the tables with `work`, which spends from `budget`.
    pub(super) fn grow<T>(
        &self,
        budget: &mut Budget,
        work: impl FnOnce(&mut Growth) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut growth = self.lock();
        std::mem::swap(&mut growth.grower.budget, budget);
        let result = work(&mut growth);
        std::mem::swap(&mut growth.grower.budget, budget);
        self.expressions.store(growth.grower.grammar.arena.len(), Ordering::Relaxed);
        result
    }

    /// Returns the row of `state`, computing it if this is its first use.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::BudgetExceeded`], or what expanding a lazy part says.
    pub fn row(&self, state: StateId, budget: &mut Budget) -> Result<&Row, Error> {
        let entry = &self.states[state.index()];
        if let Some(row) = entry.row.get() {
            return Ok(row);
        }
        let row = self.grow(budget, |growth| growth.make_row(&self.states, entry.expr))?;
        Ok(entry.row.get_or_init(|| row))
    }

    /// Returns the state that has the same masks as `state` for tokens of at most `reach` bytes, with
    /// counters that no token can exhaust taken as endless, so that positions of a long counted loop
    /// share their masks. `reach` must be the same in every call.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::BudgetExceeded`].
    pub fn mask_state(
        &self,
        state: StateId,
        reach: u32,
        budget: &mut Budget,
    ) -> Result<StateId, Error> {
        let entry = &self.states[state.index()];
        if let Some(&known) = entry.mask_state.get() {
            return Ok(known);
        }
        let known = self.grow(budget, |growth| {
            let clamped = growth.grower.clamp(entry.expr, reach)?;
            growth.grower.grammar.arena.check()?;
            if clamped == entry.expr { Ok(state) } else { growth.state(&self.states, clamped) }
        })?;
        Ok(*entry.mask_state.get_or_init(|| known))
    }

    /// Returns states of which `state` keeps all texts but finitely many, with something behind: if one of
    /// them loops on a class of characters, no text of the class is illegal in `state`. What they are is
    /// seen from the expression; of `state` no row is made.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::BudgetExceeded`], or what expanding a lazy part says.
    pub fn endless_parts(
        &self,
        state: StateId,
        budget: &mut Budget,
    ) -> Result<SmallVec<[StateId; 2]>, Error> {
        let expr = self.states[state.index()].expr;
        self.grow(budget, |growth| {
            let parts = growth.grower.endless_parts(expr)?;
            parts.into_iter().map(|part| growth.state(&self.states, part)).collect()
        })
    }

    /// Returns the number of bytes of the shortest text that ends the rule of `state`.
    ///
    /// # Errors
    ///
    /// [`crate::ErrorKind::BudgetExceeded`], or what expanding a lazy part says.
    pub fn least(&self, state: StateId, budget: &mut Budget) -> Result<u32, Error> {
        let expr = self.states[state.index()].expr;
        self.grow(budget, |growth| growth.grower.least(expr))
    }

    /// Returns the expression of `state`.
    #[must_use]
    pub fn expr(&self, state: StateId) -> ExprId {
        self.states[state.index()].expr
    }
}

impl Growth {
    /// Returns the state of a live expression.
    fn state(&mut self, states: &boxcar::Vec<State>, expr: ExprId) -> Result<StateId, Error> {
        if let Some(&id) = self.ids.get(&expr) {
            return Ok(id);
        }
        let limit = self.grower.limits.states;
        if states.count() >= limit {
            return Err(BudgetExceeded::new("states", limit as u64).into());
        }
        let index = states.push(State { expr, row: OnceLock::new(), mask_state: OnceLock::new() });
        let id = StateId::from_index(index)
            .ok_or_else(|| Error::from(BudgetExceeded::new("states", u64::from(u32::MAX))))?;
        self.ids.insert(expr, id);
        Ok(id)
    }

    fn make_row(&mut self, states: &boxcar::Vec<State>, expr: ExprId) -> Result<Row, Error> {
        let accepting = self.grower.nullable(expr)?;
        let parts = self.grower.linear(expr)?;
        let mut moves: Vec<(ByteSet, Move)> = Vec::with_capacity(parts.len());
        for part in parts.iter() {
            if let Some(next) = self.make_move(states, part)? {
                moves.push((part.bytes, next));
            }
        }
        Ok(Row::new(accepting, moves))
    }

    /// Returns the transition of a part, or `None` if no text could follow.
    fn make_move(
        &mut self,
        states: &boxcar::Vec<State>,
        part: &Part,
    ) -> Result<Option<Move>, Error> {
        for &expr in std::iter::once(&part.target).chain(&part.pushes) {
            if !self.grower.live(expr)? {
                return Ok(None);
            }
        }
        let target = self.state(states, part.target)?;
        let mut pushes = Vec::with_capacity(part.pushes.len());
        for &expr in &part.pushes {
            pushes.push(self.state(states, expr)?);
        }
        Ok(Some(Move {
            target,
            pushes: pushes.into(),
            fresh: part.fresh,
            keep: part.keep,
            action: part.action,
            record: part.record,
        }))
    }
}

/// Returns the classes of moves of which several share a byte, and sets the class of each byte.
fn classes_of_overlapping(moves: &[(ByteSet, Move)], class_of: &mut [u8; 256]) -> Box<[Class]> {
    let mut members: Vec<SmallVec<[usize; 4]>> = Vec::new();
    for byte in 0..=255_u8 {
        let here: SmallVec<[usize; 4]> =
            (0..moves.len()).filter(|&index| moves[index].0.contains(byte)).collect();
        let class = members.iter().position(|known| *known == here).unwrap_or_else(|| {
            members.push(here);
            members.len() - 1
        });
        // At most 256 classes, as there are 256 bytes.
        class_of[usize::from(byte)] = u8::try_from(class).unwrap_or(u8::MAX);
    }
    let moves_of = |here: &SmallVec<[usize; 4]>| here.iter().map(|&i| moves[i].1.clone()).collect();
    members.iter().map(|here| Class::new(moves_of(here))).collect()
}

impl Class {
    fn of(only: Move) -> Self {
        Self::new(smallvec::smallvec![only])
    }

    fn new(moves: SmallVec<[Move; 1]>) -> Self {
        let simple = match &moves[..] {
            [one] if !one.fresh && one.pushes.is_empty() && one.action != Action::Close => {
                Some(one.target)
            }
            _ => None,
        };
        let records = moves.len() == 1 && moves[0].action == Action::Record;
        Self { simple, records, moves }
    }
}
