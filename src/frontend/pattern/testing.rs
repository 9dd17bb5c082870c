//! Oracles for tests: a matcher of expressions by derivatives, and one of trees by definition.

use hashbrown::HashMap;
use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use crate::frontend::pattern::{Look, Node, NodeId, Side, Tree};
use crate::ids::ExprId;
use crate::ir::chars::{CharSet, char_set};
use crate::ir::{Arena, Expr, UNBOUNDED};

/// Matches texts against a regular expression by Brzozowski derivatives, kept for the next text.
pub(crate) struct Derivatives {
    pub(crate) arena: Arena,
    known: HashMap<(ExprId, u8), ExprId>,
}

impl Derivatives {
    pub(crate) fn new(arena: Arena) -> Self {
        Self { arena, known: HashMap::new() }
    }

    pub(crate) fn matches(&mut self, expr: ExprId, text: &[u8]) -> bool {
        let end = text.iter().fold(expr, |expr, &byte| self.derivative(expr, byte));
        self.arena.facts(end).nullable == Some(true)
    }

    /// Returns a text of the language by a random walk of at most `length` bytes, unless it runs into
    /// a dead end or is longer.
    pub(crate) fn random_text(
        &mut self,
        expr: ExprId,
        length: usize,
        rng: &mut ChaCha8Rng,
    ) -> Option<Vec<u8>> {
        let mut at = expr;
        let mut text = Vec::new();
        while text.len() < length {
            if self.arena.facts(at).nullable == Some(true) && rng.random_range(0..8) == 0 {
                return Some(text);
            }
            let live: Vec<u8> =
                (0..=255).filter(|&byte| self.derivative(at, byte) != Arena::EMPTY).collect();
            let Some(&byte) = live.choose(rng) else { break };
            text.push(byte);
            at = self.derivative(at, byte);
        }
        (self.arena.facts(at).nullable == Some(true)).then_some(text)
    }

    fn derivative(&mut self, id: ExprId, byte: u8) -> ExprId {
        if let Some(&known) = self.known.get(&(id, byte)) {
            return known;
        }
        let result = match self.arena.get(id).clone() {
            Expr::Empty | Expr::Epsilon => Arena::EMPTY,
            Expr::Bytes(set) if set.contains(byte) => Arena::EPSILON,
            Expr::Bytes(_) => Arena::EMPTY,
            Expr::Concat(a, b) => {
                let head = self.derivative(a, byte);
                let through = self.arena.concat2(head, b);
                if self.arena.facts(a).nullable == Some(true) {
                    let after = self.derivative(b, byte);
                    self.arena.alt2(through, after)
                } else {
                    through
                }
            }
            Expr::Alt(parts) => {
                let parts: Vec<_> = parts.iter().map(|&p| self.derivative(p, byte)).collect();
                self.arena.alt(&parts)
            }
            Expr::And(parts) => {
                let parts: Vec<_> = parts.iter().map(|&p| self.derivative(p, byte)).collect();
                self.arena.and(&parts)
            }
            Expr::Not(inner) => {
                let inner = self.derivative(inner, byte);
                self.arena.not(inner)
            }
            Expr::Repeat { body, min, max } => {
                let head = self.derivative(body, byte);
                let most = if max == UNBOUNDED { max } else { max - 1 };
                let tail = self.arena.repeat(body, min.saturating_sub(1), most);
                self.arena.concat2(head, tail)
            }
            Expr::Literals { set, node } => {
                let fst = self.arena.literal_set(set);
                let at = fst.node(usize::try_from(node).unwrap());
                match at.find_input(byte) {
                    Some(i) => {
                        let next = at.transition(i).addr as u64;
                        self.arena.literal_node(set, next)
                    }
                    None => Arena::EMPTY,
                }
            }
            other => panic!("{other:?} is not regular"),
        };
        self.known.insert((id, byte), result);
        result
    }
}

