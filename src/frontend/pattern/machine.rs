//! Loops around assertions, and look-behind: an alternating automaton over characters.
//!
//! A *thread* is a position in a program and what the rest of the text still owes: look-aheads that
//! have begun, each as the threads of its body, wanted or unwanted. A *context* is what the text so
//! far says: the class of its last character, and for each look-behind the threads of its body that
//! begin anywhere before. Reading one character takes a thread to threads and a context to a
//! context, so threads in contexts are the unknowns of linear equations ([`super::solve`]). Where a
//! loop is left, what is owed restricts the rest that follows it.
//!
//! All choices at a position are made with the next character known, so a one-character assertion
//! is simply true or false. Debts are sets of sets without order or repetition, so there are finitely
//! many. Recursion goes down the nesting of look-around only, which is bounded by [`MAX_NESTING`].

use hashbrown::{HashMap, HashSet};

use crate::error::{Error, ErrorKind};
use crate::frontend::pattern::classes::{Block, partition};
use crate::frontend::pattern::lower::{Lower, Rest};
use crate::frontend::pattern::program::{Inst, MATCH, Pc, Program};
use crate::frontend::pattern::solve::{Equation, solve};
use crate::frontend::pattern::tree::union;
use crate::frontend::pattern::{NodeId, Side};
use crate::ids::ExprId;
use crate::ir::Arena;
use crate::limits::Budget;

/// How deep look-around may nest inside a loop or around look-behind; deeper is refused by name.
const MAX_NESTING: u32 = 32;

/// Returns the least solution of `x = rest | (body before x)` for each class.
pub(super) fn star(lower: &mut Lower<'_>, body: NodeId, rest: &Rest) -> Result<Rest, Error> {
    check_nesting(lower, body)?;
    let (tree, copies, work) = lower.program_parts();
    let program = Program::star(tree, body, copies, work)?;
    let start = program.start;
    let mut machine = Machine::new(&program, lower)?;
    let mut starts = Vec::new();
    for class in 0..lower.classes.len() {
        let context = machine.contexts.id(Context { class, behinds: Box::default() });
        starts.push(State { thread: Thread { pc: start, owed: NOTHING }, context });
    }
    Ok(machine.languages(lower, &starts, rest)?.into())
}

/// Returns the texts in which `root` matches, from the start or, for `search`, from anywhere, with
/// `rest` after the match.
pub(super) fn whole(
    lower: &mut Lower<'_>,
    root: NodeId,
    search: bool,
    rest: ExprId,
) -> Result<ExprId, Error> {
    check_nesting(lower, root)?;
    let (tree, copies, work) = lower.program_parts();
    let program = Program::whole(tree, root, search, copies, work)?;
    let start = Thread { pc: program.start, owed: NOTHING };
    let mut machine = Machine::new(&program, lower)?;
    let behinds = vec![Threads::default(); program.behinds.len()].into();
    let context = machine.contexts.id(Context { class: 0, behinds });
    let rest: Rest = vec![rest; lower.classes.len()].into();
    let languages = machine.languages(lower, &[State { thread: start, context }], &rest)?;
    Ok(languages.first().copied().unwrap_or(Arena::EMPTY))
}

fn check_nesting(lower: &Lower<'_>, node: NodeId) -> Result<(), Error> {
    if lower.tree.facts(node).around_depth > MAX_NESTING {
        let feature = "look-around nested more than 32 deep".into();
        return Err(Error::new(
            ErrorKind::UnsupportedFeature { feature },
            "look-around assertions are nested more than 32 deep",
        ));
    }
    Ok(())
}

/// A set of threads, in order.
type Threads = Box<[Thread]>;

/// A position in the program, and what the rest of the text owes if this thread is to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Thread {
    pc: Pc,
    owed: usize,
}

/// The look-aheads that have begun and are not decided: all of them must hold.
type Owed = Vec<Debt>;

/// One look-ahead: some thread must match, or none may.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Debt {
    negated: bool,
    threads: Threads,
}

/// The number of the empty [`Owed`].
const NOTHING: usize = 0;

/// What the text before a position says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Context {
    class: usize,
    behinds: Box<[Threads]>,
}

