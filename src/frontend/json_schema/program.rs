//! A schema as it was read: what the formulas speak of, and never changes. Dynamic scopes, which are
//! found on the way, are numbered here too.

use hashbrown::HashMap;

use super::document::Document;
use super::options::JsonOptions;
use super::schema::{NodeId, Schemas, id};
use crate::limits::Limits;

/// The parsed schemas with their documents and options.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// The texts.
    pub(super) document: Document,
    /// The schemas.
    pub(super) schemas: Schemas,
    /// The choices.
    pub(super) options: JsonOptions,
    /// The budgets.
    pub(super) limits: Limits,
}

id! {
    /// A dynamic scope: the resources with dynamic anchors that were entered, outermost first.
    ScopeId
}

/// All dynamic scopes met so far. A scope names each resource once, at its first entry, because only
/// the outermost is ever looked for; so there are finitely many.
#[derive(Clone, Debug)]
pub(super) struct Scopes {
    lists: Vec<Box<[u32]>>,
    ids: HashMap<Box<[u32]>, ScopeId, foldhash::fast::RandomState>,
}

impl Default for Scopes {
    fn default() -> Self {
        Self::restore(vec![Box::default()])
    }
}

impl Scopes {
    /// Returns the scope without any resource.
    pub(super) fn empty() -> ScopeId {
        ScopeId::at(0)
    }

    /// Returns the scopes saved by [`Scopes::save`].
    pub(super) fn restore(lists: Vec<Box<[u32]>>) -> Self {
        let ids =
            lists.iter().cloned().enumerate().map(|(i, list)| (list, ScopeId::at(i))).collect();
        Self { lists, ids }
    }

    /// Returns what is to be saved.
    pub(super) fn save(&self) -> Vec<Box<[u32]>> {
        self.lists.clone()
    }

    /// Returns the resources of `scope`, outermost first.
    pub(super) fn resources(&self, scope: ScopeId) -> &[u32] {
        self.lists.get(scope.index()).map_or(&[], |list| list)
    }

    /// Returns the scope in which `node` stands when it is entered from `scope`.
    pub(super) fn enter(&mut self, program: &Program, node: NodeId, scope: ScopeId) -> ScopeId {
        let dynamic = &program.schemas.dynamic;
        if dynamic.is_empty() {
            return scope;
        }
        let resource = program.schemas.node(node).resource;
        let list = self.resources(scope);
        if list.contains(&resource) || !dynamic.iter().any(|(id, _)| *id == resource) {
            return scope;
        }
        let mut list = list.to_vec();
        list.push(resource);
        let list: Box<[u32]> = list.into();
        if let Some(&id) = self.ids.get(&list) {
            return id;
        }
        let id = ScopeId::at(self.lists.len());
        self.lists.push(list.clone());
        self.ids.insert(list, id);
        id
    }
}
