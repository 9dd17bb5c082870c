//! Distributions of times as a drawing: how long the slowest share of masks takes.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use crate::tally::Times;

/// Colours that are told apart in print and by the colour-blind.
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 90, 181),
    RGBColor(220, 50, 32),
    RGBColor(26, 133, 102),
    RGBColor(150, 90, 180),
    RGBColor(120, 120, 120),
];

/// The right end of the axis of shares: one in so many powers of ten.
const NINES: f64 = 5.0;

/// Draws `curves` to an SVG file: shares of all times to the right, spread so that the slow tail can be
/// seen, and µs upwards.
pub(crate) fn draw(
    path: &Path,
    title: &str,
    curves: &[(String, Times)],
) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, (760, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let most = curves.iter().map(|(_, times)| times.quantile(1.0)).fold(1.0, f64::max);
    let least = curves.iter().map(|(_, times)| times.quantile(0.01)).fold(most, f64::min);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(38)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..NINES, (least.max(0.01)..most * 1.5).log_scale())?;
    chart
        .configure_mesh()
        .x_labels(6)
        .x_label_formatter(&|nines| match nines.round() as i32 {
            0 => "all".into(),
            n => format!("slowest 1 in {}", 10_u64.pow(n.unsigned_abs())),
        })
        .y_label_formatter(&|time| match *time {
            ..1.0 => format!("{time:.2} µs"),
            ..1e3 => format!("{time:.0} µs"),
            ..1e6 => format!("{:.0} ms", time / 1e3),
            _ => format!("{:.0} s", time / 1e6),
        })
        .label_style(("sans-serif", 12))
        .light_line_style(WHITE)
        .draw()?;
    for ((name, times), colour) in curves.iter().zip(COLOURS) {
        let points = (0..=100).map(|i| {
            let nines = f64::from(i) / 100.0 * NINES;
            (nines, times.quantile(1.0 - 10_f64.powf(-nines)).max(0.001))
        });
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.2))
        .label_font(("sans-serif", 13))
        .draw()?;
    area.present()?;
    Ok(())
}
