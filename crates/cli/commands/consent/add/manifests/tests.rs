//! Manifests of other hosts: what each is translated to, and that it is never more than its
//! source says.

mod cases;
mod properties;