/// Returns the positions (as bits) at which a match of `node` may end that starts at `start`.
pub(crate) fn ends(tree: &Tree, node: NodeId, text: &[char], start: usize) -> u64 {
    match tree.node(node) {
        Node::Empty => 1 << start,
        Node::Set(set) => match text.get(start) {
            Some(&c) if set.iter().any(|r| r.start() <= c && c <= r.end()) => 2 << start,
            _ => 0,
        },
        Node::Concat(parts) => {
            parts.iter().fold(1 << start, |at, &part| ends_from(tree, part, text, at))
        }
        Node::Alt(parts) => parts.iter().fold(0, |all, &p| all | ends(tree, p, text, start)),
        &Node::Repeat { body, min, max } => {
            let mut at = 1 << start;
            let mut all = if min == 0 { at } else { 0 };
            // After as many copies as there are positions, further ones are empty.
            let limit = u32::try_from(text.len()).unwrap() + min + 1;
            for count in 1..=max.min(limit) {
                at = ends_from(tree, body, text, at);
                if count >= min {
                    all |= at;
                }
            }
            all
        }
        Node::Look(look) => {
            let before = start.checked_sub(1).map(|i| text[i]);
            if look.holds(before, text.get(start).copied()) { 1 << start } else { 0 }
        }
        Node::Around(around) => {
            let holds = if around.ahead {
                ends(tree, around.body, text, start) != 0
            } else {
                (0..=start).any(|from| ends(tree, around.body, text, from) >> start & 1 == 1)
            };
            if holds != around.negated { 1 << start } else { 0 }
        }
    }
}

fn ends_from(tree: &Tree, node: NodeId, text: &[char], starts: u64) -> u64 {
    (0..=text.len())
        .filter(|&i| starts >> i & 1 == 1)
        .fold(0, |all, i| all | ends(tree, node, text, i))
}

/// The characters of the texts that [`short_texts`] returns.
pub(crate) const LETTERS: [char; 4] = ['a', 'b', '-', 'é'];

/// Returns all texts of up to `length` of the first `letters` of [`LETTERS`].
pub(crate) fn short_texts(letters: usize, length: u32) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut last = 0;
    for _ in 0..length {
        let end = texts.len();
        for i in last..end {
            for c in &LETTERS[..letters] {
                texts.push(format!("{}{c}", texts[i]));
            }
        }
        last = end;
    }
    texts
}

fn random_set(rng: &mut ChaCha8Rng) -> CharSet {
    let sets = [
        char_set(&[('a', 'a')]),
        char_set(&[('b', 'b')]),
        char_set(&[('a', 'b')]),
        char_set(&[('-', '-')]),
        char_set(&[('\0', char::MAX)]),
        char_set(&[('\0', 'a'), ('c', char::MAX)]),
    ];
    sets[rng.random_range(0..sets.len())].clone()
}

fn random_look(rng: &mut ChaCha8Rng) -> Look {
    let word = char_set(&[('a', 'z')]);
    match rng.random_range(0..7) {
        0 => Look::before(Side::edge()),
        1 => Look::after(Side::edge()),
        2 => Look::word_boundary(&word),
        3 => Look::no_word_boundary(&word),
        4 => Look::before(Side::of(char_set(&[('b', 'b')]))),
        5 => Look::after(Side::of(char_set(&[('b', 'b')])).complement()),
        _ => Look::before(Side::of(char_set(&[('-', '-')])).union(&Side::edge())),
    }
}

/// What a random tree may contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ingredients {
    pub(crate) looks: bool,
    pub(crate) ahead: bool,
    pub(crate) behind: bool,
}

