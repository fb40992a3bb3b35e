//! Intervals that contain the true value of an inexact number.
//!
//! Each operation rounds to nearest at the precision of the calculation. The interval is then
//! widened by two units of the last digit on both sides, so that it still contains the true value.

use dashu_base::Sign;
use dashu_float::round::mode::HalfAway;
use dashu_float::{ConstCache, DBig, Repr};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::fail::{Fail, error, undecided};

/// Numbers from `low` to `high`.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    low: DBig,
    high: DBig,
}

/// Maximum natural logarithm of a result: that of 10 to the power of 100,000.
const MOST_EXPONENT: i32 = 230_258;

impl Interval {
    /// Returns both ends exactly.
    pub(crate) fn ends(&self) -> (RBig, RBig) {
        (exact(&self.low), exact(&self.high))
    }

    /// Returns the sign of all numbers in the interval. `None` if zero may be among them.
    pub(crate) fn sign(&self) -> Option<Sign> {
        let is_zero = |end: &DBig| end.repr().significand().is_zero();
        match (self.low.sign(), self.high.sign()) {
            _ if is_zero(&self.low) || is_zero(&self.high) => None,
            (Sign::Positive, Sign::Positive) => Some(Sign::Positive),
            (Sign::Negative, Sign::Negative) => Some(Sign::Negative),
            _ => None,
        }
    }

    pub(crate) fn negated(&self) -> Self {
        Self { low: -self.high.clone(), high: -self.low.clone() }
    }

    pub(crate) fn absolute(&self) -> Self {
        match self.sign() {
            Some(Sign::Positive) => self.clone(),
            Some(Sign::Negative) => self.negated(),
            None => {
                let negated = self.negated();
                let high = if self.high > negated.high { &self.high } else { &negated.high };
                Self {
                    low: DBig::ZERO.with_precision(high.precision()).value(),
                    high: high.clone(),
                }
            }
        }
    }

    pub(crate) fn floor(&self) -> Result<IBig, Fail> {
        let (low, high) = self.ends();
        let (low, high) = (low.floor(), high.floor());
        match low == high {
            true => Ok(low),
            false => undecided(format!(
                "cannot tell whether a whole number is {low} or {high}: that needs more digits \
                 than are calculated"
            )),
        }
    }

    /// Returns the minimum of both numbers, for all values in their intervals.
    pub(crate) fn least(&self, other: &Self) -> Self {
        let of = |one: &DBig, two: &DBig| if one < two { one.clone() } else { two.clone() };
        Self { low: of(&self.low, &other.low), high: of(&self.high, &other.high) }
    }
}

/// Arithmetic with this many digits.
pub(crate) struct Precise {
    digits: usize,
    // Digits of pi and logarithms, which most functions need.
    constants: ConstCache,
}

type Function = fn(
    &dashu_float::Context<HalfAway>,
    &Repr<10>,
    Option<&mut ConstCache>,
) -> Result<
    dashu_base::Approximation<DBig, dashu_float::round::Rounding>,
    dashu_float::FpError,
>;

impl Precise {
    pub(crate) fn new(digits: usize) -> Self {
        Self { digits, constants: ConstCache::new() }
    }

    pub(crate) fn digits(&self) -> usize {
        self.digits
    }

    pub(crate) fn bits(&self) -> usize {
        self.digits * 10 / 3
    }

    /// Returns the interval around a rational number.
    pub(crate) fn rational(&self, number: &RBig) -> Interval {
        let rounded = |whole: &IBig| DBig::from(whole.clone()).with_precision(self.digits).value();
        let quotient =
            rounded(number.numerator()) / rounded(&IBig::from(number.denominator().clone()));
        self.around(quotient.clone(), quotient)
    }

    /// Widens an interval by the maximum rounding error of its ends.
    fn around(&self, low: DBig, high: DBig) -> Interval {
        let margin = |end: &DBig| match end.repr().significand().is_zero() {
            // Only an exact zero is rounded to zero.
            true => DBig::ZERO,
            false => end.ulp() * DBig::from(2),
        };
        // An exact value of a function, such as exp(0), has no precision.
        let fixed = |end: DBig| end.with_precision(self.digits).value();
        let (low, high) = (fixed(low), fixed(high));
        let (below, above) = (margin(&low), margin(&high));
        Interval { low: fixed(&low - below), high: fixed(&high + above) }
    }

    pub(crate) fn add(&self, one: &Interval, two: &Interval) -> Interval {
        self.around(&one.low + &two.low, &one.high + &two.high)
    }

    pub(crate) fn multiply(&self, one: &Interval, two: &Interval) -> Interval {
        let products = [
            &one.low * &two.low,
            &one.low * &two.high,
            &one.high * &two.low,
            &one.high * &two.high,
        ];
        self.hull(products)
    }

    fn hull(&self, values: [DBig; 4]) -> Interval {
        let low = values.iter().min().cloned().unwrap_or(DBig::ZERO);
        let high = values.into_iter().max().unwrap_or(DBig::ZERO);
        self.around(low, high)
    }

