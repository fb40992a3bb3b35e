//! `hash_text`.

use std::io::Read;

use data_encoding::HEXLOWER;
use digest::{Digest, Update};
use kitbag_sdk::{Call, ErrorInfo};
use kitbag_workspace::explain;
use serde::Deserialize;

use crate::input::{Chosen, Source, open};

/// The algorithms, as callers name them.
pub(crate) const NAMES: [&str; 8] =
    ["sha256", "sha512", "sha384", "sha1", "md5", "sha3-256", "blake3", "crc32"];

/// The number of bytes that are read from a file at once.
const CHUNK_BYTES: usize = 64 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    text: Option<String>,
    path: Option<String>,
    #[serde(default = "sha256")]
    algorithm: String,
}

fn sha256() -> String {
    "sha256".into()
}

/// A hash in progress.
enum Hasher {
    Sha256(sha2::Sha256),
    Sha512(sha2::Sha512),
    Sha384(sha2::Sha384),
    Sha1(sha1::Sha1),
    Md5(md5::Md5),
    Sha3(sha3::Sha3_256),
    Blake3(Box<blake3::Hasher>),
    Crc32(crc32fast::Hasher),
}

impl Hasher {
    fn new(name: &str) -> Option<Self> {
        Some(match name {
            "sha256" => Self::Sha256(Digest::new()),
            "sha512" => Self::Sha512(Digest::new()),
            "sha384" => Self::Sha384(Digest::new()),
            "sha1" => Self::Sha1(Digest::new()),
            "md5" => Self::Md5(Digest::new()),
            "sha3-256" => Self::Sha3(Digest::new()),
            "blake3" => Self::Blake3(Box::default()),
            "crc32" => Self::Crc32(crc32fast::Hasher::new()),
            _ => return None,
        })
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha256(hasher) => Update::update(hasher, bytes),
            Self::Sha512(hasher) => Update::update(hasher, bytes),
            Self::Sha384(hasher) => Update::update(hasher, bytes),
            Self::Sha1(hasher) => Update::update(hasher, bytes),
            Self::Md5(hasher) => Update::update(hasher, bytes),
            Self::Sha3(hasher) => Update::update(hasher, bytes),
            Self::Blake3(hasher) => {
                hasher.update(bytes);
            }
            Self::Crc32(hasher) => hasher.update(bytes),
        }
    }

    fn finish(self) -> String {
        match self {
            Self::Sha256(hasher) => HEXLOWER.encode(&hasher.finalize()),
            Self::Sha512(hasher) => HEXLOWER.encode(&hasher.finalize()),
            Self::Sha384(hasher) => HEXLOWER.encode(&hasher.finalize()),
            Self::Sha1(hasher) => HEXLOWER.encode(&hasher.finalize()),
            Self::Md5(hasher) => HEXLOWER.encode(&hasher.finalize()),
            Self::Sha3(hasher) => HEXLOWER.encode(&hasher.finalize()),
            Self::Blake3(hasher) => HEXLOWER.encode(hasher.finalize().as_bytes()),
            Self::Crc32(hasher) => format!("{:08x}", hasher.finalize()),
        }
    }
}

/// Hashes the bytes of a file, or of a string in UTF-8, and returns the hash in hex.
pub(crate) fn hash_text(call: &Call, arguments: Arguments) -> Result<String, ErrorInfo> {
    let Arguments { text, path, algorithm } = arguments;
    let mut hasher = Hasher::new(&algorithm).ok_or_else(|| {
        ErrorInfo::new(format!(
            "algorithm `{}` is unknown; known are {}",
            kitbag_workspace::shown(&algorithm),
            NAMES.join(", ")
        ))
    })?;
    match Source::new(text, path).choose(call, ("text", "path"))? {
        Chosen::Text(text) => hasher.update(text.as_bytes()),
        Chosen::File(location) => {
            let mut file = open(&location)?;
            let mut chunk = vec![0; CHUNK_BYTES];
            loop {
                let read =
                    file.read(&mut chunk).map_err(|error| explain(&location, "read", &error))?;
                if read == 0 {
                    break;
                }
                hasher.update(&chunk[..read]);
            }
        }
    }
    Ok(hasher.finish())
}
