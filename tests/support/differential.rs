//! What a schema compiles to against the independent `jsonschema` crate: what is generated is valid,
//! and what is valid in its canonical spelling is accepted.
#![allow(dead_code, reason = "each user takes what it needs")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use schemac::frontend::json_schema::{JsonOptions, PropertyOrder, compile};
use schemac::token::TokenAutomaton;
use schemac::{Error, ErrorKind, Limits, StepError, Vocabulary};
use serde_json::Value;

use super::instances::{Instances, has_spelling, spelled};
use super::writing::{accepts, generate, in_some_order};

/// How much is tried with one schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Outputs generated.
    pub(crate) walks: usize,
    /// Instances judged by both sides.
    pub(crate) candidates: usize,
}

/// What was seen, over many schemas.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) schemas: usize,
    pub(crate) unsatisfiable: usize,
    /// The schemas that the crate does not take.
    pub(crate) not_judged: usize,
    /// The schemas refused for another reason than that nothing satisfies them, by reason.
    pub(crate) refused: BTreeMap<String, usize>,
    /// The outputs that could not be completed, by reason.
    pub(crate) stopped: BTreeMap<String, usize>,
    /// The schemas under which an output came to a place where every element had been written.
    pub(crate) ran_out: BTreeSet<String>,
    pub(crate) outputs: usize,
    /// The instances that the crate calls valid, and invalid.
    pub(crate) valid: usize,
    pub(crate) invalid: usize,
    /// The outputs and instances that the crate cannot judge, or that have no canonical spelling.
    pub(crate) excused: BTreeMap<&'static str, usize>,
    /// The slowest schemas.
    pub(crate) slowest: Vec<(Duration, String)>,
}

impl Tally {
    fn time(&mut self, took: Duration, schema: &Value) {
        self.slowest.push((took, schema.to_string()));
        self.slowest.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
        self.slowest.truncate(12);
    }
}

/// A disagreement, or an error that should not be.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) schema: Value,
    pub(crate) what: What,
}

/// What is wrong, and the text that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// What was generated is not valid.
    Generated(PropertyOrder, String),
    /// An instance is accepted and not valid.
    Accepted(PropertyOrder, String),
    /// A valid instance is refused.
    Refused(PropertyOrder, String),
    /// The schema is called unsatisfiable, and the instance is valid.
    Satisfiable(String),
    /// What is generated in the declared order is not accepted in any order.
    OnlyDeclared(String),
    /// The schema is refused.
    Compile(PropertyOrder, String),
    /// A generation stops with an error.
    Stuck(PropertyOrder, u64, String),
    /// Whether an instance is accepted is answered by an error.
    Unanswered(String, String),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}\n    under {}", self.what, self.schema)
    }
}

impl Finding {
    /// Returns the same finding under a smaller schema.
    pub(crate) fn shrunk(&self) -> Self {
        let mut holds = |schema: &Value| self.what.holds(schema);
        Self { schema: super::shrink::shrink(&self.schema, &mut holds), what: self.what.clone() }
    }
}

impl What {
    /// Returns whether the same is wrong of another schema.
    pub(crate) fn holds(&self, schema: &Value) -> bool {
        let Some(validator) = validator(schema) else { return false };
        let value = |text: &str| serde_json::from_str::<Value>(text).ok();
        let valid = |text: &str| value(text).is_some_and(|value| validator.is_valid(&value));
        let accepted = |order, text: &str| {
            let accepts = |automaton| accepts(&automaton, text).unwrap_or(false);
            automaton(schema, order).is_ok_and(accepts)
        };
        match self {
            Self::Generated(order, text) | Self::Accepted(order, text) => {
                accepted(*order, text) && !valid(text)
            }
            Self::Refused(order, text) => {
                valid(text)
                    && automaton(schema, *order).is_ok_and(|automaton| {
                        let value = value(text).unwrap_or_default();
                        matches!(in_some_order(&automaton, &value), Ok(Some(false)))
                    })
            }
            Self::Satisfiable(text) => {
                let result = automaton(schema, PropertyOrder::Any);
                let refused = result.is_err_and(|e| *e.kind() == ErrorKind::Unsatisfiable);
                refused && valid(text)
            }
            Self::OnlyDeclared(text) => {
                accepted(PropertyOrder::Declared, text) && !accepted(PropertyOrder::Any, text)
            }
            Self::Compile(order, message) => {
                automaton(schema, *order).is_err_and(|error| error.message() == message)
            }
            Self::Unanswered(text, message) => {
                let fails = |automaton| {
                    accepts(&automaton, text).is_err_and(|error| error.to_string() == *message)
                };
                [PropertyOrder::Any, PropertyOrder::Declared]
                    .into_iter()
                    .any(|order| automaton(schema, order).is_ok_and(fails))
            }
            Self::Stuck(order, seed, message) => automaton(schema, *order).is_ok_and(|automaton| {
                let mut rng = StdRng::seed_from_u64(*seed);
                let one = |_| generate(&automaton, &mut rng).err();
                (0..200).find_map(one).is_some_and(|error| error.to_string() == *message)
            }),
        }
    }
}

