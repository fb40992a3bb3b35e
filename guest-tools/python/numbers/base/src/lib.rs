//! The few names of numbers that RustPython uses.
pub mod num {
    pub mod basic {
        pub mod floats {
            pub trait PrimitiveFloat: Copy {
                fn is_negative_zero(self) -> bool;
            }
            impl PrimitiveFloat for f64 {
                fn is_negative_zero(self) -> bool {
                    self.to_bits() == (-0.0f64).to_bits()
                }
            }
        }
    }
    pub mod conversion {
        pub mod traits {
            use core::cmp::Ordering;
            pub trait RoundingInto<T> {
                fn rounding_into(self, mode: crate::rounding_modes::RoundingMode) -> (T, Ordering);
            }
        }
    }
}
pub mod rounding_modes {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum RoundingMode {
        Nearest,
    }
}
