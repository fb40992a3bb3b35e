//! Numbers: exact, or an interval that contains the true value.

use dashu_base::{Abs, BitTest, Sign, UnsignedAbs};
use dashu_int::IBig;
use dashu_ratio::RBig;

use crate::budget::{self, Budget, MOST_BITS, MOST_DIGITS, checked};
use crate::fail::{Fail, error, undecided};
use crate::interval::{Interval, Precise};

/// A number.
#[derive(Clone, Debug)]
pub(crate) enum Number {
    /// A rational number.
    Exact(RBig),
    /// A number in an interval.
    Near(Interval),
}

/// The context of operations.
pub(crate) struct Context {
    /// Arithmetic with the digits of intervals.
    pub(crate) precise: Precise,
    /// The work done and its limit.
    pub(crate) budget: Budget,
}

use Number::{Exact, Near};

impl Number {
    pub(crate) fn integer(number: impl Into<IBig>) -> Self {
        Exact(RBig::from(number.into()))
    }

    /// Converts to an interval.
    pub(crate) fn near(&self, context: &mut Context) -> Result<Interval, Fail> {
        match self {
            Exact(number) => {
                context.budget.spend(budget::bits(number), budget::bits(number))?;
                Ok(context.precise.rational(number))
            }
            Near(interval) => Ok(interval.clone()),
        }
    }

    /// Returns the number if it is an integer.
    pub(crate) fn as_integer(&self) -> Option<&IBig> {
        match self {
            Exact(number) if number.is_int() => Some(number.numerator()),
            _ => None,
        }
    }

    pub(crate) fn negated(self) -> Self {
        match self {
            Exact(number) => Exact(-number),
            Near(interval) => Near(interval.negated()),
        }
    }

    pub(crate) fn absolute(self) -> Self {
        match self {
            Exact(number) => Exact(number.abs()),
            Near(interval) => Near(interval.absolute()),
        }
    }

    pub(crate) fn add(self, other: Self, context: &mut Context) -> Result<Self, Fail> {
        match (&self, &other) {
            (Exact(one), Exact(two)) => {
                context.budget.spend_on(one, two)?;
                checked(one + two).map(Exact)
            }
            _ => {
                let (one, two) = (self.near(context)?, other.near(context)?);
                Ok(Near(context.precise.add(&one, &two)))
            }
        }
    }

    pub(crate) fn subtract(self, other: Self, context: &mut Context) -> Result<Self, Fail> {
        self.add(other.negated(), context)
    }

    pub(crate) fn multiply(self, other: Self, context: &mut Context) -> Result<Self, Fail> {
        match (&self, &other) {
            (Exact(one), Exact(two)) => {
                context.budget.spend_on(one, two)?;
                checked(one * two).map(Exact)
            }
            // Zero times anything is zero.
            (Exact(zero), _) | (_, Exact(zero)) if zero.is_zero() => Ok(Self::integer(0)),
            _ => {
                let (one, two) = (self.near(context)?, other.near(context)?);
                context.budget.spend(context.precise.bits(), context.precise.bits() * 4)?;
                Ok(Near(context.precise.multiply(&one, &two)))
            }
        }
    }

    pub(crate) fn divide(self, other: Self, context: &mut Context) -> Result<Self, Fail> {
        match (&self, &other) {
            (_, Exact(zero)) if zero.is_zero() => error("division by zero"),
            (Exact(one), Exact(two)) => {
                context.budget.spend_on(one, two)?;
                checked(one / two).map(Exact)
            }
            _ => {
                let (one, two) = (self.near(context)?, other.near(context)?);
                context.budget.spend(context.precise.bits(), context.precise.bits() * 8)?;
                context.precise.divide(&one, &two).map(Near)
            }
        }
    }

    /// Returns the largest integer that is not larger than the number.
    pub(crate) fn floor(&self) -> Result<IBig, Fail> {
        match self {
            Exact(number) => Ok(number.floor()),
            Near(interval) => interval.floor(),
        }
    }

    /// The remainder with the sign of the divisor.
    pub(crate) fn modulo(self, other: Self, context: &mut Context) -> Result<Self, Fail> {
        let quotient = self.clone().divide(other.clone(), context)?.floor()?;
        let whole = other.multiply(Self::integer(quotient), context)?;
        self.subtract(whole, context)
    }

    pub(crate) fn power(self, exponent: Self, context: &mut Context) -> Result<Self, Fail> {
        // Anything to the power of zero is one.
        if matches!(&exponent, Exact(zero) if zero.is_zero()) {
            return Ok(Self::integer(1));
        }
        if let Exact(base) = &self {
            if let Some(exponent) = exponent.as_integer() {
                if let Some(power) = exact_power(base, exponent, context)? {
                    return Ok(Exact(power));
                }
            } else if let Exact(exponent) = &exponent
                && let Some(power) = exact_root_power(base, exponent, context)?
            {
                return Ok(Exact(power));
            }
            if base.is_zero() {
                return zero_power(&exponent, context);
            }
        }
        self.near_power(exponent, context)
    }

