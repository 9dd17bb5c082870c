//! The decisions behind a generated text, for `generate --explain` and `--plot`: as a table for
//! people, as JSON, and as a drawing.

use std::fmt::Write;

use schemac::Vocabulary;
use schemac::runtime::{Reason, Stage, Standing, StepView, Summary};
use serde_json::{Value, json};

use crate::describe;

/// The widest token that the table shows whole.
const TOKEN_WIDTH: usize = 16;

/// The decisions of one text.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    views: Vec<StepView>,
    summary: Summary,
}

impl Steps {
    /// Adds the next decision.
    pub(crate) fn push(&mut self, view: StepView) {
        self.summary.add(&view);
        self.views.push(view);
    }

    /// Returns a table for people: a line for each decision, and one of sums.
    pub(crate) fn to_table(&self, vocabulary: &Vocabulary) -> String {
        let mut out = String::from(
            " step  token             model p (rank)   drawn p (rank)   legal  could  mask took  entropy\n",
        );
        for (step, view) in self.views.iter().enumerate() {
            let mut token = describe::token(vocabulary, view.token);
            if token.chars().count() > TOKEN_WIDTH {
                token = token.chars().take(TOKEN_WIDTH - 1).chain(['…']).collect();
            }
            let standing = |at: &Standing| {
                let rank = if at.rank == 0 { "-".to_owned() } else { format!("#{}", at.rank) };
                format!("{:.6} {rank:>7}", at.log_probability.exp())
            };
            let _ = writeln!(
                out,
                "{:5}  {token:TOKEN_WIDTH$}  {}  {}  {:6} {:6}  {:9.6}  {:7.4}{}",
                step + 1,
                standing(&view.before),
                standing(&view.after),
                view.legal,
                view.nucleus,
                view.mass_removed,
                entropy(view, Stage::Mask),
                note(view),
            );
        }
        let Summary { steps, log_probability_before, log_probability_after, .. } = self.summary;
        let _ = writeln!(
            out,
            "{steps} tokens: ln p {log_probability_before:.3} by the model, \
             {log_probability_after:.3} as drawn; the mask took {:.3} in all, and the most probable \
             token {} times; {} forced by the grammar, {} by the budget",
            self.summary.mass_removed,
            self.summary.argmax_masked,
            self.summary.forced,
            self.summary.budget,
        );
        out
    }

    /// Returns the decisions and their sums.
    pub(crate) fn to_json(&self, vocabulary: &Vocabulary) -> Value {
        let steps: Vec<_> = self
            .views
            .iter()
            .map(|view| {
                let mut step = json!(view);
                step["text"] = json!(describe::token(vocabulary, view.token));
                step
            })
            .collect();
        json!({ "steps": steps, "summary": self.summary })
    }

    /// Returns a drawing as SVG: entropy before and after the mask, and the mass that it took.
    pub(crate) fn to_svg(&self) -> String {
        let of = |stage| self.views.iter().map(|view| entropy(view, stage)).collect::<Vec<_>>();
        let removed: Vec<f64> = self.views.iter().map(|view| view.mass_removed).collect();
        let (model, mask) = (of(Stage::Model), of(Stage::Mask));
        let highest = model.iter().chain(&mask).copied().fold(1.0, f64::max).ceil();
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
            2.0 * PANEL + 20.0
        );
        let entropies = [("model", "#888888", model), ("after the mask", "#0b62a4", mask)];
        panel(&mut out, 0.0, "entropy of the next token, nats", highest, &entropies);
        let masses = [("mass", "#b03a2e", removed)];
        panel(&mut out, PANEL, "probability that the mask took", 1.0, &masses);
        out.push_str("</svg>\n");
        out
    }
}

/// Returns the entropy after a stage.
fn entropy(view: &StepView, stage: Stage) -> f64 {
    let found = view.stages.iter().find(|s| s.stage == stage);
    found.map_or(0.0, |s| s.entropy)
}

fn note(view: &StepView) -> &'static str {
    match view {
        StepView { reason: Reason::Budget, .. } => "  by the budget",
        StepView { min_tokens_yielded: true, .. } => "  the least number of tokens yielded",
        StepView { argmax_masked: true, .. } => "  the most probable was illegal",
        _ => "",
    }
}

/// The width of a drawing, and the height of one of its panels.
const WIDTH: f64 = 760.0;
const PANEL: f64 = 190.0;

/// Writes one panel: its title, axes, and a line for each series with its name and colour.
fn panel(out: &mut String, top: f64, title: &str, highest: f64, series: &[(&str, &str, Vec<f64>)]) {
    let (left, right, low, high) = (50.0, WIDTH - 20.0, top + PANEL - 15.0, top + 35.0);
    let count = series.first().map_or(0, |(.., values)| values.len());
    let x = |step: usize| left + (right - left) * step as f64 / (count.max(2) - 1) as f64;
    let y = |value: f64| low - (low - high) * value / highest;
    let _ = writeln!(out, "<text x=\"{left}\" y=\"{}\">{title}</text>", top + 18.0);
    for part in 0..=2 {
        let value = highest * f64::from(part) / 2.0;
        let at = y(value);
        let _ = writeln!(
            out,
            "<path d=\"M{left} {at:.1}H{right}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            left - 6.0,
            at + 4.0
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{left}\" y=\"{0:.1}\">token 1</text>\
         <text x=\"{right}\" y=\"{0:.1}\" text-anchor=\"end\">{count}</text>",
        low + 15.0
    );
    for (number, (name, color, values)) in series.iter().enumerate() {
        let points: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(step, &value)| format!("{:.1},{:.1}", x(step), y(value)))
            .collect();
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\"/>\
             <text x=\"{:.1}\" y=\"{}\" fill=\"{color}\" text-anchor=\"end\">{name}</text>",
            points.join(" "),
            right - 120.0 * number as f64,
            top + 18.0
        );
    }
}
