//! What was measured of growing sizes, and how it grows.

use std::time::Duration;

/// One thing that grows, and the ways in which it was measured.
pub(crate) struct Family {
    /// As its files are called.
    pub(crate) name: &'static str,
    /// What is counted on the horizontal axis.
    pub(crate) size: &'static str,
    /// What the memory is.
    pub(crate) memory: &'static str,
    /// Why the sizes end where they do.
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

/// What of a point is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Time,
    Memory,
}

impl Quantity {
    pub(crate) const ALL: [Self; 2] = [Self::Time, Self::Memory];

    /// How much of it there is, in its unit.
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

/// How steep a curve is that is no steeper than a line, as far as can be seen from
/// measurements that differ by a tenth from one run to the next.
const LINEAR: f64 = 1.1;

/// How many points the far end of a curve has.
const FAR: usize = 3;

/// The exponents of a curve: of the power of the size that it grows with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// Fitted to all points. What there is at any size flattens it.
    pub(crate) overall: f64,
    /// Fitted to the last few points, where the size tells.
    pub(crate) far: f64,
}

impl Growth {
    /// Whether it is worse than a line.
    pub(crate) fn is_worse(self) -> bool {
        self.far > LINEAR
    }
}

impl Series {
    /// How a quantity grows.
    pub(crate) fn growth(&self, quantity: Quantity) -> Growth {
        let points: Vec<_> =
            self.points.iter().map(|point| (point.size as f64, quantity.of(point))).collect();
        Growth {
            overall: exponent(&points),
            far: exponent(&points[points.len().saturating_sub(FAR)..]),
        }
    }
}

/// The slope of the straight line through points whose logarithms are taken, by
/// least squares.
fn exponent(points: &[(f64, f64)]) -> f64 {
    let logarithms: Vec<_> = points
        .iter()
        // Memory that did not grow at all has no logarithm.
        .map(|(size, value)| (size.ln(), value.max(1e-3).ln()))
        .collect();
    let count = logarithms.len() as f64;
    let mean_x = logarithms.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logarithms.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = logarithms.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logarithms.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    covariance / variance
}
