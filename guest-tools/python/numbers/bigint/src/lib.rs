//! Big integers under the name that RustPython 0.6 imports: those of `num-bigint`.
//!
//! `malachite-bigint` is LGPL-3.0-only. It copies the API of `num-bigint`, so that the
//! same calls compile with the original.

pub use num_bigint::{BigInt, BigUint, Sign, ToBigInt};
