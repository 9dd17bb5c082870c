//! What a run of a suite found: per case and in sum, as JSON or as lines for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use schemac::ir::Departure;
use serde_json::{Map, Value, json};

use crate::suite::distribution::{Distribution, micros};

/// What happened to one case.
#[derive(Clone, Debug, Default)]
pub(crate) struct CaseReport {
    pub name: String,
    /// From the start of compiling to its end. Nothing if it failed.
    pub compile: Option<Duration>,
    /// From the start of compiling to the end of the first mask.
    pub first_mask: Option<Duration>,
    /// One for each mask of each test: computing it, and accepting the token that follows.
    pub masks: Vec<Duration>,
    pub tests: Vec<TestReport>,
    /// Why there is no grammar to test.
    pub error: Option<CaseError>,
    pub departures: Vec<Departure>,
    pub expect_error: bool,
    pub policy: bool,
}

/// What happened to one text.
#[derive(Clone, Debug)]
pub(crate) struct TestReport {
    pub valid: bool,
    pub accepted: bool,
    /// How many bytes were legal, if the text was refused.
    pub stopped_at: Option<usize>,
    /// A step failed for another reason than an illegal token: kind and text.
    pub error: Option<(String, String)>,
}

/// Why a case could not be run.
#[derive(Clone, Debug)]
pub(crate) struct CaseError {
    /// A kind of error of the library, or [`PANIC`], [`MALFORMED`], [`TIMEOUT`].
    pub kind: String,
    pub pointer: Option<String>,
    pub message: String,
}

/// The engine panicked or contradicted itself, which is a bug of this program.
pub(crate) const PANIC: &str = "panic";

/// The suite file has something that is no case.
pub(crate) const MALFORMED: &str = "malformed_case";

/// The case took longer than it may.
pub(crate) const TIMEOUT: &str = "timeout";

impl TestReport {
    fn is_right(&self) -> bool {
        self.accepted == self.valid && self.error.is_none()
    }
}

impl CaseReport {
    /// Returns whether compiling failed as expected, or every test is as it should be.
    pub(crate) fn is_right(&self) -> bool {
        match &self.error {
            Some(error) => {
                self.expect_error && ![PANIC, MALFORMED, TIMEOUT].contains(&error.kind.as_str())
            }
            None => !self.expect_error && self.tests.iter().all(TestReport::is_right),
        }
    }

    fn is_panic(&self) -> bool {
        self.error.as_ref().is_some_and(|error| error.kind == PANIC)
    }

    /// Returns the case as one JSON object.
    pub(crate) fn to_json(&self, with_masks: bool) -> Value {
        let mut object = Map::new();
        object.insert("name".to_owned(), json!(self.name));
        object.insert("compile_us".to_owned(), json!(self.compile.map(micros)));
        object.insert("first_mask_us".to_owned(), json!(self.first_mask.map(micros)));
        if with_masks {
            let masks: Vec<_> = self.masks.iter().copied().map(micros).collect();
            object.insert("mask_us".to_owned(), json!(masks));
        }
        let tests: Vec<_> = self.tests.iter().map(test_json).collect();
        object.insert("tests".to_owned(), json!(tests));
        let error = self.error.as_ref().map(|error| {
            json!({ "kind": error.kind, "pointer": error.pointer, "message": error.message })
        });
        object.insert("error".to_owned(), json!(error));
        object.insert("departures".to_owned(), json!(self.departures));
        for (name, set) in [("expect_error", self.expect_error), ("policy", self.policy)] {
            if set {
                object.insert(name.to_owned(), json!(true));
            }
        }
        Value::Object(object)
    }