/// Returns the judge, unless the crate does not take the schema.
fn validator(schema: &Value) -> Option<jsonschema::Validator> {
    jsonschema::options().should_validate_formats(true).build(schema).ok()
}

fn automaton(schema: &Value, order: PropertyOrder) -> Result<Arc<TokenAutomaton>, Error> {
    let limits = Limits::default().max_rollback(1);
    let options = JsonOptions::default().property_order(order);
    let grammar = compile(&schema.to_string(), &options, &limits)?;
    let vocabulary: &Arc<Vocabulary> = &super::properties::VOCABULARY;
    Ok(Arc::new(TokenAutomaton::new(grammar, vocabulary.clone(), limits)?))
}

/// Returns why the crate cannot judge `text`, whose value is `value`.
fn cannot_judge(schema: &Value, text: &str, value: &Value) -> Option<&'static str> {
    if !is_exact_for_the_crate(value) {
        return Some("numbers of more than 15 digits");
    }
    // Patterns with look-around go untranslated to an engine of another dialect, in which `.` matches
    // `\r`, and `\w` the letters of Unicode, as `\b` beside them does in any case. ECMA-262 (22.2.2)
    // has neither.
    let schema = schema.to_string();
    let dialect = ["(?=.", "(?!.", r"\\b", r"\\B"].iter().any(|part| schema.contains(part));
    let plain = |c: char| (' '..='~').contains(&c);
    let odd = !text.chars().all(plain) || ["\\r", "\\u"].iter().any(|part| text.contains(part));
    if dialect && odd {
        return Some("patterns that the crate reads in another dialect");
    }
    // RFC 6570 (2.1) lists the characters beyond ASCII of a literal; the crate takes all.
    if schema.contains("uri-template") && !text.is_ascii() {
        return Some("characters that the crate takes in a URI template");
    }
    // Before 2020-12, `contains` evaluates nothing (2019-09, core, 9.3.1.3); to the crate it does.
    let evaluated = ["2019-09/schema", "\"contains\"", "\"unevaluatedItems\""];
    evaluated
        .iter()
        .all(|part| schema.contains(part))
        .then_some("elements that `contains` evaluates for the crate in 2019-09")
}

/// Returns whether every number is one that the crate compares exactly: it computes with binary64, in
/// which 15 digits are certain.
fn is_exact_for_the_crate(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let text = number.to_string();
            let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
            let digits = mantissa.chars().filter(char::is_ascii_digit).count();
            let zero = mantissa.chars().all(|c| !c.is_ascii_digit() || c == '0');
            let exponent = exponent.parse::<i32>().map_or(i32::MAX, |e| e.saturating_abs());
            digits <= 15 && (zero || exponent <= 200)
        }
        Value::Array(elements) => elements.iter().all(is_exact_for_the_crate),
        Value::Object(members) => members.values().all(is_exact_for_the_crate),
        _ => true,
    }
}

/// Returns whether a name stands twice in an object of `text`, whose value is `value`.
fn repeats_a_name(text: &str, value: &Value) -> bool {
    fn members(value: &Value) -> usize {
        match value {
            Value::Array(elements) => elements.iter().map(members).sum(),
            Value::Object(all) => all.len() + all.values().map(members).sum::<usize>(),
            _ => 0,
        }
    }
    let (mut colons, mut in_text, mut escaped) = (0, false, false);
    for byte in text.bytes() {
        match byte {
            b'"' if !escaped => in_text = !in_text,
            b':' if !in_text => colons += 1,
            _ => {}
        }
        escaped = in_text && !escaped && byte == b'\\';
    }
    colons != members(value)
}

/// Compares both sides on one schema and returns where they differ.
pub(crate) fn examine(
    schema: &Value,
    seed: u64,
    effort: Effort,
    tally: &mut Tally,
) -> Vec<Finding> {
    let mut examination = Examination { schema, effort, tally, found: Vec::new() };
    examination.run(seed);
    examination.found
}

struct Examination<'e> {
    schema: &'e Value,
    effort: Effort,
    tally: &'e mut Tally,
    found: Vec<Finding>,
}

/// The automata in both orders.
struct Both {
    any: Arc<TokenAutomaton>,
    declared: Arc<TokenAutomaton>,
}

