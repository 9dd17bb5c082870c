//! One case of a suite: compiled, and each of its texts stepped through token by token.
//!
//! For each text: encode it, then for each token compute the mask and accept the token; at the end,
//! an end token must be legal. A token counts as legal if the mask has it; that accepting it agrees
//! is checked, and a difference is a bug.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use schemac::frontend::json_schema::JsonOptions;
use schemac::token::{Matcher, TokenAutomaton};
use schemac::vocab::Encoder;
use schemac::{Compiler, Error, StepError, TokenId};

use crate::grammar;
use crate::json_args::draft_named;
use crate::suite::cases::{Case, Test};
use crate::suite::report::{CaseError, CaseReport, PANIC, TIMEOUT, TestReport};

/// What all cases are run with.
#[derive(Debug)]
pub(crate) struct Runner {
    pub compiler: Compiler,
    pub encoder: Arc<Encoder>,
    pub json: JsonOptions,
    /// How long one case may take.
    pub patience: Duration,
}

/// Why a case was given up.
enum Stop {
    Error(Error),
    Timeout,
    /// The engine contradicts itself.
    Bug(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

thread_local! {
    /// The text of the last panic of this thread, which the hook of `main` leaves here.
    pub(crate) static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

impl Runner {
    /// Runs a case. A panic in it is caught and reported.
    pub(crate) fn run(&self, case: &Case) -> CaseReport {
        let mut report = CaseReport {
            name: case.name.clone(),
            expect_error: case.expect_error,
            policy: case.policy,
            ..CaseReport::default()
        };
        report.error = guard(|| self.fill(case, &mut report), self.patience);
        report
    }

    fn fill(&self, case: &Case, report: &mut CaseReport) -> Result<(), Stop> {
        let encode = |test: &Test| self.encoder.encode(&test.text);
        let texts = case.tests.iter().map(encode).collect::<Result<Vec<_>, _>>()?;
        let compiler = self.compiler_for(case);
        let start = Instant::now();
        let automaton = grammar::compile_with(&compiler, case.language, &case.grammar)?;
        report.compile = Some(start.elapsed());
        report.departures = automaton.departures().to_vec();
        match Matcher::new(Arc::clone(&automaton)).mask() {
            Ok(_) => report.first_mask = Some(start.elapsed()),
            Err(StepError::Grammar(error)) => return Err(error.into()),
            // The tests meet it again.
            Err(_) => {}
        }
        for (test, tokens) in case.tests.iter().zip(texts) {
            let deadline = start + self.patience;
            let test = self.step_through(&automaton, test, &tokens, deadline, report)?;
            report.tests.push(test);
        }
        Ok(())
    }

    /// Returns the compiler, with the draft of the case if nothing else names one.
    fn compiler_for(&self, case: &Case) -> Compiler {
        let named =
            case.draft.as_ref().and_then(|folder| draft_named(folder.strip_prefix("draft")?));
        match named {
            Some(draft) if self.json.draft.is_none() => {
                self.compiler.clone().json_options(self.json.clone().draft(draft))
            }
            _ => self.compiler.clone(),
        }
    }

    /// Steps through one text.
    fn step_through(
        &self,
        automaton: &Arc<TokenAutomaton>,
        test: &Test,
        tokens: &[TokenId],
        deadline: Instant,
        report: &mut CaseReport,
    ) -> Result<TestReport, Stop> {
        let vocabulary = automaton.vocabulary();
        let mut matcher = Matcher::new(Arc::clone(automaton));
        let mut outcome =
            TestReport { valid: test.valid, accepted: false, stopped_at: None, error: None };
        let mut at = 0;
        let end = vocabulary.end_tokens().first().copied();
        for token in tokens.iter().copied().chain(end) {
            if Instant::now() > deadline {
                return Err(Stop::Timeout);
            }
            let start = Instant::now();
            let legal = matcher.mask().map(|mask| mask.contains(token));
            let accepted = if let Ok(true) = legal { matcher.accept(token) } else { Ok(()) };
            report.masks.push(start.elapsed());
            match (legal, accepted) {
                (Ok(true), Ok(())) => at += vocabulary.bytes(token).len(),
                (Ok(_), Ok(())) => {
                    at += legal_prefix(&mut matcher, token, &test.text, at)?;
                    outcome.stopped_at = Some(at);
                    return Ok(outcome);
                }
                (Ok(_), Err(StepError::TokenRejected { .. })) => {
                    let id = token.get();
                    return Err(Stop::Bug(format!("the mask has token {id}, accepting it fails")));
                }
                (Err(StepError::Grammar(error)), _) | (_, Err(StepError::Grammar(error))) => {
                    return Err(error.into());
                }
                (Err(error), _) | (_, Err(error)) => {
                    outcome.stopped_at = Some(at);
                    outcome.error = Some((error.name().to_owned(), error.to_string()));
                    return Ok(outcome);
                }
            }
        }
        outcome.accepted = true;
        Ok(outcome)
    }
}

/// Returns how many bytes of a token that the mask does not have are legal.
fn legal_prefix(
    matcher: &mut Matcher,
    token: TokenId,
    text: &str,
    at: usize,
) -> Result<usize, Stop> {
    match matcher.accept(token) {
        Err(StepError::TokenRejected { legal_prefix, .. }) => Ok(legal_prefix),
        Err(_) => Ok(0),
        Ok(()) => {
            let (id, rest) = (token.get(), &text.as_bytes()[at..]);
            let rest = rest[..rest.len().min(20)].escape_ascii();
            Err(Stop::Bug(format!("token {id} is accepted but not in the mask, before `{rest}`")))
        }
    }
}

/// Returns why `work` stopped, if it did. A panic in it is caught.
fn guard(work: impl FnOnce() -> Result<(), Stop>, patience: Duration) -> Option<CaseError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => None,
        Ok(Err(Stop::Error(error))) => Some(CaseError {
            kind: error.kind().name().to_owned(),
            pointer: error.pointer().map(str::to_owned),
            message: error.message().to_owned(),
        }),
        Ok(Err(Stop::Timeout)) => {
            Some(plain(TIMEOUT, format!("the case took more than {} s", patience.as_secs())))
        }
        Ok(Err(Stop::Bug(message))) => Some(plain(PANIC, message)),
        Err(_) => {
            let message = LAST_PANIC.with(|last| last.borrow_mut().take());
            Some(plain(PANIC, message.unwrap_or_else(|| "no message".to_owned())))
        }
    }
}

fn plain(kind: &str, message: String) -> CaseError {
    CaseError { kind: kind.to_owned(), pointer: None, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(work: impl FnOnce() -> Result<(), Stop>) -> Option<String> {
        guard(work, Duration::from_secs(1)).map(|error| error.kind)
    }

    #[test]
    fn a_panic_is_caught_and_told_apart_from_errors() {
        assert_eq!(kind(|| Ok(())), None);
        assert_eq!(kind(|| panic!("on purpose")).as_deref(), Some(PANIC));
        assert_eq!(kind(|| Err(Stop::Bug("odd".to_owned()))).as_deref(), Some(PANIC));
        assert_eq!(kind(|| Err(Stop::Timeout)).as_deref(), Some(TIMEOUT));
        let error = Error::new(schemac::ErrorKind::Syntax, "odd");
        assert_eq!(kind(|| Err(error.into())).as_deref(), Some("syntax"));
    }
}