    /// Returns the case as lines for people.
    pub(crate) fn to_text(&self) -> String {
        let verdict = match (self.is_right(), self.policy) {
            (true, _) => "ok   ",
            (false, true) => "other",
            (false, false) => "WRONG",
        };
        let mut out = format!("{verdict} {}", self.name);
        if let (Some(compile), Some(first)) = (self.compile, self.first_mask) {
            let masks = Distribution::of(self.masks.clone());
            let _ = write!(
                out,
                ": compiled in {:.1} µs, first mask after {:.1} µs, {} masks of {:.1} µs",
                micros(compile),
                micros(first),
                self.masks.len(),
                micros(masks.average),
            );
        }
        out.push('\n');
        if let Some(error) = &self.error {
            let expected = if self.expect_error { "expected " } else { "" };
            let place = error.pointer.as_ref().map(|p| format!(" at `#{p}`")).unwrap_or_default();
            let _ = writeln!(out, "      {expected}{}: {}{place}", error.kind, error.message);
        } else if self.expect_error {
            out.push_str("      compiled, although an error is expected\n");
        }
        for entry in &self.departures {
            let _ = writeln!(out, "      departs: `#{}`: {}", entry.pointer, entry.reason);
        }
        for (index, test) in self.tests.iter().enumerate().filter(|(_, test)| !test.is_right()) {
            let kind = if test.valid { "valid" } else { "invalid" };
            let fate = match (test.accepted, test.stopped_at) {
                (true, _) => "accepted".to_owned(),
                (false, Some(at)) => format!("refused after {at} bytes"),
                (false, None) => "refused".to_owned(),
            };
            let why = test.error.as_ref().map(|(_, text)| format!(": {text}")).unwrap_or_default();
            let _ = writeln!(out, "      test {}: {kind} and {fate}{why}", index + 1);
        }
        out
    }
}

fn test_json(test: &TestReport) -> Value {
    let mut object = json!({
        "valid": test.valid,
        "accepted": test.accepted,
        "stopped_at": test.stopped_at,
    });
    if let Some((kind, message)) = &test.error {
        object["error"] = json!({ "kind": kind, "message": message });
    }
    object
}

/// The sum over all cases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    cases: usize,
    compiled: usize,
    compile_errors: BTreeMap<String, usize>,
    tests: usize,
    all_right: usize,
    panics: usize,
    wrong: Wrong,
    policy: usize,
    policy_right: usize,
    policy_wrong: Wrong,
    departures: usize,
    masks: Vec<Duration>,
    first_masks: Vec<Duration>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Wrong {
    invalid_accepted: usize,
    valid_refused: usize,
}

impl Summary {
    /// Counts a case.
    pub(crate) fn add(&mut self, case: &CaseReport) {
        let right = case.is_right();
        self.cases += 1;
        self.all_right += usize::from(right);
        self.policy += usize::from(case.policy);
        self.policy_right += usize::from(case.policy && right);
        self.panics += usize::from(case.is_panic());
        self.departures += usize::from(!case.departures.is_empty());
        match &case.error {
            Some(error) => *self.compile_errors.entry(error.kind.clone()).or_default() += 1,
            None => self.compiled += 1,
        }
        self.tests += case.tests.len();
        let wrong = if case.policy { &mut self.policy_wrong } else { &mut self.wrong };
        for test in &case.tests {
            wrong.invalid_accepted += usize::from(test.accepted && !test.valid);
            wrong.valid_refused += usize::from(!test.accepted && test.valid);
        }
        self.masks.extend(&case.masks);
        self.first_masks.extend(case.first_mask);
    }

    /// Returns whether a panic was caught.
    pub(crate) fn has_panics(&self) -> bool {
        self.panics > 0
    }

    /// Returns whether all cases are right that are not of policy.
    pub(crate) fn is_right(&self) -> bool {
        self.all_right - self.policy_right == self.cases - self.policy
    }