impl Examination<'_> {
    fn find(&mut self, what: What) {
        self.found.push(Finding { schema: self.schema.clone(), what });
    }

    fn excuse(&mut self, reason: &'static str) {
        *self.tally.excused.entry(reason).or_default() += 1;
    }

    fn run(&mut self, seed: u64) {
        self.tally.schemas += 1;
        let start = Instant::now();
        let any = automaton(self.schema, PropertyOrder::Any);
        let declared = automaton(self.schema, PropertyOrder::Declared);
        let mut instances = Instances::new(self.schema, seed);
        match (any, declared) {
            (Ok(any), Ok(declared)) => {
                let Some(validator) = validator(self.schema) else {
                    self.tally.not_judged += 1;
                    return;
                };
                let both = Both { any, declared };
                let outputs = self.generate(&both, &validator, seed, &mut instances);
                self.tally.time(start.elapsed(), self.schema);
                self.judge(&both, &validator, &outputs, &mut instances);
            }
            (Err(any), Err(declared)) if any.kind() == declared.kind() => {
                self.tally.time(start.elapsed(), self.schema);
                self.refused(&any, &mut instances);
            }
            (any, declared) => {
                for (order, result) in
                    [(PropertyOrder::Any, any), (PropertyOrder::Declared, declared)]
                {
                    if let Err(error) = result {
                        self.find(What::Compile(order, error.message().to_owned()));
                    }
                }
            }
        }
    }

    fn refused(&mut self, error: &Error, instances: &mut Instances) {
        if *error.kind() == ErrorKind::Unsatisfiable {
            self.tally.unsatisfiable += 1;
            let Some(validator) = validator(self.schema) else { return };
            for i in 0..self.effort.candidates {
                let value = if i % 4 == 0 { instances.any(2) } else { instances.near() };
                if validator.is_valid(&value) {
                    if self.schema.to_string().contains(REGEX) {
                        self.excuse("what the format `regex` leaves out");
                    } else {
                        self.find(What::Satisfiable(spelled(&value)));
                    }
                    return;
                }
            }
            return;
        }
        let message = error.message().to_owned();
        *self.tally.refused.entry(message.clone()).or_default() += 1;
        if !is_documented(error) {
            self.find(What::Compile(PropertyOrder::Any, message));
        }
    }

    /// Generates outputs in both orders and returns some of them.
    fn generate(
        &mut self,
        both: &Both,
        validator: &jsonschema::Validator,
        seed: u64,
        instances: &mut Instances,
    ) -> Vec<Value> {
        let mut outputs = Vec::new();
        let mut rng = StdRng::seed_from_u64(seed);
        for i in 0..self.effort.walks {
            let (order, automaton) = if i % 2 == 0 {
                (PropertyOrder::Declared, &both.declared)
            } else {
                (PropertyOrder::Any, &both.any)
            };
            let text = match generate(automaton, &mut rng) {
                Ok(text) => text,
                Err(error) if self.is_documented_stop(&error) => continue,
                Err(error) => {
                    self.find(What::Stuck(order, seed, error.to_string()));
                    break;
                }
            };
            self.tally.outputs += 1;
            let value: Value = match serde_json::from_str(&text) {
                Ok(value) if !repeats_a_name(&text, &value) => value,
                _ => {
                    self.find(What::Generated(order, text));
                    break;
                }
            };
            if let Some(reason) = cannot_judge(self.schema, &text, &value) {
                self.excuse(reason);
                continue;
            }
            if !validator.is_valid(&value) {
                self.find(What::Generated(order, text));
                break;
            }
            if order == PropertyOrder::Declared {
                let found = self.judge_declared(both, &text, &value);
                if self.note(&text, found) {
                    break;
                }
            }
            if outputs.len() < 40 {
                instances.learn(&value);
                outputs.push(value);
            }
        }
        outputs
    }

    /// Returns what is wrong with an output in declared order when any order is taken.
    fn judge_declared(&mut self, both: &Both, text: &str, value: &Value) -> Judgement {
        if accepts(&both.any, text)? {
            return Ok(None);
        }
        // Which spellings a number has may depend on what is asked of it at once.
        if !has_spelling(value) || accepts(&both.any, &spelled(value))? {
            self.excuse("a number in another spelling than the canonical one");
            return Ok(None);
        }
        Ok(Some(What::OnlyDeclared(text.to_owned())))
    }

    /// Notes what is wrong with a text, and returns whether anything is.
    fn note(&mut self, text: &str, found: Judgement) -> bool {
        match found {
            Ok(None) => return false,
            Ok(Some(what)) => self.find(what),
            Err(error) if self.is_documented_stop(&error) => return false,
            Err(error) => self.find(What::Unanswered(text.to_owned(), error.to_string())),
        }
        true
    }

    /// Counts an error, and returns whether the documentation names it.
    fn is_documented_stop(&mut self, error: &StepError) -> bool {
        *self.tally.stopped.entry(error.to_string()).or_default() += 1;
        match error {
            StepError::Grammar(error) => is_documented(error) || self.may_run_out(error.kind()),
            StepError::AllTokensIllegal { .. } => self.may_run_out(&ErrorKind::Unsatisfiable),
            _ => false,
        }
    }

    /// Returns whether an output may come to a place where nothing completes it: there may be few elements
    /// that differ.
    fn may_run_out(&mut self, kind: &ErrorKind) -> bool {
        let schema = self.schema.to_string();
        let may = *kind == ErrorKind::Unsatisfiable && schema.contains("\"uniqueItems\":true");
        if may {
            self.tally.ran_out.insert(schema);
        }
        may
    }

    /// Lets both sides judge instances.
    fn judge(
        &mut self,
        both: &Both,
        validator: &jsonschema::Validator,
        outputs: &[Value],
        instances: &mut Instances,
    ) {
        let mut seen = BTreeSet::new();
        for i in 0..self.effort.candidates {
            let value = match i % 5 {
                0 | 1 if !outputs.is_empty() => {
                    let mut value = outputs[i / 5 % outputs.len()].clone();
                    for _ in 0..=i % 3 {
                        value = instances.mutated(&value);
                    }
                    instances.shuffled(&value)
                }
                4 => instances.any(2),
                _ => instances.near(),
            };
            if !has_spelling(&value) {
                continue;
            }
            let text = spelled(&value);
            if !seen.insert(text.clone()) {
                continue;
            }
            // The spelling is what is judged: an integer stays one.
            let Ok(value) = serde_json::from_str::<Value>(&text) else { continue };
            if cannot_judge(self.schema, &text, &value).is_some() {
                continue;
            }
            let found = if validator.is_valid(&value) {
                self.tally.valid += 1;
                self.judge_valid(both, &text, &value)
            } else {
                self.tally.invalid += 1;
                judge_invalid(both, &text)
            };
            if self.note(&text, found) {
                return;
            }
        }
    }

    /// Returns what is wrong with how a valid instance is judged.
    fn judge_valid(&mut self, both: &Both, text: &str, value: &Value) -> Judgement {
        let mut order = PropertyOrder::Any;
        if accepts(&both.any, text)? {
            order = PropertyOrder::Declared;
            match in_some_order(&both.declared, value)? {
                Some(true) => return Ok(None),
                Some(false) => {}
                None => {
                    self.excuse("too many orders of members");
                    return Ok(None);
                }
            }
        }
        if let Some(reason) = self.has_no_canonical_spelling(both, value)? {
            self.excuse(reason);
            return Ok(None);
        }
        Ok(Some(What::Refused(order, text.to_owned())))
    }

    /// Returns why a valid instance may be refused, by the documentation.
    fn has_no_canonical_spelling(
        &self,
        both: &Both,
        value: &Value,
    ) -> Result<Option<&'static str>, StepError> {
        let schema = self.schema.to_string();
        if schema.contains("\"uniqueItems\":true") && has_members_to_order(value, false) {
            // The declared order is that of elements which must differ, whatever the option says.
            return Ok(Some(match in_some_order(&both.any, value)? {
                Some(false) => "members that no schema mentions, of elements that must differ",
                _ => "the order of members of elements that must differ",
            }));
        }
        Ok(schema.contains(REGEX).then_some("what the format `regex` leaves out"))
    }
}

