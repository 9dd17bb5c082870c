//! `--budget NAME=NUMBER`: bounds of the engine by name.

use schemac::Limits;
use serde_json::Value;

use crate::args::LimitArgs;
use crate::exit::Failure;

impl LimitArgs {
    /// Returns the default limits with the given ones changed.
    pub(crate) fn limits(&self) -> Result<Limits, Failure> {
        let unusable = |error| Failure::Usage(format!("limits: {error}"));
        let mut limits = serde_json::to_value(Limits::default()).map_err(unusable)?;
        for (name, value) in &self.budget {
            let Some(slot) = limits.get_mut(name) else {
                let names: Vec<_> =
                    limits.as_object().into_iter().flat_map(|map| map.keys()).collect();
                let names = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(Failure::Usage(format!(
                    "no bound is called `{name}`; there are {names}"
                )));
            };
            *slot = Value::from(*value);
        }
        serde_json::from_value(limits).map_err(unusable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(budget: &[(&str, u64)]) -> Result<Limits, Failure> {
        let budget = budget.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        LimitArgs { budget }.limits()
    }

    #[test]
    fn every_bound_can_be_set_by_its_name() {
        assert_eq!(limits(&[]).unwrap(), Limits::default());
        let expected = Limits::default().max_states(7).max_step_work(8);
        assert_eq!(limits(&[("states", 7), ("step_work", 8)]).unwrap(), expected);
    }

    #[test]
    fn an_unknown_bound_is_refused_with_the_known_ones() {
        let failure = limits(&[("stats", 7)]).unwrap_err();
        assert_eq!(failure.code(), 2);
        assert!(failure.to_text(false).contains("states, "), "{failure:?}");
    }
}
