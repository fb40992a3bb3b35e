//! The three names of `malachite-base` that RustPython 0.6 uses.
//!
//! `malachite-base` is LGPL-3.0-only. This crate shares its paths and no code.

/// Numbers.
pub mod num {
    /// Primitive numbers.
    pub mod basic {
        /// Floats.
        pub mod floats {
            /// Tests that `f64` lacks.
            pub trait PrimitiveFloat: Copy {
                /// Returns whether this is `-0.0`.
                fn is_negative_zero(self) -> bool;
            }

            impl PrimitiveFloat for f64 {
                fn is_negative_zero(self) -> bool {
                    self == 0.0 && self.is_sign_negative()
                }
            }
        }
    }

    /// Conversions between numbers.
    pub mod conversion {
        /// Traits of conversions.
        pub mod traits {
            use core::cmp::Ordering;

            use crate::rounding_modes::RoundingMode;

            /// Conversion to a type that cannot represent every value.
            pub trait RoundingInto<T> {
                /// Rounds to a `T`.
                ///
                /// The ordering is [`Ordering::Equal`] unless the value is out of range.
                fn rounding_into(self, mode: RoundingMode) -> (T, Ordering);
            }
        }
    }
}

/// Ways to round.
pub mod rounding_modes {
    /// How a value that is between two results is rounded.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RoundingMode {
        /// To the nearer result, and to the even one if both are equally near.
        Nearest,
    }
}

#[cfg(test)]
mod tests {
    use crate::num::basic::floats::PrimitiveFloat;

    #[test]
    fn only_minus_zero_is_negative_zero() {
        assert!((-0.0).is_negative_zero());
        for value in [0.0, 1.0, -1.0, f64::NAN, -f64::NAN, -f64::MIN_POSITIVE] {
            assert!(!value.is_negative_zero(), "{value}");
        }
    }
}
