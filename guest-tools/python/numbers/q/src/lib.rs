use core::cmp::Ordering;
use malachite_base::{num::conversion::traits::RoundingInto, rounding_modes::RoundingMode};
use num_bigint::{BigInt, BigUint, Sign};
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};

pub struct Rational {
    negative: bool,
    numerator: BigUint,
    denominator: BigUint,
}

impl Rational {
    pub fn from_integers_ref(numerator: &BigInt, denominator: &BigInt) -> Self {
        assert!(!denominator.is_zero(), "division by zero");
        let negative = numerator.is_negative() != denominator.is_negative() && !numerator.is_zero();
        let (n, d) = (numerator.magnitude(), denominator.magnitude());
        let gcd = n.gcd(d);
        Self { negative, numerator: n / &gcd, denominator: d / gcd }
    }
    pub fn into_numerator_and_denominator(self) -> (BigUint, BigUint) {
        (self.numerator, self.denominator)
    }
}

impl TryFrom<f64> for Rational {
    type Error = ();
    fn try_from(value: f64) -> Result<Self, ()> {
        if !value.is_finite() {
            return Err(());
        }
        let bits = value.abs().to_bits();
        let exponent = (bits >> 52) as i64;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, power) = match exponent {
            0 => (fraction, -1074),
            e => (fraction | 1 << 52, e - 1075),
        };
        let mantissa = BigUint::from(mantissa);
        let (n, d) = match power {
            p if p >= 0 => (mantissa << p as usize, BigUint::one()),
            p => (mantissa, BigUint::one() << (-p) as usize),
        };
        let gcd = n.gcd(&d);
        Ok(Self { negative: value < 0.0, numerator: n / &gcd, denominator: d / gcd })
    }
}

impl RoundingInto<f64> for Rational {
    fn rounding_into(self, _: RoundingMode) -> (f64, Ordering) {
        let Self { negative, numerator, denominator } = self;
        let sign = |value: f64, order: Ordering| match negative {
            true => (-value, order.reverse()),
            false => (value, order),
        };
        if numerator.is_zero() {
            return (0.0, Ordering::Equal);
        }
        // The quotient with 55 bits or more, and whether something is left.
        let shift = 55 - (numerator.bits() as i64 - denominator.bits() as i64);
        // Below the least exponent fewer bits are kept.
        let shift = shift.min(1074 + 2);
        let (quotient, rest) = match shift {
            s if s >= 0 => (numerator.clone() << s as u64).div_rem(&denominator),
            s => numerator.div_rem(&(denominator.clone() << (-s) as u64)),
        };
        let mut q = quotient.to_u64().expect("at most 56 bits");
        let mut sticky = !rest.is_zero();
        let bits = 64 - q.leading_zeros() as i64;
        // Bits to drop: to 53, and no lower than 2^-1074.
        let drop = (bits - 53).max(shift - 1074).max(0);
        let mut power = -shift;
        let mut order = if sticky { Ordering::Less } else { Ordering::Equal };
        if drop > 0 {
            let (half, mask) = (1u64 << (drop - 1), (1u64 << drop) - 1);
            let low = q & mask;
            sticky |= low & (half - 1) != 0;
            let inexact = low != 0 || order == Ordering::Less;
            let up = low & half != 0 && (sticky || q >> drop & 1 == 1);
            q = (q >> drop) + u64::from(up);
            power += drop;
            order = match (inexact, up) {
                (false, _) => Ordering::Equal,
                (true, true) => Ordering::Greater,
                (true, false) => Ordering::Less,
            };
        }
        let bits = 64 - q.leading_zeros() as i64;
        if bits + power > 1024 {
            return sign(f64::MAX, Ordering::Less);
        }
        // Exact: q has at most 53 bits, and the power is not below -1074.
        let value = if power >= -1022 {
            q as f64 * pow2(power)
        } else {
            q as f64 * pow2(power + 100) * pow2(-100)
        };
        sign(value, order)
    }
}

fn pow2(power: i64) -> f64 {
    if power > 1023 {
        return f64::from_bits(2046 << 52) * pow2(power - 1023);
    }
    if power >= -1022 {
        f64::from_bits(((power + 1023) as u64) << 52)
    } else {
        f64::from_bits(1 << (power + 1074))
    }
}
#[allow(unused)]
fn _s(_: Sign) {}
