//! The whole way from a grammar's text to a [`TokenAutomaton`] in one call: [`Compiler`]. Wiring
//! only: this is the one module that sees the front ends and the token level.

use std::fmt;
use std::sync::Arc;

use crate::cache::{GrammarCache, Key};
use crate::error::Error;
use crate::frontend::gbnf;
use crate::frontend::json_schema;
use crate::frontend::json_schema::{JsonOptions, KeywordReport, Retrieve};
use crate::frontend::layout;
use crate::frontend::layout::Layout;
use crate::frontend::openai;
use crate::frontend::openai::ToolStyle;
use crate::frontend::regex;
use crate::ids::TokenId;
use crate::ir::Grammar;
use crate::limits::Limits;
use crate::token::TokenAutomaton;
use crate::vocab::Vocabulary;

/// Compiles grammars for one vocabulary.
///
/// ```
/// use schemac::{Compiler, Matcher, Vocabulary};
///
/// let compiler = Compiler::new(Vocabulary::embedded());
/// let automaton = compiler.compile_schema(r#"{"type": "integer", "minimum": 10}"#)?;
/// let mut matcher = Matcher::new(automaton);
/// matcher.accept_bytes(b"1")?;
/// assert!(!matcher.is_accepting()?);
/// matcher.accept_bytes(b"7")?;
/// assert!(matcher.is_accepting()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Compiler {
    vocabulary: Arc<Vocabulary>,
    limits: Limits,
    json: JsonOptions,
    documents: Documents,
    cache: Option<Arc<GrammarCache>>,
}

/// Where the other documents are that schemas refer to.
#[derive(Clone, Default)]
struct Documents(Option<Arc<dyn Retrieve + Send + Sync>>);

impl fmt::Debug for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "given" } else { "none" })
    }
}

