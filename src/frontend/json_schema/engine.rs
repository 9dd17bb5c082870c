//! The rule families of a schema, expanded when the automaton reaches them: goals, the members of an
//! object from a position on, the names that may come next as a trie, the elements of an array.
//!
//! One object is one rule activation, from `{` to `}`, so that its history register sees all its
//! additional names; each value inside it is a rule of its own, one for each goal. Everything a family
//! needs is in its parameters and in tables that are only ever added to, so the same family always
//! expands to the same language.

use hashbrown::HashMap;

use super::formula::{FormulaId, Formulas};
use super::matching::Derivatives;
use super::names::NameId;
use super::options::{Escapes, Whitespace};
use super::order::{Order, OrderId, Orders};
use super::proof::Question;
use super::scalar::Languages;
use super::schema::{Keyword, Type, id};
use super::space::Spaces;
use crate::error::Error;
use crate::ids::{ExprId, FamilyId, RuleId};
use crate::ir::chars::Encoding;
use crate::ir::{Arena, Expander, Grammar, Liveness, Parts, Scope};
use crate::limits::Budget;

/// A few texts, sorted.
pub(super) type Texts = std::sync::Arc<[Box<[u8]>]>;

pub(super) type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

id! {
    /// An object that is half written.
    ObjectId
}
id! {
    /// An array that is half written.
    ArrayId
}
id! {
    /// A set of positions in an order, or a list of values.
    SetId
}

/// Where a value stands, as far as its spelling depends on that.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
pub(super) struct Level {
    /// How many arrays and objects are around it, where white space depends on it.
    pub(super) depth: u32,
    /// Whether it has one spelling only, because it is told apart from others by that: it is, or is in,
    /// an element of an array whose elements must differ.
    pub(super) canonical: bool,
}

/// Which names an object may still have: those from a position on that are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct Progress {
    /// The first position that may come.
    pub(super) from: u32,
    /// The positions that do not come again; a name that the schema does not mention, if there are few
    /// such, has the position after those in the order that its text has among the sets.
    pub(super) taken: SetId,
    /// In declared order, the text of the last of those few names, after which those before it do not
    /// come again.
    pub(super) past: Option<SetId>,
    /// Whether members may come in any order: then a name is taken when it is written. Else all
    /// positions before it are passed over.
    pub(super) any: bool,
}

/// An object that is half written: what its rest must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct Object {
    /// The names that the schema mentions, in order.
    pub(super) order: OrderId,
    /// About the members that follow.
    pub(super) formula: FormulaId,
    /// Which names may follow.
    pub(super) progress: Progress,
    /// Where it stands.
    pub(super) level: Level,
}

/// An array that is half written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct Array {
    /// About the elements that follow.
    pub(super) formula: FormulaId,
    /// If all elements must differ, the listed values so far, by the numbers of their texts.
    pub(super) unique: Option<SetId>,
    /// Where it stands.
    pub(super) level: Level,
}

/// A family member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) enum Family {
    /// The values that meet a goal; of one type, if one is given.
    Value(FormulaId, Level, Option<Type>),
    /// The rest of an object, up to its closing brace; whether no member was written yet.
    Members(ObjectId, bool),
    /// The rest of an object from inside a name: the names that may come, as a range of those sorted
    /// by spelling, which agree in this many bytes.
    Names(ObjectId, u32, u32, u32),
    /// The rest of an object after the name at this position.
    Named(ObjectId, u32),
    /// The rest of an array, up to its closing bracket.
    Elements(ArrayId, Turn),
}

/// What of an array was written last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) enum Turn {
    /// The opening bracket.
    Open,
    /// An element.
    Element,
    /// A comma, with the white space after it.
    Comma,
}

/// What a rule is of: a goal, where its values stand, and their type, if it is one.
pub(super) type RuleKey = (FormulaId, Level, Option<Type>);

/// Interned values of one kind.
#[derive(Clone, Debug)]
pub(super) struct Table<T> {
    items: Vec<T>,
    ids: Map<T, u32>,
}

impl<T: Clone + Eq + std::hash::Hash> Table<T> {
    /// Returns the table of `items`.
    pub(super) fn restore(items: Vec<T>) -> Self {
        let number = |i: usize| u32::try_from(i).unwrap_or(u32::MAX);
        let ids = items.iter().cloned().enumerate().map(|(i, item)| (item, number(i))).collect();
        Self { items, ids }
    }

