//! Policies for usual tasks: starting points to test, not answers.

use std::fmt;

use crate::runtime::policy::Policy;

/// A usual task.
///
/// The values lie inside the ranges that are usually recommended for the task. What is best depends on
/// the model, so measure: one option at a time, on your own cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Preset {
    /// Answers with one right value: temperature 0.2.
    Factual,
    /// Programs: temperature 0.3, top-p 0.95. Draw several and run their tests.
    Code,
    /// JSON, SQL and other text for machines: greedy.
    Structured,
    /// Translation: temperature 0.2. Compare with a beam of width 4.
    Translation,
    /// Summaries: temperature 0.45, top-p 0.9, without penalties of repetition.
    Summarization,
    /// Dialogue: temperature 0.8, top-p 0.9.
    Conversation,
    /// Stories: temperature 1, min-p 0.05.
    Creative,
    /// Reasoning, mathematics: greedy.
    Reasoning,
    /// Ideas: temperature 1.2, top-p 0.95. Draw several and take out what is there twice.
    Brainstorming,
}

impl Preset {
    /// All presets.
    pub const ALL: [Self; 9] = [
        Self::Factual,
        Self::Code,
        Self::Structured,
        Self::Translation,
        Self::Summarization,
        Self::Conversation,
        Self::Creative,
        Self::Reasoning,
        Self::Brainstorming,
    ];

    /// Returns the stable snake-case name, which serde uses too.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Factual => "factual",
            Self::Code => "code",
            Self::Structured => "structured",
            Self::Translation => "translation",
            Self::Summarization => "summarization",
            Self::Conversation => "conversation",
            Self::Creative => "creative",
            Self::Reasoning => "reasoning",
            Self::Brainstorming => "brainstorming",
        }
    }

    /// Returns the policy.
    #[must_use]
    pub const fn policy(self) -> Policy {
        match self {
            Self::Factual | Self::Translation => Policy::sample(0.2),
            Self::Code => Policy::sample(0.3).top_p(0.95),
            Self::Structured | Self::Reasoning => Policy::greedy(),
            Self::Summarization => Policy::sample(0.45).top_p(0.9),
            Self::Conversation => Policy::sample(0.8).top_p(0.9),
            Self::Creative => Policy::sample(1.0).min_p(0.05),
            Self::Brainstorming => Policy::sample(1.2).top_p(0.95),
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_valid_and_read_by_name() {
        for preset in Preset::ALL {
            assert!(preset.policy().check(100).is_ok());
            let read: Preset = serde_json::from_value(preset.name().into()).unwrap();
            assert_eq!(read, preset);
        }
        assert_eq!(Preset::Structured.policy(), Policy::greedy());
        assert_eq!(Preset::Conversation.policy(), Policy::sample(0.8).top_p(0.9));
    }

    #[test]
    fn presets_lie_in_the_ranges_that_are_usually_recommended() {
        let table = [
            (Preset::Factual, 0.0..=0.3, 1.0),
            (Preset::Code, 0.2..=0.4, 0.95),
            (Preset::Structured, 0.0..=0.3, 1.0),
            (Preset::Translation, 0.1..=0.3, 1.0),
            (Preset::Summarization, 0.3..=0.6, 0.9),
            (Preset::Conversation, 0.7..=0.9, 0.9),
            // .95, or min-p.
            (Preset::Creative, 0.9..=1.2, 1.0),
            (Preset::Reasoning, 0.0..=0.1, 1.0),
            (Preset::Brainstorming, 1.0..=1.4, 0.95),
        ];
        assert_eq!(table.each_ref().map(|row| row.0), Preset::ALL);
        for (preset, temperatures, top_p) in table {
            let policy = preset.policy();
            assert!(temperatures.contains(&policy.temperature), "{preset}");
            assert_eq!(policy.top_p, top_p, "{preset}");
        }
        assert_eq!(Preset::Creative.policy().min_p, 0.05);
    }
}
