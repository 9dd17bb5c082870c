//! GBNF text in, [`Syntax`] out: rules as trees in post-order, every name resolved. The next stage
//! is [`super::analysis`].
//!
//! Linear time. Nesting is an explicit stack bounded by `Limits::source_depth`, the number of nodes
//! is bounded by `Limits::expressions`. Children stand before their parents and the nodes of one
//! rule are neighbours, so every later walk is a loop.

use std::ops::Range;

use hashbrown::HashMap;

use super::lexer::{Kind, Lexeme, Lexer, place, syntax};
use crate::error::{Error, ErrorKind};
use crate::ids::ExprId;
use crate::ir::Arena;
use crate::ir::chars::{Encoding, char_class};
use crate::limits::{BudgetExceeded, Limits};

/// Position of a node in [`Syntax::nodes`].
pub(super) type NodeId = usize;

/// Position of a rule in [`Syntax::rules`].
pub(super) type RuleIndex = usize;

/// The rules of a grammar text.
#[derive(Debug)]
pub(super) struct Syntax<'t> {
    pub(super) text: &'t str,
    pub(super) nodes: Vec<Node>,
    /// The children of sequences and alternations.
    pub(super) children: Vec<NodeId>,
    pub(super) rules: Vec<Rule<'t>>,
}

/// One rule.
#[derive(Clone, Debug)]
pub(super) struct Rule<'t> {
    pub(super) name: &'t str,
    /// Where the name stands at the definition.
    pub(super) at: usize,
    /// All nodes of the rule. The last one is its body.
    pub(super) nodes: Range<NodeId>,
}

/// A node of a rule's tree.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A literal or a class.
    Leaf(ExprId),
    /// A rule, named at byte `at` of the text.
    Call { rule: RuleIndex, at: usize },
    /// One after the other; these children.
    Sequence(Range<usize>),
    /// One of these children.
    Choice(Range<usize>),
    /// Between `min` and `max` times.
    Repeat { body: NodeId, min: u32, max: u32 },
}

impl Rule<'_> {
    /// Returns the root of the rule's tree.
    pub(super) const fn body(&self) -> NodeId {
        self.nodes.end - 1
    }
}

impl Syntax<'_> {
    /// Returns the children of `node`.
    pub(super) fn children(&self, node: NodeId) -> &[NodeId] {
        match &self.nodes[node] {
            Node::Sequence(range) | Node::Choice(range) => &self.children[range.clone()],
            Node::Repeat { body, .. } => std::slice::from_ref(body),
            Node::Leaf(_) | Node::Call { .. } => &[],
        }
    }

    /// Returns the calls in `rule`, each with the rule that it names, in the order of the text.
    pub(super) fn calls(&self, rule: RuleIndex) -> impl Iterator<Item = (NodeId, RuleIndex)> + '_ {
        self.rules[rule].nodes.clone().filter_map(|node| match self.nodes[node] {
            Node::Call { rule, .. } => Some((node, rule)),
            _ => None,
        })
    }

    /// Returns the position of the rule `name`.
    pub(super) fn find(&self, name: &str) -> Option<RuleIndex> {
        self.rules.iter().position(|rule| rule.name == name)
    }
}

/// Parses `text`; literals and classes are built in `arena`.
pub(super) fn parse<'t>(
    text: &'t str,
    arena: &mut Arena,
    limits: &Limits,
) -> Result<Syntax<'t>, Error> {
    let mut parser = Parser {
        arena,
        limits,
        syntax: Syntax { text, nodes: Vec::new(), children: Vec::new(), rules: Vec::new() },
        names: HashMap::default(),
        frames: Vec::new(),
    };
    let mut lexer = Lexer::new(text);
    loop {
        let lexeme = lexer.next()?;
        let end = lexeme.kind == Kind::End;
        parser.take(lexeme)?;
        if end {
            return parser.finish();
        }
    }
}

/// An open rule or group.
#[derive(Debug)]
struct Frame {
    /// The rule's name, or the parenthesis.
    range: Range<usize>,
    /// The finished alternatives.
    choices: Vec<NodeId>,
    /// The items of the alternative at hand.
    items: Vec<NodeId>,
}

struct Parser<'a, 't> {
    arena: &'a mut Arena,
    limits: &'a Limits,
    syntax: Syntax<'t>,
    names: HashMap<&'t str, RuleIndex, foldhash::fast::RandomState>,
    /// The open rule, then the open groups in it.
    frames: Vec<Frame>,
}