    /// Returns the summary as a JSON object.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "summary": {
                "cases": self.cases,
                "compiled": self.compiled,
                "compile_errors": self.compile_errors,
                "tests": self.tests,
                "invalid_accepted": self.wrong.invalid_accepted,
                "valid_refused": self.wrong.valid_refused,
                "all_right": self.all_right,
                "panics": self.panics,
                "mask_us": Distribution::of(self.masks.clone()).to_json(),
                "first_mask_us": Distribution::of(self.first_masks.clone()).to_json(),
                "departures": self.departures,
                "policy": {
                    "cases": self.policy,
                    "all_right": self.policy_right,
                    "invalid_accepted": self.policy_wrong.invalid_accepted,
                    "valid_refused": self.policy_wrong.valid_refused,
                },
            }
        })
    }

    /// Returns the summary as lines for people.
    pub(crate) fn to_text(&self) -> String {
        let mut out = format!(
            "\n{} cases, {} all right, {} compiled, {} with departures\n",
            self.cases, self.all_right, self.compiled, self.departures
        );
        for (kind, count) in &self.compile_errors {
            let _ = writeln!(out, "  compile error {kind}: {count}");
        }
        let Wrong { invalid_accepted, valid_refused } = self.wrong;
        let _ = writeln!(
            out,
            "{} tests: {invalid_accepted} invalid accepted, {valid_refused} valid refused",
            self.tests
        );
        if self.policy > 0 {
            let Wrong { invalid_accepted, valid_refused } = self.policy_wrong;
            let _ = writeln!(
                out,
                "{} cases of policy, apart: {} right, {invalid_accepted} invalid accepted, {valid_refused} valid refused",
                self.policy, self.policy_right
            );
        }
        for (name, times) in [("mask", &self.masks), ("first mask", &self.first_masks)] {
            let d = Distribution::of(times.clone());
            let _ = writeln!(
                out,
                "{name}, µs: avg {:.1}, p50 {:.1}, p90 {:.1}, p99 {:.1}, p99.9 {:.1}, max {:.1}",
                micros(d.average),
                micros(d.p50),
                micros(d.p90),
                micros(d.p99),
                micros(d.p999),
                micros(d.max),
            );
        }
        if self.panics > 0 {
            let _ = writeln!(out, "{} panics: these are bugs of schemac", self.panics);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn test(valid: bool, accepted: bool) -> TestReport {
        TestReport { valid, accepted, stopped_at: (!accepted).then_some(3), error: None }
    }

    fn failed(kind: &str, expect_error: bool) -> CaseReport {
        let error = CaseError {
            kind: kind.to_owned(),
            pointer: Some("/a".to_owned()),
            message: "m".to_owned(),
        };
        CaseReport { name: "f".to_owned(), error: Some(error), expect_error, ..Default::default() }
    }

    fn ran(tests: Vec<TestReport>, policy: bool) -> CaseReport {
        CaseReport {
            name: "r".to_owned(),
            compile: Some(us(5)),
            first_mask: Some(us(9)),
            masks: vec![us(2), us(4)],
            tests,
            policy,
            ..Default::default()
        }
    }

    #[test]
    fn summary_counts_each_case_once_and_policy_apart() {
        let mut summary = Summary::default();
        for case in [
            ran(vec![test(true, true), test(false, false)], false),
            ran(vec![test(true, false), test(false, true)], false),
            ran(vec![test(false, true)], true),
            failed("syntax", true),
            failed("syntax", false),
        ] {
            summary.add(&case);
        }
        assert!(!summary.is_right() && !summary.has_panics());
        insta::assert_snapshot!(serde_json::to_string_pretty(&summary.to_json()).unwrap());
        insta::assert_snapshot!(summary.to_text());
    }

    #[test]
    fn a_step_that_failed_is_not_right_even_if_the_text_is_invalid() {
        let mut refused = test(false, false);
        refused.error = Some(("budget_exceeded".to_owned(), "m".to_owned()));
        assert!(!ran(vec![refused], false).is_right());
    }

    #[test]
    fn a_panic_is_never_right_even_where_an_error_is_expected() {
        let case = failed(PANIC, true);
        assert!(!case.is_right());
        let mut summary = Summary::default();
        summary.add(&case);
        assert!(summary.has_panics());
    }

    #[test]
    fn policy_may_differ_without_making_the_suite_wrong() {
        let mut summary = Summary::default();
        summary.add(&ran(vec![test(false, true)], true));
        assert!(summary.is_right());
    }

    #[test]
    fn case_json_has_the_documented_members() {
        let case = ran(vec![test(true, true), test(false, false)], false);
        assert_eq!(
            case.to_json(true).to_string(),
            r#"{"name":"r","compile_us":5.0,"first_mask_us":9.0,"mask_us":[2.0,4.0],"tests":[{"valid":true,"accepted":true,"stopped_at":null},{"valid":false,"accepted":false,"stopped_at":3}],"error":null,"departures":[]}"#
        );
        assert_eq!(
            failed("syntax", true).to_json(false).to_string(),
            r#"{"name":"f","compile_us":null,"first_mask_us":null,"tests":[],"error":{"kind":"syntax","pointer":"/a","message":"m"},"departures":[],"expect_error":true}"#
        );
    }
}
