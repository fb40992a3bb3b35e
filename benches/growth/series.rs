//! Measurements of growing sizes, and their growth.

use std::time::Duration;

/// One quantity that grows, and the ways in which it was measured.
pub(crate) struct Family {
    /// The name of its files.
    pub(crate) name: &'static str,
    /// The quantity on the horizontal axis.
    pub(crate) size: &'static str,
    /// The kind of memory that was measured.
    pub(crate) memory: &'static str,
    /// The reason for the largest size.
    pub(crate) end: &'static str,
    pub(crate) series: Vec<Series>,
}

/// One way to measure: time and memory for each size.
pub(crate) struct Series {
    pub(crate) title: &'static str,
    pub(crate) points: Vec<Point>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Point {
    pub(crate) size: usize,
    pub(crate) time: Duration,
    pub(crate) memory_kib: u64,
}

/// The quantity of a point that is plotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Time,
    Memory,
}

impl Quantity {
    pub(crate) const ALL: [Self; 2] = [Self::Time, Self::Memory];

    /// The value, in the unit of the quantity.
    pub(crate) fn of(self, point: &Point) -> f64 {
        match self {
            Self::Time => point.time.as_secs_f64() * 1e3,
            Self::Memory => point.memory_kib as f64 / 1024.0,
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Self::Time => "ms",
            Self::Memory => "MiB",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Memory => "memory",
        }
    }
}

/// Largest exponent of a curve that is regarded as linear, given measurements that vary by a tenth
/// between runs.
const LINEAR: f64 = 1.1;

/// Number of points at the far end of a curve.
const FAR: usize = 3;

/// The exponents of a curve: the powers of the size that it grows with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// Fitted to all points. A fixed cost at every size flattens it.
    pub(crate) overall: f64,
    /// Fitted to the last few points, where the size dominates.
    pub(crate) far: f64,
}

impl Growth {
    /// Returns true if the curve is worse than linear.
    pub(crate) fn is_worse(self) -> bool {
        self.far > LINEAR
    }
}

impl Series {
    /// Returns the growth of a quantity.
    pub(crate) fn growth(&self, quantity: Quantity) -> Growth {
        let points: Vec<_> =
            self.points.iter().map(|point| (point.size as f64, quantity.of(point))).collect();
        Growth {
            overall: exponent(&points),
            far: exponent(&points[points.len().saturating_sub(FAR)..]),
        }
    }
}

/// Returns the slope of the straight line through the logarithms of the points, by least squares.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logarithms: Vec<_> = points
        .iter()
        // Memory that did not grow has no logarithm.
        .map(|(size, value)| (size.ln(), value.max(1e-3).ln()))
        .collect();
    let count = logarithms.len() as f64;
    let mean_x = logarithms.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logarithms.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = logarithms.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logarithms.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    covariance / variance
}