/// An unknown of the equations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct State {
    thread: Thread,
    context: usize,
}

/// Numbers for values.
struct Interner<T> {
    ids: HashMap<T, usize, foldhash::fast::RandomState>,
    values: Vec<T>,
}

impl<T: Clone + Eq + std::hash::Hash> Interner<T> {
    fn new() -> Self {
        Self { ids: HashMap::default(), values: Vec::new() }
    }

    fn id(&mut self, value: T) -> usize {
        let next = self.values.len();
        *self.ids.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            next
        })
    }
}

struct Machine<'a> {
    program: &'a Program,
    /// The characters, as far as the program and the classes tell them apart.
    alphabet: Vec<Block>,
    /// The class of a character.
    class_of: Vec<usize>,
    /// Whether an assertion holds: by assertion, class before, and symbol after (the last: the end).
    holds: Vec<Vec<Vec<bool>>>,
    owed: Interner<Owed>,
    contexts: Interner<Context>,
    work: Budget,
}

impl<'a> Machine<'a> {
    fn new(program: &'a Program, lower: &mut Lower<'_>) -> Result<Self, Error> {
        let mut sets = program.sets.clone();
        sets.extend(lower.classes.sets.iter().cloned());
        let sides = |look: &super::Look| look.cases.iter().map(|(_, a)| a.set.clone()).collect();
        sets.extend(program.looks.iter().flat_map(|look| -> Vec<_> { sides(look) }));
        let alphabet = partition(&sets, &mut lower.work)?;
        let answers = program.looks.len() * lower.classes.len() * alphabet.len();
        lower.work.spend(answers as u64)?;
        let class_of = alphabet
            .iter()
            .map(|block| {
                let classes = 0..lower.classes.len();
                let mut own = classes.filter(|&class| block.is_in(program.sets.len() + class));
                own.next().unwrap_or(0)
            })
            .collect();
        let next = |block: &Block| block.set.ranges().first().map(|range| range.start());
        let holds = program
            .looks
            .iter()
            .map(|look| {
                (0..lower.classes.len())
                    .map(|class| {
                        let before = lower.classes.example(class);
                        let after = alphabet.iter().map(next).chain([None]);
                        after.map(|after| look.holds(before, after)).collect()
                    })
                    .collect()
            })
            .collect();
        let mut owed = Interner::new();
        owed.id(Owed::new());
        let contexts = Interner::new();
        let work = lower.work.clone();
        Ok(Self { program, alphabet, class_of, holds, owed, contexts, work })
    }

    /// Returns the languages of `starts`, with the rest of its class where the program is left.
    fn languages(
        &mut self,
        lower: &mut Lower<'_>,
        starts: &[State],
        rest: &Rest,
    ) -> Result<Vec<ExprId>, Error> {
        let mut states = Interner::new();
        let roots: Vec<_> = starts.iter().map(|&start| states.id(start)).collect();
        let mut equations = Vec::new();
        let mut exits = Vec::new();
        let symbols = self.alphabet.len();
        while let Some(&state) = states.values.get(equations.len()) {
            let mut equation = Equation::default();
            // Where the program is left: what is then owed, before which characters.
            let mut left: Vec<(usize, Vec<usize>)> = Vec::new();
            for symbol in (0..symbols).map(Some).chain([None]) {
                for thread in self.closure(state.thread, state.context, symbol)? {
                    if let Inst::Exit = self.program.insts[thread.pc as usize] {
                        let at = symbol.unwrap_or(symbols);
                        match left.iter_mut().find(|(owed, _)| *owed == thread.owed) {
                            Some((_, before)) => before.push(at),
                            None => left.push((thread.owed, vec![at])),
                        }
                    } else if let Some(symbol) = symbol
                        && let Some(thread) = self.advance(thread, state.context, symbol)?
                    {
                        let context = self.next_context(state.context, symbol)?;
                        equation.add(states.id(State { thread, context }), symbol, symbols);
                    }
                }
            }
            exits.push(left);
            equations.push(equation);
        }
        lower.work = self.work.clone();
        let debts = self.debts(lower, &states.values, &exits)?;
        for ((state, left), equation) in states.values.iter().zip(exits).zip(&mut equations) {
            let class = self.contexts.values[state.context].class;
            for (owed, before) in left {
                let blocks = before.iter().filter_map(|&symbol| self.alphabet.get(symbol));
                let side = Side {
                    set: union(blocks.map(|block| &block.set)),
                    edge: before.contains(&symbols),
                };
                let debt = debts.get(&(owed, state.context)).copied().unwrap_or(Arena::ALL);
                let owing = lower.and(rest[class], debt);
                let end = lower.restrict(owing, &side);
                if end != Arena::EMPTY {
                    equation.ends.push(end);
                }
            }
        }
        solve(lower, &equations, &roots, &self.alphabet)
    }

