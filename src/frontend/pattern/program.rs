//! A tree as instructions for [`super::machine`]: a non-deterministic automaton over characters whose
//! empty moves may be guarded by assertions.

use crate::error::Error;
use crate::frontend::pattern::{Around, Look, Node, NodeId, Tree};
use crate::ir::UNBOUNDED;
use crate::ir::chars::{CharSet, all_chars};
use crate::limits::Budget;

/// A position in a [`Program`].
pub(super) type Pc = u32;

/// An instruction. Only [`Inst::Set`] consumes.
#[derive(Clone, Debug)]
pub(super) enum Inst {
    /// A look-ahead matched; anything may follow.
    Match,
    /// The whole matched; the rest of the caller follows.
    Exit,
    /// A look-behind matched up to here.
    Here,
    /// One character of a set of [`Program::sets`].
    Set(usize, Pc),
    /// Goes on at any of these.
    Split(Vec<Pc>),
    /// Goes on if this assertion of [`Program::looks`] holds.
    Look(usize, Pc),
    /// Goes on if the look-ahead at `body` matches, or does not.
    Ahead { negated: bool, body: Pc, next: Pc },
    /// Goes on if this look-behind of [`Program::behinds`] matches, or does not.
    Behind { negated: bool, index: usize, next: Pc },
}

/// Where [`Inst::Match`] stands.
pub(super) const MATCH: Pc = 0;
const EXIT: Pc = 1;
const HERE: Pc = 2;

/// The instructions of a pattern.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) insts: Vec<Inst>,
    pub(super) start: Pc,
    pub(super) sets: Vec<CharSet>,
    pub(super) looks: Vec<Look>,
    /// Where the body of each look-behind starts; inner ones come first.
    pub(super) behinds: Vec<Pc>,
    /// Reaches [`MATCH`] without any condition.
    pub(super) matches: Vec<bool>,
}

/// A step of [`Builder::node`], which keeps entries on a stack.
enum Task {
    /// Compiles a node that goes on at the topmost entry, and replaces it by the node's.
    Node(NodeId),
    Push(Pc),
    /// Replaces this many topmost entries by a split.
    Split(usize),
    /// Makes the split `split` a loop around the topmost entry, which leaves at `out`.
    Close {
        split: Pc,
        out: Pc,
    },
    /// Puts `left` more copies in front, each of which may be skipped to `out`.
    Optional {
        body: NodeId,
        left: u32,
        out: Pc,
    },
    Mandatory {
        body: NodeId,
        left: u32,
    },
    /// Makes the topmost entry the body of a look-around in front of `next`.
    Around {
        around: Around,
        next: Pc,
    },
}

struct Builder<'a> {
    tree: &'a Tree,
    program: Program,
    copies: &'a mut Budget,
    work: &'a mut Budget,
}

impl Program {
    /// Returns the program of any number of copies of `body`.
    pub(super) fn star(
        tree: &Tree,
        body: NodeId,
        copies: &mut Budget,
        work: &mut Budget,
    ) -> Result<Self, Error> {
        let mut builder = Builder::new(tree, copies, work);
        let split = builder.push(Inst::Split(Vec::new()))?;
        let entry = builder.node(body, split)?;
        builder.set(split, Inst::Split(vec![entry, EXIT]));
        Ok(builder.finish(split))
    }

    /// Returns the program of `root`, at the start of a text or anywhere in it.
    pub(super) fn whole(
        tree: &Tree,
        root: NodeId,
        search: bool,
        copies: &mut Budget,
        work: &mut Budget,
    ) -> Result<Self, Error> {
        let mut builder = Builder::new(tree, copies, work);
        let mut entry = builder.node(root, EXIT)?;
        if search {
            let split = builder.push(Inst::Split(Vec::new()))?;
            let any = builder.character(all_chars(), split)?;
            builder.set(split, Inst::Split(vec![any, entry]));
            entry = split;
        }
        Ok(builder.finish(entry))
    }

    /// Marks what reaches [`MATCH`] through splits alone, backwards from there.
    fn mark_matches(&mut self) {
        let mut before: Vec<Vec<Pc>> = vec![Vec::new(); self.insts.len()];
        for (pc, inst) in (0..).zip(&self.insts) {
            if let Inst::Split(targets) = inst {
                targets.iter().for_each(|&target| before[target as usize].push(pc));
            }
        }
        self.matches = vec![false; self.insts.len()];
        let mut stack = vec![MATCH];
        while let Some(pc) = stack.pop() {
            if !std::mem::replace(&mut self.matches[pc as usize], true) {
                stack.append(&mut before[pc as usize]);
            }
        }
    }
}

