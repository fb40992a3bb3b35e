pub use num_bigint::*;