    /// Returns the languages of what is owed where the program is left.
    fn debts(
        &mut self,
        lower: &mut Lower<'_>,
        states: &[State],
        exits: &[Vec<(usize, Vec<usize>)>],
    ) -> Result<HashMap<(usize, usize), ExprId>, Error> {
        let mut unknowns = Interner::new();
        for (state, left) in states.iter().zip(exits) {
            for &(owed, _) in left {
                unknowns.id((owed, state.context));
            }
        }
        let roots: Vec<_> = (0..unknowns.values.len()).collect();
        let mut equations = Vec::new();
        while let Some(&(owed, context)) = unknowns.values.get(equations.len()) {
            let mut equation = Equation::default();
            if owed == NOTHING {
                equation.ends.push(Arena::ALL);
            } else {
                for symbol in 0..self.alphabet.len() {
                    if let Some(owed) = self.pay(owed, context, symbol)? {
                        let context = self.next_context(context, symbol)?;
                        let target = unknowns.id((owed, context));
                        equation.add(target, symbol, self.alphabet.len());
                    }
                }
                if self.paid_at_end(owed, context)? {
                    equation.ends.push(Arena::EPSILON);
                }
            }
            equations.push(equation);
        }
        lower.work = self.work.clone();
        let solved = solve(lower, &equations, &roots, &self.alphabet)?;
        self.work = lower.work.clone();
        Ok(unknowns.values.into_iter().zip(solved).collect())
    }

    /// Returns where `thread` gets without reading, with `next` the symbol that will be read (or the
    /// end): threads at instructions that are no empty moves.
    fn closure(
        &mut self,
        thread: Thread,
        context: usize,
        next: Option<usize>,
    ) -> Result<Vec<Thread>, Error> {
        let class = self.contexts.values[context].class;
        let mut reached = Vec::new();
        let mut seen: HashSet<Thread, foldhash::fast::RandomState> = HashSet::default();
        let mut stack = vec![thread];
        while let Some(thread) = stack.pop() {
            self.work.spend(1)?;
            if !seen.insert(thread) {
                continue;
            }
            let mut go = |pc: Pc, owed: usize| stack.push(Thread { pc, owed });
            match &self.program.insts[thread.pc as usize] {
                Inst::Match | Inst::Exit | Inst::Here | Inst::Set(..) => reached.push(thread),
                Inst::Split(targets) => targets.iter().rev().for_each(|&pc| go(pc, thread.owed)),
                &Inst::Look(look, pc) => {
                    if self.holds[look][class][next.unwrap_or(self.alphabet.len())] {
                        go(pc, thread.owed);
                    }
                }
                &Inst::Ahead { negated, body, next: pc } => {
                    let begun = [Thread { pc: body, owed: NOTHING }];
                    if let Some(owed) = self.owe(thread.owed, negated, &begun) {
                        go(pc, owed);
                    }
                }
                &Inst::Behind { negated, index, next: pc } => {
                    let ends = self.behind(index, context, next)?;
                    if let Some(owed) = self.owe(thread.owed, negated, &ends) {
                        stack.push(Thread { pc, owed });
                    }
                }
            }
        }
        Ok(reached)
    }