    /// Computes a power with the exponential function.
    fn near_power(self, exponent: Self, context: &mut Context) -> Result<Self, Fail> {
        let base = self.near(context)?;
        let (base, is_negative) = match (base.sign(), exponent.as_integer()) {
            (Some(Sign::Negative), Some(whole)) => {
                (base.negated(), whole.bit_len() > 0 && whole.bit(0))
            }
            (Some(Sign::Negative), None) => {
                return error(
                    "a negative number to the power of a fraction is not real; \
                     `root(-8, 3)` is an odd root",
                );
            }
            (Some(Sign::Positive), _) => (base, false),
            (None, _) => return undecided("the base of a power may be zero or negative"),
        };
        context.budget.spend_on_function(context.precise.digits())?;
        context.budget.spend_on_function(context.precise.digits())?;
        let exponent = exponent.near(context)?;
        let logarithm = context.precise.ln(&base)?;
        let product = context.precise.multiply(&logarithm, &exponent);
        let power = context.precise.exp(&product)?;
        Ok(Near(if is_negative { power.negated() } else { power }))
    }
}

fn zero_power(exponent: &Number, context: &mut Context) -> Result<Number, Fail> {
    match exponent.near(context)?.sign() {
        Some(Sign::Positive) => Ok(Number::integer(0)),
        Some(Sign::Negative) => error("division by zero: 0 to a negative power"),
        None => undecided("0 to a power that may be zero"),
    }
}

/// Computes an integer power. `None` if it has too many digits to be exact but is within the range
/// of results. The exponent is not zero.
fn exact_power(base: &RBig, exponent: &IBig, context: &mut Context) -> Result<Option<RBig>, Fail> {
    let is_negative = exponent.sign() == Sign::Negative;
    if base.is_zero() && is_negative {
        return error("division by zero: 0 to a negative power");
    }
    let is_one = base.denominator().is_one() && base.numerator().clone().abs() == IBig::ONE;
    if base.is_zero() || is_one {
        let is_itself = base.is_zero() || exponent.bit(0);
        return Ok(Some(if is_itself { base.clone() } else { RBig::ONE }));
    }
    let bits = base.numerator().bit_len().max(base.denominator().bit_len());
    let times = exponent.clone().abs();
    let fits = budget::small(&times)
        .and_then(|times| (bits - 1).max(1).checked_mul(times as usize))
        .filter(|bits| *bits <= MOST_BITS);
    if fits.is_none() {
        // Close to one, a power with many digits may be a small number.
        let log10 = digits_of_power(base, &times);
        return match log10 <= MOST_DIGITS as f64 {
            true => Ok(None),
            false => error(format!(
                "a power has about {} digits; the limit is 100,000",
                written_count(log10)
            )),
        };
    }
    let times = budget::small(&times).expect("it fits") as usize;
    context.budget.spend(bits * times, bits * times / 4)?;
    let (numerator, denominator) = (base.numerator().pow(times), base.denominator().pow(times));
    let power = match is_negative {
        false => RBig::from_parts(numerator, denominator),
        true => RBig::from_parts_signed(denominator.into(), numerator),
    };
    checked(power).map(Some)
}

/// Returns the approximate number of digits of a power before or after the point.
fn digits_of_power(base: &RBig, times: &IBig) -> f64 {
    let log2 = |number: &IBig| {
        // The highest 60 bits are precise enough.
        let shift = number.bit_len().saturating_sub(60);
        let head: IBig = number.clone().abs() >> shift;
        head.to_f64().value().log2() + shift as f64
    };
    let log = log2(base.numerator()) - log2(&IBig::from(base.denominator().clone()));
    (log * std::f64::consts::LOG10_2 * times.to_f64().value()).abs()
}

/// Formats a count for an error: `602,060` or `10^18`.
fn written_count(count: f64) -> String {
    match count {
        count if count < 1e9 => {
            let digits = format!("{count:.0}");
            let groups: Vec<&str> = digits
                .as_bytes()
                .rchunks(3)
                .rev()
                .map(|group| std::str::from_utf8(group).unwrap_or_default())
                .collect();
            groups.join(",")
        }
        count if count.is_finite() => format!("10^{:.0}", count.log10()),
        _ => "10^300 or more".to_owned(),
    }
}

/// Returns a power with a fractional exponent if it is rational: `4^(3/2)` is 8.
fn exact_root_power(
    base: &RBig,
    exponent: &RBig,
    context: &mut Context,
) -> Result<Option<RBig>, Fail> {
    let Ok(degree) = u16::try_from(exponent.denominator()) else { return Ok(None) };
    if base.numerator().sign() == Sign::Negative && !base.is_zero() {
        return Ok(None);
    }
    match exact_root(base, degree.into(), context)? {
        Some(root) => exact_power(&root, exponent.numerator(), context),
        None => Ok(None),
    }
}

/// Returns the root of a non-negative number if it is rational.
pub(crate) fn exact_root(
    number: &RBig,
    degree: usize,
    context: &mut Context,
) -> Result<Option<RBig>, Fail> {
    context.budget.spend_on(number, number)?;
    let numerator = number.numerator().clone().unsigned_abs();
    let (above, below) = (numerator.nth_root(degree), number.denominator().nth_root(degree));
    let is_root = above.pow(degree) == numerator && below.pow(degree) == *number.denominator();
    Ok(is_root.then(|| RBig::from_parts(above.into(), below)))
}
