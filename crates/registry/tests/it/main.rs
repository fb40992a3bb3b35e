//! Pulls, pushes and signatures against a registry on loopback.

mod attacks;
mod pulls;
mod signatures;
mod support;