impl<'t> Parser<'_, 't> {
    fn take(&mut self, Lexeme { kind, range }: Lexeme) -> Result<(), Error> {
        match kind {
            Kind::Head => {
                self.end_rule(&range, "a new rule")?;
                return self.start_rule(range);
            }
            Kind::End => return self.end_rule(&range, "the end of the grammar"),
            _ => {}
        }
        if self.frames.is_empty() {
            return Err(syntax(self.syntax.text, range, "expected a rule, `name ::= …`"));
        }
        match kind {
            Kind::Name => {
                let rule = self.rule_named(range.clone());
                self.item(Node::Call { rule, at: range.start }, range)
            }
            Kind::Literal(literal) => {
                let leaf = self.arena.literal(literal.as_bytes());
                self.item(Node::Leaf(leaf), range)
            }
            Kind::Class(set) => {
                let leaf = char_class(self.arena, &set, Encoding::Utf8);
                self.item(Node::Leaf(leaf), range)
            }
            Kind::Open => self.open(range),
            Kind::Or => self.end_choice(range),
            Kind::Close => self.close(range),
            Kind::Repeat(min, max) => self.repeat(min, max, range),
            Kind::Head | Kind::End => Ok(()),
        }
    }

    /// Returns the position of the rule that stands at `range`; it may be defined later.
    fn rule_named(&mut self, range: Range<usize>) -> RuleIndex {
        let name = &self.syntax.text[range];
        *self.names.entry(name).or_insert_with(|| {
            self.syntax.rules.push(Rule { name, at: 0, nodes: 0..0 });
            self.syntax.rules.len() - 1
        })
    }

    fn start_rule(&mut self, range: Range<usize>) -> Result<(), Error> {
        let index = self.rule_named(range.clone());
        let start = self.syntax.nodes.len();
        let text = self.syntax.text;
        let rule = &mut self.syntax.rules[index];
        if !rule.nodes.is_empty() {
            let message = format!("rule `{}` is defined twice", rule.name);
            let first = place(text, rule.at..rule.at + rule.name.len());
            return Err(syntax(text, range, message).related_to(first));
        }
        // The end is put right when the rule ends.
        (rule.at, rule.nodes) = (range.start, start..start + 1);
        self.frames.push(Frame { range, choices: Vec::new(), items: Vec::new() });
        Ok(())
    }

    /// Ends the rule at hand, if any, because `what` comes at `range`.
    fn end_rule(&mut self, range: &Range<usize>, what: &str) -> Result<(), Error> {
        let text = self.syntax.text;
        if self.frames.len() > 1
            && let Some(group) = self.frames.last()
        {
            let message = format!("expected `)` before {what}");
            let open = place(text, group.range.clone());
            return Err(syntax(text, range.clone(), message).related_to(open));
        }
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let index = self.rule_named(frame.range.clone());
        let body = self.end_frame(frame, range)?;
        debug_assert_eq!(body + 1, self.syntax.nodes.len(), "the body is the last node");
        self.syntax.rules[index].nodes.end = self.syntax.nodes.len();
        Ok(())
    }

    fn open(&mut self, range: Range<usize>) -> Result<(), Error> {
        // The rule itself is the first frame.
        if self.frames.len() > self.limits.source_depth {
            let budget = BudgetExceeded::new("source_depth", self.limits.source_depth as u64);
            return Err(Error::budget(budget).at(place(self.syntax.text, range)));
        }
        self.frames.push(Frame { range, choices: Vec::new(), items: Vec::new() });
        Ok(())
    }

    fn close(&mut self, range: Range<usize>) -> Result<(), Error> {
        if self.frames.len() < 2 {
            return Err(syntax(self.syntax.text, range, "`)` without its `(`"));
        }
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        let group = self.end_frame(frame, &range)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.items.push(group);
        }
        Ok(())
    }

    fn end_choice(&mut self, range: Range<usize>) -> Result<(), Error> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        let items = std::mem::take(&mut frame.items);
        let choice = self.sequence(items, &range)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.choices.push(choice);
        }
        Ok(())
    }

    fn end_frame(&mut self, frame: Frame, range: &Range<usize>) -> Result<NodeId, Error> {
        let Frame { mut choices, items, .. } = frame;
        let last = self.sequence(items, range)?;
        if choices.is_empty() {
            return Ok(last);
        }
        choices.push(last);
        let children = self.add_children(&choices);
        self.push(Node::Choice(children), range)
    }

    fn sequence(&mut self, items: Vec<NodeId>, range: &Range<usize>) -> Result<NodeId, Error> {
        match items[..] {
            [item] => Ok(item),
            _ => {
                let children = self.add_children(&items);
                self.push(Node::Sequence(children), range)
            }
        }
    }

    fn add_children(&mut self, children: &[NodeId]) -> Range<usize> {
        let start = self.syntax.children.len();
        self.syntax.children.extend_from_slice(children);
        start..self.syntax.children.len()
    }

    /// Repeats the last item.
    fn repeat(&mut self, min: u32, max: u32, range: Range<usize>) -> Result<(), Error> {
        let Some(body) = self.frames.last_mut().and_then(|frame| frame.items.pop()) else {
            let message = "expected something to repeat before this";
            return Err(syntax(self.syntax.text, range, message));
        };
        if (min, max) == (1, 1) {
            if let Some(frame) = self.frames.last_mut() {
                frame.items.push(body);
            }
            return Ok(());
        }
        self.item(Node::Repeat { body, min, max }, range)
    }

    fn item(&mut self, node: Node, range: Range<usize>) -> Result<(), Error> {
        let id = self.push(node, &range)?;
        if let Some(frame) = self.frames.last_mut() {
            frame.items.push(id);
        }
        Ok(())
    }

    fn push(&mut self, node: Node, range: &Range<usize>) -> Result<NodeId, Error> {
        if self.syntax.nodes.len() >= self.limits.expressions {
            let budget = BudgetExceeded::new("expressions", self.limits.expressions as u64);
            return Err(Error::budget(budget).at(place(self.syntax.text, range.clone())));
        }
        self.syntax.nodes.push(node);
        Ok(self.syntax.nodes.len() - 1)
    }

    /// Returns the rules once every name that is used has a definition.
    fn finish(self) -> Result<Syntax<'t>, Error> {
        let syntax = self.syntax;
        for node in &syntax.nodes {
            let Node::Call { rule, at } = *node else { continue };
            let rule = &syntax.rules[rule];
            if rule.nodes.is_empty() {
                let message = format!("rule `{}` is not defined", rule.name);
                return Err(Error::new(ErrorKind::UnresolvedReference, message)
                    .at(place(syntax.text, at..at + rule.name.len())));
            }
        }
        Ok(syntax)
    }
}
