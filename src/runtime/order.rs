//! The stages of decoding and their order.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// A stage of one decision.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stage {
    /// What the model said, at temperature 1. Always first; no part of an [`Order`].
    Model,
    /// Repetition, presence and frequency penalties.
    Penalties,
    /// Logit bias.
    LogitBias,
    /// The grammar, and [`crate::Policy::min_tokens`].
    Mask,
    /// Temperature.
    Temperature,
    /// Top-k.
    TopK,
    /// Top-p.
    TopP,
    /// Min-p.
    MinP,
    /// Typical-p.
    TypicalP,
}

impl Stage {
    /// Returns the stable snake-case name, which serde uses too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Penalties => "penalties",
            Self::LogitBias => "logit_bias",
            Self::Mask => "mask",
            Self::Temperature => "temperature",
            Self::TopK => "top_k",
            Self::TopP => "top_p",
            Self::MinP => "min_p",
            Self::TypicalP => "typical_p",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The number of stages that have an order.
const STAGES: usize = 8;

/// The order of the stages: penalties and bias, in either order, then the mask, then the others in any
/// order.
///
/// The mask comes before everything that looks at probabilities, so that each filter speaks of legal
/// tokens alone: filtered first, the tokens that are left could all be illegal.
///
/// The default is [`Order::DEFAULT`]. Its place for typical-p is the last: temperature and the other
/// filters keep a front of one ranking, whatever their order among each other, and the entropy that
/// typical-p compares with is then that of the distribution that would be drawn from.
///
/// ```
/// use schemac::runtime::{Order, Stage};
///
/// let order = Order::DEFAULT.with_filters([Stage::TopK, Stage::TopP, Stage::Temperature])?;
/// assert_eq!(
///     order.to_string(),
///     "penalties, logit_bias, mask, top_k, top_p, temperature, min_p, typical_p"
/// );
/// # Ok::<(), schemac::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<Stage>", into = "Vec<Stage>")]
pub struct Order([Stage; STAGES]);

impl Order {
    /// Penalties, logit bias, mask, temperature, top-k, top-p, min-p, typical-p.
    pub const DEFAULT: Self = Self([
        Stage::Penalties,
        Stage::LogitBias,
        Stage::Mask,
        Stage::Temperature,
        Stage::TopK,
        Stage::TopP,
        Stage::MinP,
        Stage::TypicalP,
    ]);

    /// Returns the order of these stages.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidOption`] unless each stage but [`Stage::Model`] is there once, and the mask
    /// is the third, after penalties and bias.
    pub fn new(stages: &[Stage]) -> Result<Self, Error> {
        let wrong = |text: &str| {
            let list: Vec<_> = stages.iter().map(|stage| stage.name()).collect();
            let message = format!("`order` is {}; {text}", list.join(", "));
            Error::new(ErrorKind::InvalidOption, message)
        };
        let mut sorted = stages.to_vec();
        sorted.sort_unstable();
        let order: [Stage; STAGES] = match stages.try_into() {
            Ok(order) if sorted == Self::DEFAULT.0 => order,
            _ => return Err(wrong("it must name each stage once")),
        };
        if order[2] != Stage::Mask
            || !order[..2].iter().all(|s| matches!(s, Stage::Penalties | Stage::LogitBias))
        {
            return Err(wrong("penalties and logit_bias must come first, and then mask"));
        }
        Ok(Self(order))
    }

    /// Returns this order with these stages after the mask first, in this order, and then those that
    /// are not among them.
    ///
    /// # Errors
    ///
    /// As [`Order::new`].
    pub fn with_filters(self, stages: impl IntoIterator<Item = Stage>) -> Result<Self, Error> {
        let mut order = self.0[..3].to_vec();
        order.extend(stages);
        let rest: Vec<_> = self.0.into_iter().filter(|stage| !order.contains(stage)).collect();
        order.extend(rest);
        Self::new(&order)
    }

    /// Returns this order with the bias before the penalties.
    #[must_use]
    pub const fn bias_first(mut self) -> Self {
        self.0[0] = Stage::LogitBias;
        self.0[1] = Stage::Penalties;
        self
    }

    /// Returns the stages, first to last.
    #[must_use]
    pub const fn stages(&self) -> &[Stage] {
        &self.0
    }

    /// Returns the stages up to the mask, without it.
    pub(crate) fn before_mask(&self) -> &[Stage] {
        &self.0[..2]
    }

    /// Returns the stages after the mask.
    pub(crate) fn after_mask(&self) -> &[Stage] {
        &self.0[3..]
    }
}

impl Default for Order {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl TryFrom<Vec<Stage>> for Order {
    type Error = Error;

    fn try_from(stages: Vec<Stage>) -> Result<Self, Error> {
        Self::new(&stages)
    }
}

impl From<Order> for Vec<Stage> {
    fn from(order: Order) -> Self {
        order.0.to_vec()
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, stage) in self.0.iter().enumerate() {
            write!(f, "{}{stage}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_names_every_stage_once_and_the_mask_third() {
        let default = Order::DEFAULT;
        assert_eq!(Order::new(default.stages()).unwrap(), default);
        let of = |names: &str| -> Result<Order, serde_json::Error> {
            let list: Vec<_> = names.split(' ').collect();
            serde_json::from_value(serde_json::json!(list))
        };
        let vllm = "logit_bias penalties mask temperature min_p top_k top_p typical_p";
        assert_eq!(of(vllm).unwrap().stages()[..2], [Stage::LogitBias, Stage::Penalties]);
        for wrong in [
            "penalties logit_bias mask temperature top_k top_p min_p",
            "penalties logit_bias mask temperature top_k top_p min_p min_p",
            "penalties logit_bias temperature mask top_k top_p min_p typical_p",
            "penalties mask logit_bias temperature top_k top_p min_p typical_p",
            "model logit_bias mask temperature top_k top_p min_p typical_p",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert!(default.with_filters([Stage::Penalties]).is_err());
        assert!(default.with_filters([Stage::TopK, Stage::TopK]).is_err());
        assert_eq!(default.bias_first().stages()[2..], default.stages()[2..]);
    }
}
