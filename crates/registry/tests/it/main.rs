//! Pulls, pushes and signatures against a registry on loopback.

mod attacks;
mod dialects;
mod keyless;
mod pulls;
mod signatures;
mod support;
