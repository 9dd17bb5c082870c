//! The order of member names: a walk over the schemas of a goal in, one total order of the names that
//! they mention out, the same whichever branch is taken.

use hashbrown::HashMap;

use super::document::{Document, Kind};
use super::formula::{Atom, FormulaId, Formulas};
use super::names::NameId;
use super::schema::{Keyword, NodeId, PatternId, Type, id};
use super::split::Situated;
use crate::error::Error;
use crate::ir::chars;

id! {
    /// An order of names.
    OrderId
}

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// The names that a goal mentions, in order.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The names.
    pub(super) names: Box<[NameId]>,
    positions: Map<NameId, u32>,
    /// The positions sorted by the canonical spelling of their names, each with that spelling.
    pub(super) sorted: Box<[(Box<[u8]>, u32)]>,
}

impl Order {
    fn new(names: &[NameId], document: &Document) -> Self {
        let mut sorted = Vec::with_capacity(names.len());
        let mut positions = Map::default();
        for (position, &name) in (0_u32..).zip(names) {
            let mut spelling = Vec::new();
            chars::write_json_canonical(document.names.get(name), &mut spelling);
            sorted.push((spelling.into_boxed_slice(), position));
            positions.insert(name, position);
        }
        sorted.sort_unstable();
        Self { names: names.into(), positions, sorted: sorted.into() }
    }

    /// Returns the number of names.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// Returns the position of `name`.
    pub(super) fn position(&self, name: NameId) -> Option<u32> {
        self.positions.get(&name).copied()
    }
}

/// Orders as they are saved: the names of each, and the orders of the goals.
pub(super) type SavedOrders = (Vec<Box<[NameId]>>, Vec<(FormulaId, OrderId)>);

/// All orders.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    orders: Vec<Order>,
    ids: Map<Box<[NameId]>, OrderId>,
    by_goal: Map<FormulaId, OrderId>,
}

impl Orders {
    /// Returns the order `id`.
    pub(super) fn get(&self, id: OrderId) -> &Order {
        &self.orders[id.index()]
    }

    /// Returns the order of a goal that was added before.
    pub(super) fn of_goal(&self, goal: FormulaId) -> Option<OrderId> {
        self.by_goal.get(&goal).copied()
    }

    /// Adds the order of a goal.
    pub(super) fn add(
        &mut self,
        goal: FormulaId,
        names: Vec<NameId>,
        document: &Document,
    ) -> OrderId {
        let names: Box<[NameId]> = names.into();
        let id = match self.ids.get(&names) {
            Some(&id) => id,
            None => {
                let id = OrderId::at(self.orders.len());
                self.orders.push(Order::new(&names, document));
                self.ids.insert(names, id);
                id
            }
        };
        self.by_goal.insert(goal, id);
        id
    }

    /// Returns what is to be saved.
    pub(super) fn save(&self) -> SavedOrders {
        let names = self.orders.iter().map(|order| order.names.clone()).collect();
        let mut goals: Vec<_> = self.by_goal.iter().map(|(&goal, &id)| (goal, id)).collect();
        goals.sort_unstable();
        (names, goals)
    }

    /// Returns the orders saved by [`Orders::save`]; `None` if an id is out of range.
    pub(super) fn restore(
        names: &[Box<[NameId]>],
        goals: Vec<(FormulaId, OrderId)>,
        document: &Document,
    ) -> Option<Self> {
        let mut orders = Self::default();
        for names in names {
            let id = OrderId::at(orders.orders.len());
            orders.orders.push(Order::new(names, document));
            orders.ids.insert(names.clone(), id);
        }
        for (goal, id) in goals {
            orders.orders.get(id.index())?;
            orders.by_goal.insert(goal, id);
        }
        Some(orders)
    }
}

/// What the walk meets.
enum Event {
    /// A declared name.
    Declared(NameId),
    /// A name that is only mentioned.
    Mentioned(NameId),
    /// A schema that is applied in place.
    Schema(Situated),
}