/// Returns what is wrong with how an invalid instance is judged.
fn judge_invalid(both: &Both, text: &str) -> Judgement {
    let orders = [(PropertyOrder::Any, &both.any), (PropertyOrder::Declared, &both.declared)];
    for (order, automaton) in orders {
        if accepts(automaton, text)? {
            return Ok(Some(What::Accepted(order, text.to_owned())));
        }
    }
    Ok(None)
}

/// What is wrong with a text, if anything, or why that cannot be answered.
type Judgement = Result<Option<What>, StepError>;

/// The format of which a part is known only, so that it is neither asserted of the rest nor denied.
const REGEX: &str = "\"format\":\"regex\"";

/// Returns whether an array has, at any depth, an object of two or more members.
fn has_members_to_order(value: &Value, in_array: bool) -> bool {
    match value {
        Value::Array(elements) => elements.iter().any(|e| has_members_to_order(e, true)),
        Value::Object(members) => {
            in_array && members.len() > 1
                || members.values().any(|v| has_members_to_order(v, in_array))
        }
        _ => false,
    }
}

/// Returns whether the documentation says that a schema may be refused for this.
fn is_documented(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::LeftRecursion => true,
        ErrorKind::UnsupportedKeyword { keyword } => **keyword == *"uniqueItems",
        _ => false,
    }
}