    /// Returns the matches of a look-behind that end here, as threads of what they still owe.
    fn behind(
        &mut self,
        index: usize,
        context: usize,
        next: Option<usize>,
    ) -> Result<Vec<Thread>, Error> {
        let mut threads = self.contexts.values[context].behinds[index].to_vec();
        threads.push(Thread { pc: self.program.behinds[index], owed: NOTHING });
        let mut ends = Vec::new();
        for thread in threads {
            for end in self.closure(thread, context, next)? {
                if let Inst::Here = self.program.insts[end.pc as usize] {
                    ends.push(Thread { pc: MATCH, owed: end.owed });
                }
            }
        }
        Ok(ends)
    }

    /// Adds a look-ahead to what is owed; `None` if it cannot be paid.
    fn owe(&mut self, owed: usize, negated: bool, threads: &[Thread]) -> Option<usize> {
        let threads = self.simplified(threads);
        let done = threads.iter().any(|t| t.pc == MATCH && t.owed == NOTHING);
        match (done || threads.is_empty(), done == negated) {
            (true, true) => None,
            (true, false) => Some(owed),
            (false, _) => {
                let mut all = self.owed.values[owed].clone();
                all.push(Debt { negated, threads });
                all.sort_unstable();
                all.dedup();
                Some(self.owed.id(all))
            }
        }
    }

    /// Sorts threads, and moves those that match whatever comes to the match.
    fn simplified(&self, threads: &[Thread]) -> Threads {
        let mut threads: Vec<_> = threads
            .iter()
            .map(|&Thread { pc, owed }| Thread {
                pc: if self.program.matches[pc as usize] { MATCH } else { pc },
                owed,
            })
            .collect();
        threads.sort_unstable();
        threads.dedup();
        threads.into()
    }

    /// Returns where a thread at an instruction that is no empty move gets by reading `symbol`.
    fn advance(
        &mut self,
        thread: Thread,
        context: usize,
        symbol: usize,
    ) -> Result<Option<Thread>, Error> {
        let pc = match self.program.insts[thread.pc as usize] {
            Inst::Set(set, next) if self.alphabet[symbol].is_in(set) => next,
            Inst::Match => MATCH,
            _ => return Ok(None),
        };
        Ok(self.pay(thread.owed, context, symbol)?.map(|owed| Thread { pc, owed }))
    }

    /// Returns where threads get by reading `symbol`.
    fn step(
        &mut self,
        threads: &[Thread],
        context: usize,
        symbol: usize,
    ) -> Result<Vec<Thread>, Error> {
        let mut after = Vec::new();
        for &thread in threads {
            for thread in self.closure(thread, context, Some(symbol))? {
                if thread == (Thread { pc: MATCH, owed: NOTHING }) {
                    return Ok(vec![thread]);
                }
                after.extend(self.advance(thread, context, symbol)?);
            }
        }
        Ok(after)
    }

    /// Returns what is still owed after reading `symbol`, or `None` if it cannot be paid any more.
    fn pay(&mut self, owed: usize, context: usize, symbol: usize) -> Result<Option<usize>, Error> {
        let mut left = NOTHING;
        for debt in self.owed.values[owed].clone() {
            let threads = self.step(&debt.threads, context, symbol)?;
            match self.owe(left, debt.negated, &threads) {
                Some(more) => left = more,
                None => return Ok(None),
            }
        }
        Ok(Some(left))
    }

    /// Returns whether nothing is left to pay at the end of the text.
    fn paid_at_end(&mut self, owed: usize, context: usize) -> Result<bool, Error> {
        for debt in self.owed.values[owed].clone() {
            let mut matched = false;
            for &thread in &debt.threads {
                for end in self.closure(thread, context, None)? {
                    matched |= end.pc == MATCH && self.paid_at_end(end.owed, context)?;
                }
            }
            if matched == debt.negated {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn next_context(&mut self, context: usize, symbol: usize) -> Result<usize, Error> {
        let mut behinds = Vec::new();
        for index in 0..self.program.behinds.len() {
            let mut threads = self.contexts.values[context].behinds[index].to_vec();
            threads.push(Thread { pc: self.program.behinds[index], owed: NOTHING });
            let threads = self.step(&threads, context, symbol)?;
            behinds.push(self.simplified(&threads));
        }
        let class = self.class_of[symbol];
        Ok(self.contexts.id(Context { class, behinds: behinds.into() }))
    }
}
