//! The fractions that RustPython 0.6 uses: one for the true division of integers, one for
//! the ratio of a float.
//!
//! `malachite-q` is LGPL-3.0-only. This crate shares its names and no code.

use core::cmp::Ordering;

use malachite_base::{num::conversion::traits::RoundingInto, rounding_modes::RoundingMode};
use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

/// Bits of the mantissa of a float.
const MANTISSA: i64 = 53;
/// The smallest positive float is two to the power of this number.
const SMALLEST: i64 = -1074;

/// A fraction, which need not be in its lowest terms.
#[derive(Clone, Debug)]
pub struct Rational {
    negative: bool,
    numerator: BigUint,
    denominator: BigUint,
}

/// The error of a fraction from a float that is infinite or not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite;

impl Rational {
    /// Builds `numerator / denominator`. As in Python, `0 / -1` is negative.
    ///
    /// # Panics
    ///
    /// If the denominator is zero, which RustPython excludes before.
    #[must_use]
    pub fn from_integers_ref(numerator: &BigInt, denominator: &BigInt) -> Self {
        assert!(!denominator.is_zero(), "division by zero");
        Self {
            negative: numerator.is_negative() != denominator.is_negative(),
            numerator: numerator.magnitude().clone(),
            denominator: denominator.magnitude().clone(),
        }
    }

    /// Returns the numerator and the denominator, without the sign.
    #[must_use]
    pub fn into_numerator_and_denominator(self) -> (BigUint, BigUint) {
        (self.numerator, self.denominator)
    }
}

impl TryFrom<f64> for Rational {
    type Error = NotFinite;

    /// Builds the fraction that equals `value`, in its lowest terms.
    fn try_from(value: f64) -> Result<Self, NotFinite> {
        if !value.is_finite() {
            return Err(NotFinite);
        }
        let bits = value.abs().to_bits();
        let fraction = bits & ((1 << (MANTISSA - 1)) - 1);
        // `value` is `mantissa` times two to the power of `exponent`.
        let (mantissa, exponent) = match bits >> (MANTISSA - 1) {
            0 => (fraction, SMALLEST),
            biased => (fraction | 1 << (MANTISSA - 1), SMALLEST - 1 + biased.cast_signed()),
        };
        let even = match mantissa {
            0 => -exponent,
            _ => i64::from(mantissa.trailing_zeros()).min((-exponent).max(0)),
        };
        let mantissa = BigUint::from(mantissa) >> even;
        let exponent = exponent + even;
        let (numerator, denominator) = if exponent < 0 {
            (mantissa, BigUint::one() << -exponent)
        } else {
            (mantissa << exponent, BigUint::one())
        };
        Ok(Self { negative: value.is_sign_negative(), numerator, denominator })
    }
}

impl RoundingInto<f64> for Rational {
    /// Rounds to the nearest float as Python's `/` does.
    ///
    /// A value out of range gives the outermost float, with [`Ordering::Less`] for a positive
    /// and [`Ordering::Greater`] for a negative value.
    fn rounding_into(self, RoundingMode::Nearest: RoundingMode) -> (f64, Ordering) {
        let (value, order) = match magnitude(&self.numerator, &self.denominator) {
            value if value.is_finite() => (value, Ordering::Equal),
            _ => (f64::MAX, Ordering::Less),
        };
        if self.negative { (-value, order.reverse()) } else { (value, order) }
    }
}

/// Rounds `numerator / denominator` to the nearest float, infinity if it is too large.
fn magnitude(numerator: &BigUint, denominator: &BigUint) -> f64 {
    if numerator.is_zero() {
        return 0.0;
    }
    // The quotient has this number of bits before its point, or one more.
    let bits = numerator.bits().cast_signed() - denominator.bits().cast_signed();
    if bits > 1024 {
        return f64::INFINITY;
    }
    // The quotient is scaled to two or three bits more than a mantissa has, and at most to two
    // bits below the smallest float.
    let least = SMALLEST - 2;
    let scale = (bits - MANTISSA - 2).max(least);
    let (quotient, rest) = if scale < 0 {
        (numerator << -scale).div_rem(denominator)
    } else {
        numerator.div_rem(&(denominator << scale))
    };
    // The last bit is set if anything was cut off: that decides ties.
    let quotient = quotient.to_u64().expect("at most 56 bits") | u64::from(!rest.is_zero());
    if scale == least && quotient >> (MANTISSA + 2) == 0 {
        // In this range the bits of a float are its multiple of the smallest one.
        let up = quotient & 0b111 == 0b110 || quotient & 0b11 == 0b11;
        return f64::from_bits((quotient >> 2) + u64::from(up));
    }
    // Rounded once, by the conversion; both products are exact or infinite.
    let half = scale / 2;
    #[expect(clippy::cast_precision_loss, reason = "rounds to the nearest float")]
    let rounded = quotient as f64;
    rounded * power_of_two(half) * power_of_two(scale - half)
}

/// Returns two to the power of `exponent`, for exponents of normal floats.
fn power_of_two(exponent: i64) -> f64 {
    f64::from_bits((exponent + 1023).cast_unsigned() << (MANTISSA - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_that_are_not_finite_have_no_ratio() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Rational::try_from(value).unwrap_err(), NotFinite);
        }
    }

    #[test]
    fn values_out_of_range_have_an_order() {
        let large = BigInt::one() << 1024;
        let rounded = |numerator: &BigInt| {
            Rational::from_integers_ref(numerator, &BigInt::one())
                .rounding_into(RoundingMode::Nearest)
        };
        assert_eq!(rounded(&large), (f64::MAX, Ordering::Less));
        assert_eq!(rounded(&-large), (f64::MIN, Ordering::Greater));
    }
}
