//! The limits of a calculation.

use dashu_base::BitTest;
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::fail::{Fail, error};

/// Maximum number of decimal digits of an integer, a numerator or a denominator.
pub(crate) const MOST_DIGITS: usize = 100_000;

/// The same limit in bits, with log2(10) per digit.
pub(crate) const MOST_BITS: usize = 332_193;

/// Maximum number of digits of an inexact result.
pub(crate) const MOST_INEXACT_DIGITS: usize = 1_000;

/// Maximum length of an expression in bytes.
pub(crate) const MOST_BYTES: usize = 64 << 10;

/// Maximum nesting of parentheses, calls and powers.
pub(crate) const MOST_DEPTH: usize = 64;

/// Maximum work of a calculation, in products of two 32-bit words. It takes a few seconds; a call
/// may take 30 s.
const MOST_WORK: u64 = 3_000_000_000;

/// The work done in a calculation.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    spent: u64,
}

impl Budget {
    /// Adds the work on two numbers of these sizes in bits.
    pub(crate) fn spend(&mut self, bits: usize, other_bits: usize) -> Result<(), Fail> {
        let words = |bits: usize| bits as u64 / 32 + 1;
        self.spent = self.spent.saturating_add(words(bits).saturating_mul(words(other_bits)));
        match self.spent > MOST_WORK {
            true => error("the calculation takes too long; split it, or request fewer digits"),
            false => Ok(()),
        }
    }

    /// Adds the work of one operation on two exact numbers.
    pub(crate) fn spend_on(&mut self, one: &RBig, other: &RBig) -> Result<(), Fail> {
        // A common denominator is reduced after each operation.
        let bits = bits(one) + bits(other);
        self.spend(bits, bits)
    }

    /// Adds the work of a function with this many decimal digits.
    pub(crate) fn spend_on_function(&mut self, digits: usize) -> Result<(), Fail> {
        // A function takes at least a hundred steps, even with few digits.
        let bits = digits * 10 / 3 + 3_200;
        self.spend(bits, bits * 40)
    }
}

/// Returns the size of a number in bits.
pub(crate) fn bits(number: &RBig) -> usize {
    number.numerator().bit_len() + number.denominator().bit_len()
}

/// Returns the number unless it is too large.
pub(crate) fn checked(number: RBig) -> Result<RBig, Fail> {
    let is_large = |bits: usize| bits > MOST_BITS;
    if is_large(number.numerator().bit_len()) || is_large(number.denominator().bit_len()) {
        return too_large();
    }
    Ok(number)
}

/// Returns the error for a number with too many digits.
pub(crate) fn too_large<T>() -> Result<T, Fail> {
    error("a result has more than 100,000 digits, the limit")
}

/// Converts an integer that fits into a small type.
pub(crate) fn small(number: &IBig) -> Option<u32> {
    u32::try_from(number).ok()
}

/// Returns ten to a power.
pub(crate) fn power_of_ten(exponent: usize) -> UBig {
    UBig::from(10u8).pow(exponent)
}