    /// Returns the number of `item`, adding it if it is new.
    pub(super) fn intern(&mut self, item: T) -> usize {
        if let Some(&id) = self.ids.get(&item) {
            return id as usize;
        }
        let id = self.items.len();
        self.items.push(item.clone());
        self.ids.insert(item, u32::try_from(id).unwrap_or(u32::MAX));
        id
    }

    /// Returns the item number `index`.
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        self.items.get(index)
    }

    /// Returns all items.
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }
}

/// The expander of a schema.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    /// The formulas.
    pub(super) formulas: Formulas,
    /// The orders of names.
    pub(super) orders: Orders,
    /// Half-written objects.
    pub(super) objects: Table<Object>,
    /// Half-written arrays.
    pub(super) arrays: Table<Array>,
    /// Sets of positions, lists of values, and texts.
    pub(super) sets: Table<Box<[u32]>>,
    /// Family members by number.
    pub(super) families: Table<Family>,
    /// The rules of goals, and of goals for one type.
    pub(super) rules: Map<RuleKey, RuleId>,
    /// The languages of scalars.
    pub(super) languages: Languages,
    /// Derivatives, for names of the schema against its patterns.
    pub(super) derivatives: Derivatives,
    /// Which tests of names can be passed together.
    pub(super) combinations: Map<Box<[ExprId]>, Vec<u64>>,
    /// What is asked about the parts: first about those that the grammar needs, then about those listed.
    pub(super) questions: Vec<Question>,
    /// The texts of languages of names, of those that have few.
    pub(super) listed: Map<ExprId, Option<Texts>>,
    /// For each order, all names that are not in it.
    pub(super) unmentioned: Map<OrderId, Box<[ExprId]>>,
}

impl Engine {
    /// Returns an engine that has expanded nothing yet.
    pub(super) fn new(formulas: Formulas) -> Self {
        Self {
            formulas,
            orders: Orders::default(),
            objects: Table::restore(Vec::new()),
            arrays: Table::restore(Vec::new()),
            sets: Table::restore(Vec::new()),
            families: Table::restore(Vec::new()),
            rules: Map::default(),
            languages: Languages::default(),
            derivatives: Derivatives::default(),
            combinations: Map::default(),
            questions: Vec::new(),
            listed: Map::default(),
            unmentioned: Map::default(),
        }
    }

    /// Translates every pattern, so that what cannot be translated is an error when compiling.
    pub(super) fn translate_patterns(&mut self, arena: &mut Arena) -> Result<(), Error> {
        let program = self.formulas.program.clone();
        let mut uses = Vec::new();
        for node in &program.schemas.nodes {
            for keyword in &node.keywords {
                match *keyword {
                    Keyword::Pattern(id)
                        if program.schemas.patterns[id.index()].exact.is_none() =>
                    {
                        uses.push((id, self.encoding(Level::default())));
                    }
                    Keyword::Members(id) => {
                        let members = &program.schemas.members[id.index()];
                        uses.extend(
                            members.patterns.iter().map(|p| (p.0, Encoding::JsonCanonical)),
                        );
                    }
                    _ => {}
                }
            }
        }
        for (id, encoding) in uses {
            self.languages.pattern(&self.formulas, arena, id, encoding)?;
        }
        Ok(())
    }

    /// Returns the rest that `family` stands for.
    pub(super) fn lazy(&mut self, arena: &mut Arena, family: Family) -> ExprId {
        let id = self.families.intern(family);
        match FamilyId::from_index(id) {
            Some(id) => arena.lazy(id),
            None => Arena::EMPTY,
        }
    }

    /// Returns the white space inside the array or object at `level`.
    pub(super) fn spaces(&self, arena: &mut Arena, level: Level) -> Spaces {
        Spaces::new(arena, self.whitespace(level), level.depth)
    }

    /// Returns where white space may stand at `level`.
    pub(super) fn whitespace(&self, level: Level) -> Whitespace {
        match self.formulas.program.options.whitespace {
            Whitespace::Flexible if level.canonical => Whitespace::Compact,
            other => other,
        }
    }

