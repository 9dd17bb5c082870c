//! What was proved of the parts of a grammar that may be absent.

use schemac::automaton::Proof;
use serde_json::{Value, json};

use crate::diagnostic;
use crate::exit::Failure;
use crate::grammar::Compiled;
use crate::progress::Progress;

/// The parts of a grammar, and which can never be there.
pub(crate) struct Proved<'a> {
    compiled: &'a Compiled,
    proof: Proof,
}

impl<'a> Proved<'a> {
    /// Proves what can be proved.
    pub(crate) fn of(compiled: &'a Compiled) -> Result<Self, Failure> {
        let _progress = Progress::start("proving", None);
        let proof = compiled.automaton.automaton().prove()?;
        Ok(Self { compiled, proof })
    }

    /// Returns whether every part can be there.
    pub(crate) fn is_complete(&self) -> bool {
        self.proof.findings.is_empty() && self.proof.undecided.is_empty()
    }

    pub(crate) fn to_text(&self, color: bool) -> String {
        let Proof { parts, findings, undecided, .. } = &self.proof;
        let proved = parts.saturating_sub(findings.len() + undecided.len());
        let mut text: String = findings
            .iter()
            .chain(undecided)
            .map(|error| self.compiled.error_text(error, color))
            .collect();
        text += &format!("{proved} of {parts} optional parts can be there\n");
        text
    }

    pub(crate) fn to_json(&self) -> Value {
        let errors = |errors: &[schemac::Error]| -> Vec<Value> {
            errors.iter().map(diagnostic::to_json).collect()
        };
        json!({
            "parts": self.proof.parts,
            "findings": errors(&self.proof.findings),
            "undecided": errors(&self.proof.undecided),
        })
    }
}
