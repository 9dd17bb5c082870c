//! How costs grow with the work: the size of the vocabulary, of the schema, of the output, and the number
//! of sequences. Prints a table and draws a panel for each; marks what grows faster than the work.
//!
//! `growth [--chart FILE.svg] TOKENIZER…`: the first tokenizer is the one for all but the first table.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use plotters::prelude::*;
use schemac::vocab::{LoadOptions, Loaded, load};
use schemac::{Compiler, Matcher, TokenId};

#[derive(Parser)]
struct Args {
    #[arg(required = true)]
    tokenizers: Vec<PathBuf>,
    /// Draws the panels to this SVG file.
    #[arg(long)]
    chart: Option<PathBuf>,
    /// Leaves the largest sizes out.
    #[arg(long)]
    quick: bool,
}

/// What one size cost.
#[derive(Clone, Copy)]
struct Cost {
    size: usize,
    /// Compiling, and the first mask after it, in µs.
    compile: f64,
    first: f64,
    /// A mask and a commit along the text, the first time and once all masks are known, in µs.
    cold: f64,
    warm: f64,
    /// The heap that the grammar takes after the text, and one sequence at its end, in kB.
    grammar: f64,
    sequence: f64,
}

struct Series {
    name: &'static str,
    unit: &'static str,
    costs: Vec<Cost>,
}