    pub(crate) fn divide(&self, one: &Interval, two: &Interval) -> Result<Interval, Fail> {
        if two.sign().is_none() {
            return undecided("cannot tell whether a divisor is zero");
        }
        Ok(self.hull([
            &one.low / &two.low,
            &one.low / &two.high,
            &one.high / &two.low,
            &one.high / &two.high,
        ]))
    }

    /// Evaluates an increasing function at both ends.
    fn rising(&mut self, of: &Interval, function: Function) -> Result<Interval, Fail> {
        let low = self.at(&of.low, function)?;
        let high = self.at(&of.high, function)?;
        Ok(self.around(low, high))
    }

    fn at(&mut self, argument: &DBig, function: Function) -> Result<DBig, Fail> {
        let context = dashu_float::Context::<HalfAway>::new(self.digits);
        match function(&context, argument.repr(), Some(&mut self.constants)) {
            Ok(value) => Ok(value.value()),
            Err(failure) => error(format!("a function has no value at its argument: {failure}")),
        }
    }

    pub(crate) fn pi(&mut self) -> Interval {
        let context = dashu_float::Context::<HalfAway>::new(self.digits);
        let pi = context.pi::<10>(Some(&mut self.constants)).value();
        self.around(pi.clone(), pi)
    }

    pub(crate) fn sqrt(&mut self, of: &Interval) -> Result<Interval, Fail> {
        let of = self.not_negative(of, "the square root of a negative number is not real")?;
        self.rising(&of, |context, value, _| context.sqrt(value))
    }

    pub(crate) fn ln(&mut self, of: &Interval) -> Result<Interval, Fail> {
        match of.sign() {
            Some(Sign::Positive) => {
                self.rising(of, |context, value, cache| context.ln(value, cache))
            }
            Some(Sign::Negative) => error("the logarithm of a negative number is not real"),
            None => undecided("the logarithm of a value that may be zero"),
        }
    }

    pub(crate) fn exp(&mut self, of: &Interval) -> Result<Interval, Fail> {
        if of.high > DBig::from(MOST_EXPONENT) {
            return crate::budget::too_large();
        }
        if of.low < DBig::from(-MOST_EXPONENT) {
            return error("a result is smaller than 10^-100,000, the limit");
        }
        self.rising(of, |context, value, cache| context.exp(value, cache))
    }

    /// Sine and cosine change by at most the change of their argument.
    pub(crate) fn sin(&mut self, of: &Interval) -> Result<Interval, Fail> {
        self.wave(of, |context, value, cache| context.sin(value, cache))
    }

    pub(crate) fn cos(&mut self, of: &Interval) -> Result<Interval, Fail> {
        self.wave(of, |context, value, cache| context.cos(value, cache))
    }

    fn wave(&mut self, of: &Interval, function: Function) -> Result<Interval, Fail> {
        let magnitude = |end: &DBig| end.repr().exponent() + end.digits() as isize;
        if magnitude(&of.low).max(magnitude(&of.high)) > 1_000 {
            return error("an angle has more than 1,000 digits before the point");
        }
        let width = &of.high - &of.low;
        let value = self.at(&of.low, function)?;
        let one = DBig::ONE.with_precision(self.digits).value();
        let Interval { low, high } = self.around(&value - &width, &value + &width);
        Ok(Interval { low: low.max(-one.clone()), high: high.min(one) })
    }

    pub(crate) fn atan(&mut self, of: &Interval) -> Result<Interval, Fail> {
        self.rising(of, |context, value, cache| context.atan(value, cache))
    }

    pub(crate) fn asin(&mut self, of: &Interval) -> Result<Interval, Fail> {
        let one = DBig::ONE.with_precision(self.digits).value();
        if of.low > one || of.high < -one.clone() {
            return error("the argument of an inverse sine or cosine must be from -1 to 1");
        }
        // Only rounding can exceed the bounds.
        let of = Interval { low: of.low.clone().max(-one.clone()), high: of.high.clone().min(one) };
        self.rising(&of, |context, value, cache| context.asin(value, cache))
    }

    pub(crate) fn sinh(&mut self, of: &Interval) -> Result<Interval, Fail> {
        self.exp(&of.absolute())?;
        self.rising(of, |context, value, cache| context.sinh(value, cache))
    }

    pub(crate) fn tanh(&mut self, of: &Interval) -> Result<Interval, Fail> {
        self.exp(&of.absolute())?;
        self.rising(of, |context, value, cache| context.tanh(value, cache))
    }

    fn not_negative(&self, of: &Interval, message: &str) -> Result<Interval, Fail> {
        let zero = DBig::ZERO.with_precision(self.digits).value();
        match of.sign() {
            Some(Sign::Negative) => error(message),
            Some(Sign::Positive) => Ok(of.clone()),
            None => Ok(Interval { low: zero, high: of.high.clone() }),
        }
    }
}

/// Returns the exact value of a decimal number.
fn exact(number: &DBig) -> RBig {
    let (significand, exponent) = (number.repr().significand(), number.repr().exponent());
    let scale = crate::budget::power_of_ten(exponent.unsigned_abs());
    match exponent < 0 {
        true => RBig::from_parts(significand.clone(), scale),
        false => RBig::from_parts(significand * IBig::from(scale), UBig::ONE),
    }
}