impl Formulas {
    /// Returns the names that the schemas of `goal` mention, in order.
    pub(super) fn names_of(&mut self, goal: FormulaId) -> Result<Vec<NameId>, Error> {
        let mut roots = Vec::new();
        let mut declared: Vec<NameId> = Vec::new();
        for (atom, ..) in self.atoms_of(goal) {
            match *self.atom(atom) {
                Atom::Schema(node, scope) => {
                    roots.push((self.program.schemas.node(node).value, node, scope));
                }
                Atom::Equal(value) => {
                    declared.extend(self.program.document.entries(value).map(|(name, _)| name));
                }
                _ => {}
            }
        }
        roots.sort_unstable();
        let mut seen: Map<Situated, ()> = Map::default();
        let mut mentioned = Vec::new();
        let mut stack: Vec<Event> =
            roots.into_iter().rev().map(|(_, node, scope)| Event::Schema((node, scope))).collect();
        while let Some(event) = stack.pop() {
            match event {
                Event::Declared(name) => declared.push(name),
                Event::Mentioned(name) => mentioned.push(name),
                Event::Schema(situated) => {
                    if seen.insert(situated, ()).is_none() {
                        let events = self.events(situated)?;
                        stack.extend(events.into_iter().rev());
                    }
                }
            }
        }
        declared.append(&mut mentioned);
        let mut known: Map<NameId, ()> = Map::default();
        declared.retain(|&name| known.insert(name, ()).is_none());
        Ok(declared)
    }

    fn events(&mut self, (node, scope): Situated) -> Result<Vec<Event>, Error> {
        let program = self.program.clone();
        let mut events = Vec::new();
        for keyword in &program.schemas.node(node).keywords {
            match keyword {
                Keyword::Members(id) => {
                    let members = &program.schemas.members[id.index()];
                    events
                        .extend(members.properties.iter().map(|&(name, _)| Event::Declared(name)));
                    let few = |&(pattern, _): &(PatternId, NodeId)| self.few_names(pattern);
                    if members.patterns.iter().all(|pattern| !few(pattern).is_empty()) {
                        let names = members.patterns.iter().flat_map(few);
                        events.extend(names.map(|&name| Event::Declared(name)));
                    }
                }
                Keyword::Values(values) => {
                    for &value in values.iter() {
                        if let Kind::Object(_) = program.document.kind(value) {
                            let names = program.document.entries(value);
                            events.extend(names.map(|(name, _)| Event::Declared(name)));
                        }
                    }
                }
                Keyword::Required(names) => {
                    events.extend(names.iter().map(|&name| Event::Mentioned(name)));
                }
                Keyword::DependentRequired(parts) => {
                    for (name, names) in parts {
                        events.push(Event::Mentioned(*name));
                        events.extend(names.iter().map(|&name| Event::Mentioned(name)));
                    }
                }
                Keyword::DependentSchemas(parts) => {
                    events.extend(parts.iter().map(|&(name, _)| Event::Mentioned(name)));
                }
                Keyword::MemberNames(names) => {
                    let listed = self.listed_names(*names, scope)?;
                    events.extend(listed.into_iter().map(Event::Mentioned));
                    for keyword in &program.schemas.node(*names).keywords {
                        if let Keyword::Pattern(pattern) = *keyword {
                            let few = self.few_names(pattern).iter();
                            events.extend(few.map(|&name| Event::Mentioned(name)));
                        }
                    }
                }
                _ => {}
            }
            events.extend(self.in_place(keyword, scope).into_iter().map(Event::Schema));
        }
        Ok(events)
    }

    /// Returns the names that a pattern allows if they were found to be few.
    fn few_names(&self, pattern: PatternId) -> &[NameId] {
        &self.program.schemas.patterns[pattern.index()].few
    }

    /// Returns the names that `propertyNames` lists, if it does.
    fn listed_names(
        &mut self,
        node: NodeId,
        scope: super::program::ScopeId,
    ) -> Result<Vec<NameId>, Error> {
        let goal = self.schema(node, scope);
        let formula = self.split(goal, Type::String)?;
        let listed = self.listed(formula);
        Ok(listed.unwrap_or_default())
    }
}