impl<'a> Builder<'a> {
    fn new(tree: &'a Tree, copies: &'a mut Budget, work: &'a mut Budget) -> Self {
        let program = Program {
            insts: vec![Inst::Match, Inst::Exit, Inst::Here],
            start: EXIT,
            sets: Vec::new(),
            looks: Vec::new(),
            behinds: Vec::new(),
            matches: Vec::new(),
        };
        Self { tree, program, copies, work }
    }

    fn finish(mut self, start: Pc) -> Program {
        self.program.start = start;
        self.program.mark_matches();
        self.program
    }

    fn push(&mut self, inst: Inst) -> Result<Pc, Error> {
        self.work.spend(1)?;
        let pc = Pc::try_from(self.program.insts.len()).unwrap_or(Pc::MAX);
        self.program.insts.push(inst);
        Ok(pc)
    }

    fn set(&mut self, pc: Pc, inst: Inst) {
        self.program.insts[pc as usize] = inst;
    }

    fn character(&mut self, set: CharSet, next: Pc) -> Result<Pc, Error> {
        let sets = &mut self.program.sets;
        let index = sets.iter().position(|s| *s == set).unwrap_or_else(|| {
            sets.push(set);
            sets.len() - 1
        });
        self.work.spend(index as u64)?;
        self.push(Inst::Set(index, next))
    }

    /// Compiles `root` so that it goes on at `next`; returns where it starts.
    fn node(&mut self, root: NodeId, next: Pc) -> Result<Pc, Error> {
        let mut entries = vec![next];
        let mut tasks = vec![Task::Node(root)];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Node(node) => {
                    let Some(next) = entries.pop() else { break };
                    let entry = self.begin(node, next, &mut tasks)?;
                    entries.push(entry);
                }
                Task::Push(pc) => entries.push(pc),
                Task::Split(count) => {
                    let targets = entries.split_off(entries.len().saturating_sub(count));
                    entries.push(self.push(Inst::Split(targets))?);
                }
                Task::Close { split, out } => {
                    let Some(entry) = entries.pop() else { break };
                    self.set(split, Inst::Split(vec![entry, out]));
                    entries.push(split);
                }
                Task::Optional { left: 0, .. } | Task::Mandatory { left: 0, .. } => {}
                Task::Optional { body, left, out } => {
                    self.copies.spend(1)?;
                    tasks.push(Task::Optional { body, left: left - 1, out });
                    tasks.extend([Task::Split(2), Task::Push(out), Task::Node(body)]);
                }
                Task::Mandatory { body, left } => {
                    self.copies.spend(1)?;
                    tasks.extend([Task::Mandatory { body, left: left - 1 }, Task::Node(body)]);
                }
                Task::Around { around, next } => {
                    let Some(body) = entries.pop() else { break };
                    let negated = around.negated;
                    let inst = if around.ahead {
                        Inst::Ahead { negated, body, next }
                    } else {
                        self.program.behinds.push(body);
                        Inst::Behind { negated, index: self.program.behinds.len() - 1, next }
                    };
                    entries.push(self.push(inst)?);
                }
            }
        }
        Ok(entries.pop().unwrap_or(next))
    }

    /// Compiles a node that has no parts, or returns where its last part is to go on, and adds the
    /// tasks of its parts.
    fn begin(&mut self, node: NodeId, next: Pc, tasks: &mut Vec<Task>) -> Result<Pc, Error> {
        match self.tree.node(node) {
            Node::Empty => Ok(next),
            Node::Set(set) => self.character(set.clone(), next),
            Node::Look(look) => {
                self.program.looks.push(look.clone());
                self.push(Inst::Look(self.program.looks.len() - 1, next))
            }
            Node::Concat(parts) => {
                tasks.extend(parts.iter().map(|&part| Task::Node(part)));
                Ok(next)
            }
            Node::Alt(parts) => {
                tasks.push(Task::Split(parts.len()));
                for (i, &part) in parts.iter().enumerate() {
                    // The first part to run finds its entry on the stack already.
                    tasks.push(Task::Node(part));
                    if i + 1 < parts.len() {
                        tasks.push(Task::Push(next));
                    }
                }
                Ok(next)
            }
            &Node::Repeat { body, min, max } => {
                tasks.push(Task::Mandatory { body, left: min });
                if max == UNBOUNDED {
                    let split = self.push(Inst::Split(Vec::new()))?;
                    tasks.extend([Task::Close { split, out: next }, Task::Node(body)]);
                    return Ok(split);
                }
                tasks.push(Task::Optional { body, left: max - min, out: next });
                Ok(next)
            }
            Node::Around(around) => {
                tasks.push(Task::Around { around: *around, next });
                tasks.push(Task::Node(around.body));
                Ok(if around.ahead { MATCH } else { HERE })
            }
        }
    }
}