    /// Returns the level inside an array or object at `level`.
    pub(super) fn below(&self, level: Level) -> Level {
        match self.formulas.program.options.whitespace {
            Whitespace::Pretty(_) => Level { depth: level.depth.saturating_add(1), ..level },
            _ => level,
        }
    }

    /// Returns how strings are spelled at `level`.
    pub(super) fn encoding(&self, level: Level) -> Encoding {
        match self.formulas.program.options.escapes {
            Escapes::Any if !level.canonical => Encoding::JsonAny,
            _ => Encoding::JsonCanonical,
        }
    }

    /// Returns the values that meet `goal`, as a call of its rule.
    pub(super) fn call(&mut self, scope: &mut Scope<'_>, goal: FormulaId, level: Level) -> ExprId {
        self.call_typed(scope, goal, level, None)
    }

    /// Returns the values that meet `goal`, of one type if one is given, as a call of a rule.
    pub(super) fn call_typed(
        &mut self,
        scope: &mut Scope<'_>,
        goal: FormulaId,
        level: Level,
        t: Option<Type>,
    ) -> ExprId {
        if goal == Formulas::no() {
            return Arena::EMPTY;
        }
        if let Some(&rule) = self.rules.get(&(goal, level, t)) {
            return scope.arena.call(rule);
        }
        let rule = scope.declare(self.formulas.describe(goal));
        self.rules.insert((goal, level, t), rule);
        let body = self.lazy(scope.arena, Family::Value(goal, level, t));
        scope.define(rule, body);
        scope.arena.call(rule)
    }

    /// Returns the values that meet `goal`, of one type if one is given.
    pub(super) fn expand_value(
        &mut self,
        goal: FormulaId,
        level: Level,
        only: Option<Type>,
        scope: &mut Scope<'_>,
    ) -> Result<ExprId, Error> {
        let mut parts = Vec::new();
        for t in Type::ALL.into_iter().filter(|&t| only.is_none_or(|only| only == t)) {
            let formula = self.formulas.split(goal, t)?;
            if formula == Formulas::no() {
                continue;
            }
            parts.push(match t {
                Type::Null => scope.arena.literal(b"null"),
                Type::False => scope.arena.literal(b"false"),
                Type::True => scope.arena.literal(b"true"),
                Type::Number => self.number(scope.arena, formula, level)?,
                Type::String => self.string(scope.arena, formula, self.encoding(level))?,
                Type::Array => {
                    let open = scope.arena.byte(b'[');
                    let rest = self.array(scope.arena, formula, level)?;
                    scope.arena.concat2(open, rest)
                }
                Type::Object => {
                    let open = scope.arena.byte(b'{');
                    let object = self.whole_object(goal, formula, level)?;
                    let rest = self.members(scope.arena, object, true);
                    scope.arena.concat2(open, rest)
                }
            });
        }
        Ok(scope.arena.alt(&parts))
    }

    /// Returns the numbers that satisfy `formula`.
    pub(super) fn number(
        &mut self,
        arena: &mut Arena,
        formula: FormulaId,
        level: Level,
    ) -> Result<ExprId, Error> {
        let numbers = self.languages.number(&mut self.formulas, arena, formula)?;
        if !level.canonical {
            return Ok(numbers);
        }
        let canonical = super::number::canonical(arena);
        Ok(arena.and(&[numbers, canonical]))
    }

    /// Returns an object without members yet, for a goal split by type.
    pub(super) fn whole_object(
        &mut self,
        goal: FormulaId,
        formula: FormulaId,
        level: Level,
    ) -> Result<Object, Error> {
        let order = self.order_of(goal)?;
        Ok(Object { order, formula, progress: self.start(level), level })
    }

    /// Returns the strings that satisfy `formula`, with their quotes.
    pub(super) fn string(
        &mut self,
        arena: &mut Arena,
        formula: FormulaId,
        encoding: Encoding,
    ) -> Result<ExprId, Error> {
        let text = self.languages.string(&mut self.formulas, arena, formula, encoding)?;
        Ok(quoted(arena, text))
    }

    /// Returns the order of the names that `goal` mentions.
    fn order_of(&mut self, goal: FormulaId) -> Result<OrderId, Error> {
        if let Some(known) = self.orders.of_goal(goal) {
            return Ok(known);
        }
        let names = self.formulas.names_of(goal)?;
        Ok(self.orders.add(goal, names, &self.formulas.program.document))
    }

