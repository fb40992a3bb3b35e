//! Files for content that a tool emitted in addition to its text.
//!
//! The tool chooses only the name of a file. The file is written atomically in the directory that
//! the user named, and replaces no other file. Its name is never a protected name or one that looks
//! like a secret, and links in the workspace are not followed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kitbag::base::text::shown;
use kitbag::contract::ResourceBody;
use kitbag::{Config, Content};
use kitbag_fs_guard::{ProtectedNames, SecretNames, is_guarded};

use crate::error::CliError;
use crate::files::links::{in_workspace, refuse_links};
use crate::files::new_file;

/// Maximum length of a name from a URI in bytes. File systems allow 255, including the number and
/// the extension.
const NAME_BYTES: usize = 120;

/// Maximum number that is tried if files of a name exist.
const NUMBERS: u32 = 10_000;

pub(crate) struct Saved {
    directory: PathBuf,
    directory_name: Option<String>,
    protected: ProtectedNames,
    secrets: SecretNames,
}

impl Saved {
    /// Creates the directory if missing, and checks that files can be written there: otherwise an
    /// expensive call could fail at its end.
    pub(crate) fn open(directory: &Path, config: &Config) -> Result<Self, CliError> {
        let failed = |source| CliError::Save { path: directory.display().to_string(), source };
        let (protected, secrets) = (ProtectedNames::default(), config.guard().secrets().clone());
        let root = &config.root.value;
        refuse_links(root, directory)?;
        if let Some((root, below)) = in_workspace(root, directory) {
            let below = below.to_string_lossy();
            let is_guarded = below.split('/').any(is_guarded);
            if is_guarded || protected.are_on(&root, &below) || secrets.are_on(&below) {
                let directory = shown(&below);
                return Err(CliError::Usage(format!(
                    "nothing is saved in `{directory}`: other programs run code from it, or it \
                     looks like a secret; choose another directory with `--save`"
                )));
            }
        }
        fs::create_dir_all(directory).map_err(failed)?;
        tempfile::tempfile_in(directory).map_err(failed)?;
        let absolute = std::path::absolute(directory).map_err(failed)?;
        let directory_name = absolute.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { directory: directory.to_owned(), directory_name, protected, secrets })
    }

    fn takes(&self, name: &str) -> bool {
        let above = self.directory_name.as_deref();
        let is_protected =
            self.protected.matches_in(above, name) || self.protected.forbid_new(above, name);
        !is_protected && !is_guarded(name) && !self.secrets.matches_in(above, name)
    }

    /// Writes emitted content to a file and returns its path. A link has no content, so no file is
    /// written.
    ///
    /// `number` is the position of the content in the output, from 1.
    pub(crate) fn write(
        &self,
        number: usize,
        content: &Content,
    ) -> Result<Option<PathBuf>, CliError> {
        let (stem, extension, bytes) = match content {
            Content::Image(media) => {
                let extension = extension(&media.mime_type).unwrap_or("bin");
                (format!("image-{number}"), extension.to_owned(), &*media.data)
            }
            Content::Audio(media) => {
                let extension = extension(&media.mime_type).unwrap_or("bin");
                (format!("audio-{number}"), extension.to_owned(), &*media.data)
            }
            Content::Resource(resource) => {
                let (bytes, usual) = match &resource.body {
                    ResourceBody::Text(text) => (text.as_bytes(), "txt"),
                    ResourceBody::Blob(data) => (&**data, "bin"),
                };
                let by_type = resource.mime_type.as_deref().and_then(extension);
                let name = name_of(&resource.uri).unwrap_or_else(|| format!("resource-{number}"));
                match name.rsplit_once('.') {
                    Some((stem, own)) => (stem.to_owned(), own.to_owned(), bytes),
                    None => (name, by_type.unwrap_or(usual).to_owned(), bytes),
                }
            }
            Content::Link(_) => return Ok(None),
        };
        let usual = format!("{}-{number}", content_kind(content));
        let names = [(stem, extension.clone()), (usual.clone(), extension), (usual, "bin".into())];
        let mut allowed = names
            .into_iter()
            .filter(|(stem, extension)| self.takes(&format!("{stem}.{extension}")));
        let (stem, extension) = allowed.next().unwrap_or_else(|| ("file".into(), "bin".into()));
        let written = self.write_new(&stem, &extension, bytes);
        written.map(Some).map_err(|source| {
            let path = self.directory.join(format!("{stem}.{extension}"));
            CliError::Save { path: path.display().to_string(), source }
        })
    }

    /// Writes a new file `stem.extension`, with a number if the name is taken.
    fn write_new(&self, stem: &str, extension: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let file = new_file::write(&self.directory, bytes, None)?;
        let paths = (1..=NUMBERS).map(|number| match number {
            1 => self.directory.join(format!("{stem}.{extension}")),
            number => self.directory.join(format!("{stem}-{number}.{extension}")),
        });
        let full = || io::Error::other(format!("{NUMBERS} files of that name exist"));
        new_file::persist(file, paths)?.ok_or_else(full)
    }
}

