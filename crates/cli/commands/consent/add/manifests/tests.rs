//! Tests of manifests of other hosts: the translation, and that it never requests more than the
//! source.

mod cases;
mod properties;