    /// Returns a new budget for work that one expansion may take.
    pub(super) fn budget(&self) -> Budget {
        Budget::new("compile_work", self.formulas.program.limits.compile_work)
    }

    /// Returns the spelling of a name, without quotes.
    pub(super) fn spelling(&self, name: NameId) -> Vec<u8> {
        let mut text = Vec::new();
        let names = &self.formulas.program.document.names;
        crate::ir::chars::write_json_canonical(names.get(name), &mut text);
        text
    }

    /// Returns the order of names of an object.
    pub(super) fn order(&self, object: &Object) -> &Order {
        self.orders.get(object.order)
    }
}

/// Returns `text` between quotes.
pub(super) fn quoted(arena: &mut Arena, text: ExprId) -> ExprId {
    let quote = arena.byte(b'"');
    arena.concat(&[quote, text, quote])
}

impl Expander for Engine {
    fn expand(&mut self, family: FamilyId, scope: &mut Scope<'_>) -> Result<ExprId, Error> {
        let Some(&family) = self.families.get(family.index()) else { return Ok(Arena::EMPTY) };
        let expr = match family {
            Family::Value(goal, level, t) => self.expand_value(goal, level, t, scope)?,
            Family::Members(id, first) => self.expand_members(id, first, scope)?,
            Family::Names(id, low, high, depth) => {
                self.expand_names(id, low, high, depth, scope)?
            }
            Family::Named(id, position) => self.expand_named(id, position, scope)?,
            Family::Elements(id, turn) => self.expand_elements(id, turn, scope)?,
        };
        self.formulas.check()?;
        scope.arena.check()?;
        Ok(expr)
    }

    fn liveness(&mut self, family: FamilyId, scope: &mut Scope<'_>) -> Result<Liveness, Error> {
        let Some(&family) = self.families.get(family.index()) else { return Ok(Liveness::Dead) };
        let liveness = self.decide_liveness(family, scope)?;
        self.formulas.check()?;
        Ok(liveness)
    }

    fn parts(&mut self, scope: &mut Scope<'_>) -> Result<Parts, Error> {
        self.find_parts(scope)
    }

    fn as_long(
        &mut self,
        family: FamilyId,
        scope: &mut Scope<'_>,
    ) -> Result<Option<ExprId>, Error> {
        let Some(&Family::Members(id, first)) = self.families.get(family.index()) else {
            return Ok(None);
        };
        if let Some(shortest) = self.required_only(id, first, scope)? {
            return Ok(Some(shortest));
        }
        let ordered = self.in_order(id)?;
        Ok(ordered.map(|ordered| self.members(scope.arena, ordered, first)))
    }

    fn conflict(
        &self,
        part: Option<usize>,
        has_text: &mut dyn FnMut(Grammar) -> Option<bool>,
    ) -> Option<Error> {
        let question = part.map(|part| self.questions.get(part));
        match question {
            Some(None) => None,
            question => self.find_conflict(question.flatten(), has_text),
        }
    }

    fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.formulas.work)
    }

    fn boxed_clone(&self) -> Box<dyn Expander> {
        Box::new(self.clone())
    }

    fn to_bytes(&self) -> Vec<u8> {
        super::codec::encode(self)
    }
}

impl Formulas {
    /// Returns a name for the values that meet `goal`, for messages.
    pub(super) fn describe(&self, goal: FormulaId) -> String {
        use super::formula::Atom;
        /// More places than this are not listed.
        const MOST: usize = 4;
        let document = &self.program.document;
        let mut places: Vec<_> = self
            .atoms_of(goal)
            .into_iter()
            .filter_map(|(atom, ..)| match *self.atom(atom) {
                Atom::Schema(node, _) => Some(self.program.schemas.node(node).value),
                Atom::Equal(value) => Some(value),
                _ => None,
            })
            .collect();
        places.sort_unstable();
        let mut name = String::new();
        for (i, &place) in places.iter().enumerate().take(MOST) {
            name.push_str(if i == 0 { "#" } else { " #" });
            name.push_str(&document.pointer(place));
        }
        match places.len() {
            0 => "any value".to_owned(),
            count if count > MOST => format!("{name} and {} more", count - MOST),
            _ => name,
        }
    }
}