/// Returns the beginning of a file name for content that a tool does not name.
fn content_kind(content: &Content) -> &'static str {
    match content {
        Content::Image(_) => "image",
        Content::Audio(_) => "audio",
        Content::Resource(_) | Content::Link(_) => "resource",
    }
}

/// Returns the last part of a URI as a valid file name. `None` if no character is left.
fn name_of(uri: &str) -> Option<String> {
    let path = uri.split(['?', '#']).next()?;
    let last = path.rsplit(['/', '\\', ':']).next()?;
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = last.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    // Not a hidden file or a name that commands would parse as an option.
    let name = name.trim_start_matches(['.', '-']).trim_end_matches('.');
    // The end of a name is the most specific.
    let name = &name[name.ceil_char_boundary(name.len().saturating_sub(NAME_BYTES))..];
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the file extension of a MIME type.
fn extension(mime_type: &str) -> Option<&'static str> {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    Some(match &*essence {
        "application/gzip" => "gz",
        "application/json" => "json",
        "application/octet-stream" => "bin",
        "application/pdf" => "pdf",
        "application/xml" | "text/xml" => "xml",
        "application/zip" => "zip",
        "audio/aac" => "aac",
        "audio/flac" => "flac",
        "audio/mp4" => "m4a",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "audio/webm" | "video/webm" => "webm",
        "image/avif" => "avif",
        "image/bmp" => "bmp",
        "image/gif" => "gif",
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/svg+xml" => "svg",
        "image/tiff" => "tiff",
        "image/webp" => "webp",
        "text/css" => "css",
        "text/csv" => "csv",
        "text/html" => "html",
        "text/javascript" => "js",
        "text/markdown" => "md",
        "text/plain" => "txt",
        "video/mp4" => "mp4",
        _ if essence.ends_with("+json") => "json",
        _ if essence.ends_with("+xml") => "xml",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_comes_from_the_uri_and_stays_in_place() {
        let check = |uri: &str, expected: &str| {
            assert_eq!(name_of(uri).as_deref().unwrap_or("none"), expected, "{uri}");
        };
        check("file:///reports/2026.csv", "2026.csv");
        check("https://example.org/a/b.html?x=/../c#d/e", "b.html");
        check("report:today", "today");
        check("../../etc/passwd", "passwd");
        check("file:///..", "none");
        check("a:..\\..\\.bashrc", "bashrc");
        check("a:/-rf", "rf");
        check("a:/%2e%2e%2fb", "_2e_2e_2fb");
        check("a:/\u{202e}gnp.exe\0\n", "_gnp.exe__");
        check("a:/größe.txt", "größe.txt");
        check("", "none");
        let long = name_of(&format!("a:/{}.csv", "ä".repeat(500))).unwrap();
        assert!(long.len() <= NAME_BYTES && long.ends_with("ä.csv"), "{long}");
    }

    #[test]
    fn extension_comes_from_the_mime_type() {
        let check = |mime_type: &str, expected: Option<&str>| {
            assert_eq!(extension(mime_type), expected, "{mime_type}");
        };
        check("image/png", Some("png"));
        check("Text/Plain; charset=utf-8", Some("txt"));
        check("application/ld+json", Some("json"));
        check("../../x", None);
    }
}
