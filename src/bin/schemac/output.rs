//! What commands print: results on standard output, as text for people or as JSON.

use std::io::{IsTerminal, Write};

use serde_json::Value;

use crate::exit::Failure;

/// The form of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Text for people.
    #[default]
    Text,
    /// One JSON object per result and line.
    Json,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless the variable `NO_COLOR` is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Where results go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    format: Format,
    color: ColorChoice,
}

impl Output {
    /// Returns an output of this form.
    pub(crate) const fn new(format: Format, color: ColorChoice) -> Self {
        Self { format, color }
    }

    /// Returns whether text on standard error has colours.
    pub(crate) fn colors_errors(self) -> bool {
        self.colors(std::io::stderr().is_terminal())
    }

    /// Returns whether text on standard output has colours.
    pub(crate) fn colors_results(self) -> bool {
        self.colors(std::io::stdout().is_terminal())
    }

    fn colors(self, terminal: bool) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
                terminal && !forbidden
            }
        }
    }

    /// Returns whether results are JSON.
    pub(crate) fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Writes one result in the chosen form. The text ends in a line break, or is all there is.
    pub(crate) fn result(
        self,
        text: impl FnOnce() -> String,
        json: impl FnOnce() -> Value,
    ) -> Result<(), Failure> {
        match self.format {
            Format::Text => write(text().as_bytes()),
            Format::Json => write(format!("{}\n", json()).as_bytes()),
        }
    }

    /// Reports a bug that was caught: what it says, and what to do.
    pub(crate) fn bug(self, message: &str) {
        let text = format!("this is a bug of schemac, please report it: {message}\n");
        // As for a failure, the exit code is left if nothing can be written.
        if self.is_json() {
            let error = serde_json::json!({ "error": { "kind": "bug", "pointer": null, "span": null, "message": message } });
            let _ = write(format!("{error}\n").as_bytes());
        }
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Reports a failure: text on standard error, or JSON on standard output.
    pub(crate) fn failure(self, failure: &Failure) {
        // When even this cannot be written, the exit code still tells.
        if self.is_json() && !matches!(failure, Failure::Closed) {
            let _ = write(format!("{}\n", failure.to_json()).as_bytes());
        } else {
            let _ = std::io::stderr().write_all(failure.to_text(self.colors_errors()).as_bytes());
        }
    }
}

/// Writes to standard output at once.
fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::io("standard output".as_ref(), &error),
    })
}
