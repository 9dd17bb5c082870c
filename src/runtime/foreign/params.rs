//! A JSON object whose members are taken one by one; what nobody took is refused.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind};
use crate::ids::TokenId;
use crate::runtime::foreign::Dialect;

/// The members that are left.
pub(super) struct Params {
    dialect: Dialect,
    left: Map<String, Value>,
    /// The number of tokens of the prompt.
    pub(super) prompt_tokens: usize,
}

impl Params {
    pub(super) fn new(
        dialect: Dialect,
        parameters: &Value,
        prompt_tokens: usize,
    ) -> Result<Self, Error> {
        let Value::Object(members) = parameters else {
            let text = format!("the parameters of {} are not a JSON object", dialect.name());
            return Err(Error::new(ErrorKind::InvalidOption, text));
        };
        let mut left = members.clone();
        left.retain(|_, value| !value.is_null());
        Ok(Self { dialect, left, prompt_tokens })
    }

    /// Returns the error that `name` cannot be used, because of `text`.
    pub(super) fn refuse(&self, name: &str, text: &str) -> Error {
        let text = format!("`{name}` of {}: {text}", self.dialect.name());
        Error::new(ErrorKind::InvalidOption, text)
    }

    /// Takes the first of these members that is there.
    pub(super) fn take(&mut self, names: &[&str]) -> Option<Value> {
        let name = names.iter().find(|name| self.left.contains_key(**name))?;
        self.left.shift_remove(*name)
    }

    /// Takes a number, or returns `default`.
    pub(super) fn number(&mut self, names: &[&str], default: f64) -> Result<f64, Error> {
        match self.take(names) {
            None => Ok(default),
            Some(value) => value.as_f64().ok_or_else(|| self.refuse(names[0], "is not a number")),
        }
    }

    /// Takes a number of a range, or returns `default`.
    pub(super) fn within(
        &mut self,
        names: &[&str],
        default: f64,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<f64, Error> {
        let value = self.number(names, default)?;
        if range.contains(&value) {
            return Ok(value);
        }
        let text = format!("is {value}; it must be from {} to {}", range.start(), range.end());
        Err(self.refuse(names[0], &text))
    }

    /// Takes an integer, or returns `default`.
    pub(super) fn integer(&mut self, names: &[&str], default: i64) -> Result<i64, Error> {
        match self.take(names) {
            None => Ok(default),
            Some(value) => value.as_i64().ok_or_else(|| self.refuse(names[0], "is not an integer")),
        }
    }

    /// Takes a count of at least 0, if it is there.
    pub(super) fn count(&mut self, names: &[&str]) -> Result<Option<usize>, Error> {
        match self.take(names) {
            None => Ok(None),
            Some(value) => match value.as_u64().and_then(|n| usize::try_from(n).ok()) {
                Some(count) => Ok(Some(count)),
                None => Err(self.refuse(names[0], "is not a count")),
            },
        }
    }

    /// Takes a count of at least 1, if it is there.
    pub(super) fn positive(&mut self, names: &[&str]) -> Result<Option<NonZeroUsize>, Error> {
        match self.count(names)?.map(NonZeroUsize::new) {
            Some(None) => Err(self.refuse(names[0], "is 0")),
            found => Ok(found.flatten()),
        }
    }

    /// Takes a truth value, or returns `default`.
    pub(super) fn flag(&mut self, name: &str, default: bool) -> Result<bool, Error> {
        match self.take(&[name]) {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or_else(|| self.refuse(name, "is not true or false")),
        }
    }

    /// Takes a text or a list of texts.
    pub(super) fn texts(&mut self, name: &str) -> Result<Vec<String>, Error> {
        let list = match self.take(&[name]) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(one) => vec![one],
        };
        let text = |value: Value| match value {
            Value::String(text) if !text.is_empty() => Ok(text),
            _ => Err(self.refuse(name, "is not a list of texts")),
        };
        list.into_iter().map(text).collect()
    }

    /// Takes an id or a list of ids.
    pub(super) fn ids(&mut self, name: &str) -> Result<Vec<TokenId>, Error> {
        let list = match self.take(&[name]) {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(one) => vec![one],
        };
        let id = |value: Value| {
            let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
            id.map(TokenId::new).ok_or_else(|| self.refuse(name, "is not a list of token ids"))
        };
        list.into_iter().map(id).collect()
    }

    /// Takes an object of biases by token id.
    pub(super) fn bias(
        &mut self,
        range: std::ops::RangeInclusive<f64>,
    ) -> Result<BTreeMap<TokenId, f64>, Error> {
        const NAME: &str = "logit_bias";
        let mut biases = BTreeMap::new();
        let entries: Vec<(Value, Value)> = match self.take(&[NAME]) {
            None => return Ok(biases),
            Some(Value::Object(map)) => {
                map.into_iter().map(|(id, bias)| (Value::String(id), bias)).collect()
            }
            Some(Value::Array(list)) if self.dialect == Dialect::LlamaCpp => {
                let pair = |value: Value| match value {
                    Value::Array(pair) => <[Value; 2]>::try_from(pair).ok().map(|[a, b]| (a, b)),
                    _ => None,
                };
                let pairs: Option<Vec<_>> = list.into_iter().map(pair).collect();
                pairs.ok_or_else(|| self.refuse(NAME, "is not a list of pairs"))?
            }
            Some(_) => return Err(self.refuse(NAME, "is not an object")),
        };
        for (id, bias) in entries {
            let id = match &id {
                Value::String(text) => text.parse().ok(),
                other => other.as_u64().and_then(|id| u32::try_from(id).ok()),
            };
            // llama.cpp bans a token with `false`.
            let bias = match bias {
                Value::Bool(false) if self.dialect == Dialect::LlamaCpp => Some(f64::NEG_INFINITY),
                bias => bias.as_f64().filter(|bias| range.contains(bias)),
            };
            let (Some(id), Some(bias)) = (id, bias) else {
                return Err(self.refuse(NAME, "a token id or a bias is out of range"));
            };
            biases.insert(TokenId::new(id), bias);
        }
        Ok(biases)
    }

    /// Passes over members that say nothing about the choice of tokens.
    pub(super) fn pass_over(&mut self, names: &[&str]) {
        self.left.retain(|name, _| !names.contains(&name.as_str()));
    }

    /// Takes a member whose only value that can be translated is one of `off`.
    pub(super) fn off(&mut self, name: &str, off: &[Value]) -> Result<(), Error> {
        let equal = |a: &Value, b: &Value| {
            a == b || a.as_f64().is_some_and(|number| b.as_f64() == Some(number))
        };
        match self.take(&[name]) {
            Some(value) if !off.iter().any(|off| equal(&value, off)) => {
                Err(self.refuse(name, &format!("{value} has no equal here")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what nobody took.
    pub(super) fn finish(self) -> Result<(), Error> {
        match self.left.keys().next() {
            Some(name) => Err(self.refuse(name, "has no equal here, or is unknown")),
            None => Ok(()),
        }
    }
}
