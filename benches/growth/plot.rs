//! Plots of curves.

use std::error::Error;
use std::path::Path;

use plotters::prelude::*;

use crate::series::{Family, Quantity, Series};

const SIZE: (u32, u32) = (1200, 480);
const FONT: &str = "sans-serif";

/// Colours of the curves, distinct also for the colour-blind.
///
/// Source: Okabe and Ito, "Color Universal Design", 2008.
const COLOURS: [RGBColor; 5] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
];

/// Draws a family: time on the left, memory on the right.
pub(crate) fn draw(family: &Family, path: &Path) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(SIZE.0 / 2);
    for (panel, quantity) in [left, right].iter().zip(Quantity::ALL) {
        draw_quantity(family, quantity, panel)?;
    }
    Ok(area.present()?)
}

/// Draws one quantity with two logarithmic axes. The grey line shows linear growth.
fn draw_quantity(
    family: &Family,
    quantity: Quantity,
    panel: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
) -> Result<(), Box<dyn Error>> {
    let points = |series: &Series| -> Vec<(f64, f64)> {
        // A logarithmic axis has no zero.
        let value = |point| quantity.of(point).max(0.01);
        series.points.iter().map(|point| (point.size as f64, value(point))).collect()
    };
    let all: Vec<_> = family.series.iter().flat_map(points).collect();
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let least = all.iter().map(of).fold(f64::INFINITY, f64::min);
        let most = all.iter().map(of).fold(0.0, f64::max);
        (least, most)
    };
    let (least_size, most_size) = ends(|point| point.0);
    let (least, most) = ends(|point| point.1);
    // Room for the curve names above the curves.
    let (floor, ceiling) = (least / 2.0, most * (most / least).powf(0.4).max(4.0));

    let what = match quantity {
        Quantity::Time => "time",
        Quantity::Memory => family.memory,
    };
    let mut chart = ChartBuilder::on(panel)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d((least_size..most_size).log_scale(), (floor..ceiling).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(family.size)
        .y_desc(format!("{what}, {}", quantity.unit()))
        .label_style((FONT, 14))
        .max_light_lines(0)
        .x_label_formatter(&|size| rounded(*size))
        .y_label_formatter(&|value| rounded(*value))
        .draw()?;

    let start = (most_size * floor / most).max(least_size);
    let line = [(start, most * start / most_size), (most_size, most)];
    chart.draw_series(LineSeries::new(line, BLACK.mix(0.3).stroke_width(2)))?;
    for (series, colour) in family.series.iter().zip(COLOURS) {
        let points = points(series);
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)).point_size(3))?
            .label(format!("{}: {:.2}", series.title, series.growth(quantity).far))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(3)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .label_font((FONT, 13))
        .draw()?;
    Ok(())
}

/// Formats a number as an axis label: `10k`.
fn rounded(number: f64) -> String {
    match number {
        1e9.. => format!("{}G", number / 1e9),
        1e6.. => format!("{}M", number / 1e6),
        1e3.. => format!("{}k", number / 1e3),
        _ => format!("{number}"),
    }
}
