//! [`Syntax`] in, [`Facts`] out: what is empty, what is nullable, what the start rule needs, and the
//! proof that no rule begins with itself. The next stage is [`super::lower`].
//!
//! Every pass is linear: least fixed points by worklist, the rest by loops over post-order nodes.

use std::ops::Range;

use super::lexer::place;
use super::parser::{Node, NodeId, RuleIndex, Syntax};
use crate::error::{Error, ErrorKind};
use crate::ids::ExprId;
use crate::ir::Arena;

/// What holds of the nodes and rules of a grammar.
#[derive(Debug)]
pub(super) struct Facts {
    /// By rule: has the empty text.
    pub(super) nullable: Vec<bool>,
    /// By node: takes part in some text of its rule.
    pub(super) live: Vec<bool>,
    /// By rule: live calls from rules that the start rule needs.
    pub(super) uses: Vec<usize>,
    /// By rule: has a text.
    pub(super) productive: Vec<bool>,
}

/// Analyses the rules that `start` needs.
///
/// # Errors
///
/// `Unsatisfiable` if `start` has no text, `LeftRecursion` if a rule that it needs calls itself
/// before any character.
pub(super) fn analyse(
    syntax: &Syntax<'_>,
    arena: &Arena,
    start: RuleIndex,
) -> Result<Facts, Error> {
    let productive = least(syntax, |leaf| leaf != Arena::EMPTY);
    if !productive.rules[start] {
        return Err(unsatisfiable(syntax, &productive.rules, start));
    }
    let nullable = least(syntax, |leaf| arena.facts(leaf).nullable == Some(true));
    let live = live(syntax, &productive);
    let (needed, uses) = needed(syntax, &live, start);
    let first = first(syntax, &live, &nullable.nodes);
    refuse_left_recursion(syntax, &first, &needed)?;
    Ok(Facts { nullable: nullable.rules, live, uses, productive: productive.rules })
}

/// The nodes and rules for which a property holds.
struct Holds {
    nodes: Vec<bool>,
    rules: Vec<bool>,
}

/// Who learns when a property is found to hold of a node.
#[derive(Clone, Copy)]
enum Parent {
    Node(NodeId),
    Rule(RuleIndex),
}

/// Returns the least property that holds of the leaves that `holds` names, of a sequence if of all
/// its parts, of a choice if of one, of a repetition if of its body or if it may be left out, and of
/// a call if of the rule's body.
fn least(syntax: &Syntax<'_>, holds: impl Fn(ExprId) -> bool) -> Holds {
    let nodes = syntax.nodes.len();
    let mut parents = vec![Parent::Node(0); nodes];
    let mut calls = vec![Vec::new(); syntax.rules.len()];
    for (index, rule) in syntax.rules.iter().enumerate() {
        if !rule.nodes.is_empty() {
            parents[rule.body()] = Parent::Rule(index);
        }
    }
    // How many parts of each node must still be found to hold.
    let mut missing = vec![1_usize; nodes];
    let mut open = Vec::new();
    for (id, node) in syntax.nodes.iter().enumerate() {
        for &child in syntax.children(id) {
            parents[child] = Parent::Node(id);
        }
        let now = match node {
            Node::Leaf(leaf) => holds(*leaf),
            Node::Call { rule, .. } => {
                calls[*rule].push(id);
                false
            }
            Node::Sequence(parts) => {
                missing[id] = parts.len();
                parts.is_empty()
            }
            Node::Choice(_) => false,
            Node::Repeat { min, .. } => *min == 0,
        };
        if now {
            missing[id] = 0;
            open.push(id);
        }
    }
    let mut rules = vec![false; syntax.rules.len()];
    let mut learn = |id: NodeId, open: &mut Vec<NodeId>| {
        // A node that holds already has nothing missing, and is not entered twice.
        if missing[id] > 0 {
            missing[id] -= 1;
            if missing[id] == 0 {
                open.push(id);
            }
        }
    };
    while let Some(id) = open.pop() {
        match parents[id] {
            Parent::Node(parent) => learn(parent, &mut open),
            Parent::Rule(rule) => {
                rules[rule] = true;
                for &call in &calls[rule] {
                    learn(call, &mut open);
                }
            }
        }
    }
    Holds { nodes: missing.into_iter().map(|missing| missing == 0).collect(), rules }
}

/// Marks the nodes that take part in some text of their rule.
fn live(syntax: &Syntax<'_>, productive: &Holds) -> Vec<bool> {
    let mut live = vec![false; syntax.nodes.len()];
    for rule in syntax.rules.iter().filter(|rule| !rule.nodes.is_empty()) {
        live[rule.body()] = productive.nodes[rule.body()];
        for id in rule.nodes.clone().rev() {
            if !live[id] || matches!(syntax.nodes[id], Node::Repeat { max: 0, .. }) {
                continue;
            }
            for &child in syntax.children(id) {
                live[child] = productive.nodes[child];
            }
        }
    }
    live
}

/// Marks the live nodes whose text can stand at the very start of their rule's.
fn first(syntax: &Syntax<'_>, live: &[bool], nullable: &[bool]) -> Vec<bool> {
    let mut first = vec![false; syntax.nodes.len()];
    for rule in syntax.rules.iter().filter(|rule| !rule.nodes.is_empty()) {
        first[rule.body()] = live[rule.body()];
        for id in rule.nodes.clone().rev() {
            if !first[id] {
                continue;
            }
            let sequence = matches!(syntax.nodes[id], Node::Sequence(_));
            for &child in syntax.children(id) {
                first[child] = live[child];
                if sequence && !nullable[child] {
                    break;
                }
            }
        }
    }
    first
}

