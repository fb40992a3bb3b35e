//! Tools in OCI registries: references, pulls, pushes, signatures and indexes.
//!
//! A [`Web`] sends requests through `kitbag-http`, each with grants for exactly one registry. A
//! [`Registry`] speaks the distribution protocol with it. Nothing is taken on trust: every content
//! is compared with its digest while it arrives, and every size has a bound.
//!
//! The crate reads no environment and no configuration. Functions block the calling thread.

mod artifact;
mod credentials;
mod digest;
mod error;
mod image;
mod index;
mod manifest;
mod package;
mod provider;
mod push;
mod reference;
mod registry;
mod signature;
mod signing;
mod token;
mod web;

pub use artifact::{Artifact, COMPONENT_TYPE, NamedFile, WASM_CONFIG_TYPE};
pub use credentials::{Credentials, DockerConfig};
pub use digest::{Sha256Digest, Sha256DigestError};
pub use error::RegistryError;
pub use index::{INDEX_TYPE, Index, IndexEntry};
pub use manifest::Pulled;
pub use package::{PackageName, PackageRegistries, PackageSource};
pub use push::{NewArtifact, NewLayer};
pub use reference::{OciReference, Reference, ReferenceError, UrlReference};
pub use registry::{Access, Registry};
pub use signature::{BUNDLE_TYPE, Signature, Signer, TrustRoot, verify};
pub use signing::SigningKey;
pub use web::Web;