impl Compiler {
    /// Returns a compiler for `vocabulary` with default limits and JSON options.
    #[must_use]
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self {
            vocabulary,
            limits: Limits::default(),
            json: JsonOptions::default(),
            documents: Documents::default(),
            cache: None,
        }
    }

    /// Sets the bounds on work and memory of each compiled grammar.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the choices of JSON Schemas.
    #[must_use]
    pub fn json_options(mut self, options: JsonOptions) -> Self {
        self.json = options;
        self
    }

    /// Sets where the other documents are that schemas refer to. Without, such references are
    /// errors; nothing is ever fetched.
    #[must_use]
    pub fn documents(mut self, documents: Arc<dyn Retrieve + Send + Sync>) -> Self {
        self.documents = Documents(Some(documents));
        self
    }

    /// Takes grammars from `cache` that were compiled before, from the same text under the same
    /// vocabulary, options and limits. Compilers may share one.
    ///
    /// Types ([`Compiler::compile_type`]) are compiled each time, and so are schemas where documents are
    /// given, since a cache cannot know what those hold now.
    #[must_use]
    pub fn cache(mut self, cache: Arc<GrammarCache>) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Returns the vocabulary that grammars are compiled for.
    #[must_use]
    pub const fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Compiles the text of a JSON Schema.
    ///
    /// # Errors
    ///
    /// See [`json_schema::compile`] and [`TokenAutomaton::new`].
    pub fn compile_schema(&self, text: &str) -> Result<Arc<TokenAutomaton>, Error> {
        let (json, limits) = (&self.json, &self.limits);
        self.cached("schema", text.as_bytes(), || {
            json_schema::compile_with(text, json, limits, self.retrieve())
        })
    }

    /// Tells of every keyword of a JSON Schema what it became.
    ///
    /// ```
    /// use schemac::{Compiler, Vocabulary};
    ///
    /// let compiler = Compiler::new(Vocabulary::embedded());
    /// let reports = compiler.report_schema(r#"{"maxLength": 3, "title": "Code"}"#)?;
    /// assert_eq!(reports[0].became, "strings of 0 to 3 characters");
    /// assert_eq!(reports[1].became, "an annotation");
    /// # Ok::<(), schemac::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`json_schema::report`].
    pub fn report_schema(&self, text: &str) -> Result<Vec<KeywordReport>, Error> {
        json_schema::report(text, &self.json, &self.limits, self.retrieve())
    }

    fn retrieve(&self) -> Option<&dyn Retrieve> {
        self.documents.0.as_deref().map(|documents| documents as &dyn Retrieve)
    }

    /// Compiles the JSON Schema that `schemars` derives for a Rust type, so that every output can be
    /// read into it.
    ///
    /// ```
    /// use schemac::{Compiler, Vocabulary};
    ///
    /// #[derive(schemars::JsonSchema)]
    /// struct Point {
    ///     x: i8,
    ///     label: Option<String>,
    /// }
    ///
    /// let automaton = Compiler::new(Vocabulary::embedded()).compile_type::<Point>()?;
    /// # let mut matcher = schemac::Matcher::new(automaton);
    /// # matcher.accept_bytes(br#"{"x":127"#).unwrap();
    /// # assert!(matcher.clone().accept_bytes(b"0").is_err());
    /// # matcher.accept_bytes(br#","label":null}"#).unwrap();
    /// # assert!(matcher.is_accepting().unwrap());
    /// # Ok::<(), schemac::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`json_schema::from_type`] and [`TokenAutomaton::new`].
    pub fn compile_type<T: schemars::JsonSchema>(&self) -> Result<Arc<TokenAutomaton>, Error> {
        self.finish(json_schema::from_type::<T>(&self.json, &self.limits)?)
    }

    /// Compiles a regular expression, which must match the whole output.
    ///
    /// # Errors
    ///
    /// See [`regex::compile`] and [`TokenAutomaton::new`].
    pub fn compile_regex(&self, pattern: &str) -> Result<Arc<TokenAutomaton>, Error> {
        self.cached("regex", pattern.as_bytes(), || regex::compile(pattern, &self.limits))
    }

    /// Compiles the text of a GBNF grammar.
    ///
    /// # Errors
    ///
    /// See [`gbnf::compile`] and [`TokenAutomaton::new`].
    pub fn compile_gbnf(&self, text: &str) -> Result<Arc<TokenAutomaton>, Error> {
        self.cached("gbnf", text.as_bytes(), || gbnf::compile(text, &self.limits))
    }

    /// Compiles a layout of texts and JSON Schemas ([`Layout`]).
    ///
    /// ```
    /// use schemac::frontend::layout::Layout;
    /// use schemac::{Compiler, Matcher, Vocabulary};
    ///
    /// let reasoning = Layout::until("</think>");
    /// let answer = Layout::Schema(r#"{"enum": ["yes", "no"]}"#.into());
    /// let compiler = Compiler::new(Vocabulary::embedded());
    /// let automaton = compiler.compile_layout(&Layout::Sequence(vec![reasoning, answer]))?;
    /// let mut matcher = Matcher::new(automaton);
    /// matcher.accept_bytes("hm, 2 < 3 …</think>\"yes\"".as_bytes())?;
    /// assert!(matcher.is_accepting()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// See [`layout::compile`] and [`TokenAutomaton::new`].
    pub fn compile_layout(&self, layout: &Layout) -> Result<Arc<TokenAutomaton>, Error> {
        // The text that Debug writes tells layouts apart.
        let text = format!("{layout:?}");
        self.cached("layout", text.as_bytes(), || {
            layout::compile(layout, &self.json, &self.limits, self.retrieve())
        })
    }

    /// Compiles what a request of OpenAI's Chat Completions asks for with `response_format`, `tools`,
    /// `tool_choice` and `parallel_tool_calls` ([`openai::layout`]).
    ///
    /// # Errors
    ///
    /// See [`openai::layout`] and [`Compiler::compile_layout`].
    pub fn compile_request(
        &self,
        request: &serde_json::Value,
        style: &ToolStyle,
    ) -> Result<Arc<TokenAutomaton>, Error> {
        self.compile_layout(&openai::layout(request, style)?)
    }

    /// Returns the same compiler for outputs that end with one of these tokens, by which a next phase
    /// begins ([`crate::runtime::Phase`]), in place of the vocabulary's end tokens.
    ///
    /// # Errors
    ///
    /// As [`Vocabulary::new`].
    pub fn ending_with(&self, tokens: impl IntoIterator<Item = TokenId>) -> Result<Self, Error> {
        let vocabulary = Arc::new(self.vocabulary.with_end_tokens(tokens)?);
        Ok(Self { vocabulary, ..self.clone() })
    }

    /// Returns the grammar of `text`, which is of this kind, from the cache if there is one.
    fn cached(
        &self,
        kind: &str,
        text: &[u8],
        grammar: impl FnOnce() -> Result<Grammar, Error>,
    ) -> Result<Arc<TokenAutomaton>, Error> {
        let compile = || self.finish(grammar()?);
        let (Some(cache), None) = (&self.cache, &self.documents.0) else { return compile() };
        let options = serde_json::to_vec(&(&self.limits, &self.json));
        let Ok(options) = options else { return compile() };
        let key = Key::of(&self.vocabulary, &[kind.as_bytes(), &options, text]);
        cache.get_or_compile(key, &self.vocabulary, &self.limits, compile)
    }

    fn finish(&self, grammar: Grammar) -> Result<Arc<TokenAutomaton>, Error> {
        let vocabulary = Arc::clone(&self.vocabulary);
        TokenAutomaton::new(grammar, vocabulary, self.limits.clone()).map(Arc::new)
    }
}