/// Returns which rules `start` needs, and how many live calls of each rule stand in them.
fn needed(syntax: &Syntax<'_>, live: &[bool], start: RuleIndex) -> (Vec<bool>, Vec<usize>) {
    let mut needed = vec![false; syntax.rules.len()];
    let mut uses = vec![0; syntax.rules.len()];
    needed[start] = true;
    let mut open = vec![start];
    while let Some(rule) = open.pop() {
        for (_, callee) in syntax.calls(rule).filter(|&(node, _)| live[node]) {
            uses[callee] += 1;
            if !std::mem::replace(&mut needed[callee], true) {
                open.push(callee);
            }
        }
    }
    (needed, uses)
}

/// Looks for a cycle of calls at the start of rules, by depth-first search.
fn refuse_left_recursion(
    syntax: &Syntax<'_>,
    first: &[bool],
    needed: &[bool],
) -> Result<(), Error> {
    #[derive(Clone, Copy, PartialEq)]
    enum Colour {
        New,
        Open,
        Done,
    }
    let mut colours = vec![Colour::New; syntax.rules.len()];
    for root in (0..syntax.rules.len()).filter(|&rule| needed[rule]) {
        if colours[root] != Colour::New {
            continue;
        }
        colours[root] = Colour::Open;
        // Each open rule, the nodes that are left to look at, and the call by which it goes on.
        let mut path: Vec<(RuleIndex, Range<NodeId>, NodeId)> =
            vec![(root, syntax.rules[root].nodes.clone(), 0)];
        while let Some((rule, nodes, by)) = path.last_mut() {
            let call = nodes.find_map(|node| match syntax.nodes[node] {
                Node::Call { rule, .. } if first[node] => Some((node, rule)),
                _ => None,
            });
            let Some((node, callee)) = call else {
                colours[*rule] = Colour::Done;
                path.pop();
                continue;
            };
            *by = node;
            match colours[callee] {
                Colour::Done => {}
                Colour::New => {
                    colours[callee] = Colour::Open;
                    path.push((callee, syntax.rules[callee].nodes.clone(), 0));
                }
                Colour::Open => {
                    let calls: Vec<_> = path
                        .iter()
                        .skip_while(|(rule, ..)| *rule != callee)
                        .map(|&(rule, _, by)| (rule, by))
                        .collect();
                    return Err(left_recursion(syntax, &calls));
                }
            }
        }
    }
    Ok(())
}

/// Describes a cycle of rules, each with the node of its call of the next.
fn left_recursion(syntax: &Syntax<'_>, cycle: &[(RuleIndex, NodeId)]) -> Error {
    let names: Vec<_> = cycle.iter().map(|&(rule, _)| rule).collect();
    let message = format!(
        "left recursion: {} before any character; write it as a repetition, such as `x (op x)*`",
        chain(syntax, &names, "calls")
    );
    let mut error = Error::new(ErrorKind::LeftRecursion, message);
    for &(_, by) in cycle.iter().take(SHOWN) {
        let Node::Call { rule, at } = syntax.nodes[by] else { continue };
        let location = place(syntax.text, at..at + syntax.rules[rule].name.len());
        error = if error.location().is_none() {
            error.at(location)
        } else {
            error.related_to(location)
        };
    }
    error
}

/// Describes why `start` has no text, following one needed rule after the other.
fn unsatisfiable(syntax: &Syntax<'_>, productive: &[bool], start: RuleIndex) -> Error {
    let mut seen = vec![false; syntax.rules.len()];
    let mut path = vec![start];
    let mut rule = start;
    while !std::mem::replace(&mut seen[rule], true)
        && let Some((_, callee)) = syntax.calls(rule).find(|&(_, callee)| !productive[callee])
    {
        rule = callee;
        path.push(rule);
    }
    let start = &syntax.rules[start];
    let mut message = format!("no text matches rule `{}`", start.name);
    if path.len() > 1 {
        let closing = path.pop().and_then(|last| path.iter().position(|&rule| rule == last));
        let why = match closing {
            Some(from) => format!(": {}, without end", chain(syntax, &path[from..], "needs")),
            None => String::new(),
        };
        message.push_str(&why);
    }
    Error::new(ErrorKind::Unsatisfiable, message)
        .at(place(syntax.text, start.at..start.at + start.name.len()))
}

/// The number of rules of a cycle that a message names.
const SHOWN: usize = 8;

/// Returns "`a` calls `b` calls `a`".
fn chain(syntax: &Syntax<'_>, cycle: &[RuleIndex], verb: &str) -> String {
    let mut text = String::new();
    for &rule in cycle.iter().take(SHOWN) {
        text.push_str(&format!("`{}` {verb} ", syntax.rules[rule].name));
    }
    if cycle.len() > SHOWN {
        text.push_str(&format!("{} more rules, the last {verb} ", cycle.len() - SHOWN));
    }
    if let Some(&rule) = cycle.first() {
        text.push_str(&format!("`{}`", syntax.rules[rule].name));
    }
    text
}