/// Bytes that are allocated now.
fn allocated() -> usize {
    // SAFETY: a call that only reads the allocator's statistics.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

fn micros(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

fn kb(from: usize) -> f64 {
    allocated().saturating_sub(from) as f64 / 1024.0
}

/// Measures one size: a schema, a text that matches it, and how many sequences write that text.
fn measure(
    loaded: &Loaded,
    size: usize,
    schema: &str,
    text: &str,
    sequences: usize,
) -> Option<Cost> {
    let tokens: Vec<TokenId> = loaded.encoder().encode(text).expect("a text");
    let compiler = Compiler::new(Arc::clone(loaded.vocabulary()));
    // Once for the tables of the vocabulary and the pages of memory.
    let _ = Matcher::new(compiler.compile_schema(r#"{"type":"object"}"#).ok()?).mask();
    let empty = allocated();
    let start = Instant::now();
    let automaton = match compiler.compile_schema(schema) {
        Ok(automaton) => automaton,
        Err(error) => {
            println!("| {size} | refused: {error} |");
            return None;
        }
    };
    let compile = micros(start);
    let start = Instant::now();
    let _ = Matcher::new(Arc::clone(&automaton)).mask().ok()?;
    let first = micros(start);
    let walk = |matchers: &mut [Matcher]| {
        let start = Instant::now();
        for &token in &tokens {
            for matcher in matchers.iter_mut() {
                let mask = matcher.mask().expect("a mask");
                assert!(mask.contains(token), "the text matches the schema");
                matcher.accept(token).expect("a legal token");
            }
        }
        micros(start) / (tokens.len() * matchers.len()) as f64
    };
    let new = || vec![Matcher::new(Arc::clone(&automaton)); sequences];
    let cold = walk(&mut new());
    let grammar = kb(empty);
    let before = allocated();
    let mut matchers = new();
    let warm = walk(&mut matchers);
    let sequence = kb(before) / sequences as f64;
    Some(Cost { size, compile, first, cold, warm, grammar, sequence })
}

fn powers(from: u32, to: u32, quick: bool) -> impl Iterator<Item = usize> {
    (from..=if quick { to.min(3) } else { to }).map(|power| 10_usize.pow(power))
}

fn all_series(loaded: &[Loaded], quick: bool) -> Vec<Series> {
    let first = &loaded[0];
    let mut all = Vec::new();
    let mut series = |name, unit, costs: Vec<Option<Cost>>| {
        all.push(Series { name, unit, costs: costs.into_iter().flatten().collect() });
    };
    let person = r#"{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},
        "tags":{"type":"array","items":{"type":"string"}}},"required":["name","age","tags"]}"#;
    let text = r#"{"name":"Ada Lovelace","age":36,"tags":["mathematics","first programmer"]}"#;
    let costs = loaded.iter().map(|l| measure(l, l.vocabulary().len(), person, text, 1)).collect();
    series("vocabulary", "ids", costs);

    let costs = powers(1, 4, quick).map(|n| {
        let members: Vec<String> =
            (0..n).map(|i| format!(r#""p{i}":{{"type":"integer"}}"#)).collect();
        let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, members.join(","));
        let text: Vec<String> = (0..n).map(|i| format!(r#""p{i}":{i}"#)).collect();
        measure(first, n, &schema, &format!("{{{}}}", text.join(",")), 1)
    });
    series("properties", "properties", costs.collect());

    let costs = powers(0, 3, quick).map(|n| {
        let mut schema = r#"{"type":"integer"}"#.to_owned();
        for _ in 0..n {
            schema =
                format!(r#"{{"type":"object","properties":{{"a":{schema}}},"required":["a"]}}"#);
        }
        let text = format!("{}1{}", r#"{"a":"#.repeat(n), "}".repeat(n));
        measure(first, n, &schema, &text, 1)
    });
    series("nesting", "levels", costs.collect());

    let costs = powers(1, 6, quick).map(|n| {
        let schema = format!(r#"{{"type":"string","maxLength":{n}}}"#);
        let text = format!("\"{}\"", &"The quick brown fox. ".repeat(200)[..n.min(4_000)]);
        measure(first, n, &schema, &text, 1)
    });
    series("maxLength", "characters", costs.collect());

    let costs = powers(1, 5, quick).map(|n| {
        let values: Vec<String> = (0..n).map(|i| format!("\"value {}\"", i * 7_919)).collect();
        let schema = format!(r#"{{"type":"array","items":{{"enum":[{}]}}}}"#, values.join(","));
        let text = format!(
            "[{}]",
            values.iter().step_by(n.div_ceil(20)).cloned().collect::<Vec<_>>().join(",")
        );
        measure(first, n, &schema, &text, 1)
    });
    series("enum", "values", costs.collect());

    let costs = powers(1, 5, quick).map(|n| {
        let text = format!("[{}]", vec!["12"; n / 2].join(","));
        measure(first, n, r#"{"type":"array","items":{"type":"integer"}}"#, &text, 1)
    });
    series("output", "tokens", costs.collect());

    let costs = powers(0, 3, quick).map(|n| measure(first, n, person, text, n));
    series("sequences", "sequences", costs.collect());
    all
}

/// The greatest share by which a cost may grow faster than the work before it is marked.
const SLACK: f64 = 1.3;

fn print(series: &Series) {
    println!(
        "\n| {} | compile µs | first mask µs | mask µs | mask, known, µs | grammar kB | sequence kB |",
        series.unit
    );
    println!("|---|---|---|---|---|---|---|");
    let mut before: Option<Cost> = None;
    for cost in &series.costs {
        let work = before.map_or(f64::INFINITY, |b| cost.size as f64 / b.size as f64);
        let cell = |of: fn(&Cost) -> f64| {
            // What takes less than this is noise.
            let growth = before.map_or(0.0, |b| of(cost) / of(&b).max(20.0));
            let mark = if growth > work * SLACK { " (!)" } else { "" };
            format!("{:.2}{mark}", of(cost))
        };
        println!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            cost.size,
            cell(|c| c.compile),
            cell(|c| c.first),
            cell(|c| c.cold),
            cell(|c| c.warm),
            cell(|c| c.grammar),
            cell(|c| c.sequence)
        );
        before = Some(*cost);
    }
}

/// Draws a panel for each series.
fn draw(path: &Path, all: &[Series]) -> Result<(), Box<dyn Error>> {
    type Column = (&'static str, RGBColor, fn(&Cost) -> f64);
    const COLUMNS: [Column; 4] = [
        ("compile and first mask, µs", RGBColor(0, 90, 181), |c| c.compile + c.first),
        ("mask, µs", RGBColor(220, 50, 32), |c| c.cold),
        ("mask, known, µs", RGBColor(26, 133, 102), |c| c.warm),
        ("grammar, kB", RGBColor(150, 90, 180), |c| c.grammar),
    ];
    let rows = all.len().div_ceil(3);
    let area = SVGBackend::new(path, (960, 260 * u32::try_from(rows)?)).into_drawing_area();
    area.fill(&WHITE)?;
    for (number, (panel, series)) in area.split_evenly((rows, 3)).iter().zip(all).enumerate() {
        let Some(last) = series.costs.last() else { continue };
        let least = series.costs.iter().map(|cost| cost.size).min().unwrap_or(1) as f64;
        let values = || series.costs.iter().flat_map(|c| COLUMNS.map(|(.., of)| of(c).max(0.1)));
        let most = values().fold(1.0, f64::max) * 2.0;
        let mut chart = ChartBuilder::on(panel)
            .caption(series.name, ("sans-serif", 15))
            .margin(8)
            .x_label_area_size(24)
            .y_label_area_size(52)
            .build_cartesian_2d(
                (least..(last.size as f64).max(least + 1.0)).log_scale(),
                (0.1..most).log_scale(),
            )?;
        chart.configure_mesh().x_labels(4).y_labels(6).light_line_style(WHITE).draw()?;
        for (name, colour, of) in COLUMNS {
            let points = series.costs.iter().map(|cost| (cost.size as f64, of(cost).max(0.1)));
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour));
        }
        if number == 0 {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperLeft)
                .background_style(WHITE.mix(0.8))
                .label_font(("sans-serif", 11))
                .draw()?;
        }
    }
    area.present()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let mut loaded = Vec::new();
    for path in &args.tokenizers {
        let start = Instant::now();
        let before = allocated();
        let vocabulary = load(path, &LoadOptions::default())?;
        println!(
            "{}: {} ids, loaded with its encoder in {:.0} ms, {:.1} MB",
            path.display(),
            vocabulary.vocabulary().len(),
            micros(start) / 1e3,
            kb(before) / 1024.0
        );
        loaded.push(vocabulary);
    }
    let all = all_series(&loaded, args.quick);
    all.iter().for_each(print);
    if let Some(path) = &args.chart {
        draw(path, &all)?;
    }
    Ok(())
}