/// Adds a random tree of about `size` nodes.
pub(crate) fn random_tree(
    tree: &mut Tree,
    rng: &mut ChaCha8Rng,
    size: u32,
    with: Ingredients,
) -> NodeId {
    if size <= 1 {
        return match rng.random_range(0..10) {
            0 => tree.empty(),
            1..=3 if with.looks => {
                let look = random_look(rng);
                tree.look(look)
            }
            _ => {
                let set = random_set(rng);
                tree.set(set)
            }
        };
    }
    match rng.random_range(0..10) {
        0..=4 => {
            let left = rng.random_range(1..size);
            let parts =
                vec![random_tree(tree, rng, left, with), random_tree(tree, rng, size - left, with)];
            tree.concat(parts)
        }
        5 | 6 => {
            let left = rng.random_range(1..size);
            let parts =
                vec![random_tree(tree, rng, left, with), random_tree(tree, rng, size - left, with)];
            tree.alt(parts)
        }
        7 if with.ahead || with.behind => {
            let ahead = with.ahead && (!with.behind || rng.random());
            let negated = rng.random();
            let body = random_tree(tree, rng, size - 1, with);
            tree.around(ahead, negated, body)
        }
        _ => {
            let body = random_tree(tree, rng, size - 1, with);
            let bounds = [(0, UNBOUNDED), (1, UNBOUNDED), (0, 1), (2, 2), (1, 3), (2, UNBOUNDED)];
            let (min, max) = bounds[rng.random_range(0..bounds.len())];
            tree.repeat(body, min, max)
        }
    }
}

mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::frontend::pattern::{Mode, lower};
    use crate::ir::chars::{Encoding, write_json_canonical};
    use crate::limits::Limits;

    /// Compares the two oracles on random trees; returns how many trees were accepted by some text.
    fn compare(seed: u64, trees: usize, with: Ingredients, encoding: Encoding) -> usize {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let texts = short_texts(4, 4);
        let mut interesting = 0;
        for _ in 0..trees {
            let mut tree = Tree::default();
            let size = rng.random_range(1..12);
            let root = random_tree(&mut tree, &mut rng, size, with);
            for mode in [Mode::Search, Mode::Whole] {
                let mut arena = Arena::default();
                let expr =
                    lower(&mut arena, &tree, root, mode, encoding, &Limits::default()).unwrap();
                let mut derivatives = Derivatives::new(arena);
                let mut accepted = 0;
                for text in &texts {
                    let chars: Vec<char> = text.chars().collect();
                    let expected = match mode {
                        Mode::Search => {
                            (0..=chars.len()).any(|i| ends(&tree, root, &chars, i) != 0)
                        }
                        Mode::Whole => ends(&tree, root, &chars, 0) >> chars.len() & 1 == 1,
                    };
                    let mut bytes = Vec::new();
                    match encoding {
                        Encoding::Utf8 => bytes.extend_from_slice(text.as_bytes()),
                        _ => write_json_canonical(text, &mut bytes),
                    }
                    accepted += usize::from(expected);
                    assert_eq!(
                        derivatives.matches(expr, &bytes),
                        expected,
                        "{mode:?} {text:?} in {tree:#?}"
                    );
                }
                interesting += usize::from(accepted > 0 && accepted < texts.len());
            }
        }
        interesting
    }

    #[test]
    fn plain_patterns_match_what_they_say() {
        let with = Ingredients { looks: false, ahead: false, behind: false };
        assert!(compare(1, 150, with, Encoding::Utf8) > 100);
        assert!(compare(2, 40, with, Encoding::JsonAny) > 25);
    }

    #[test]
    fn one_character_assertions_are_exact_anywhere() {
        let with = Ingredients { looks: true, ahead: false, behind: false };
        assert!(compare(3, 300, with, Encoding::Utf8) > 200);
        assert!(compare(4, 40, with, Encoding::JsonCanonical) > 25);
    }

    #[test]
    fn look_ahead_is_exact_anywhere() {
        let with = Ingredients { looks: true, ahead: true, behind: false };
        assert!(compare(5, 200, with, Encoding::Utf8) > 120);
    }

    #[test]
    fn look_behind_is_exact_anywhere() {
        let with = Ingredients { looks: true, ahead: true, behind: true };
        assert!(compare(6, 200, with, Encoding::Utf8) > 120);
    }
}
