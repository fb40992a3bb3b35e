//! The smallest possible media files.

use kitbag_sdk::host::Media;

/// One red pixel.
pub(crate) const PNG: &[u8] = b"\
    \x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\
    \x08\x02\x00\x00\x00\x90wS\xde\x00\x00\x00\x0cIDATx\xdac\xf8\xcf\xc0\x00\x00\
    \x03\x01\x01\x00\xf7\x03AC\x00\x00\x00\x00IEND\xaeB`\x82";

/// Two samples of silence.
const WAV: &[u8] = b"\
    RIFF&\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00@\x1f\
    \x00\x00\x01\x00\x08\x00data\x02\x00\x00\x00\x80\x80";

pub(crate) fn image() -> Media {
    Media { data: PNG.to_vec(), mime_type: "image/png".to_owned() }
}

pub(crate) fn sound() -> Media {
    Media { data: WAV.to_vec(), mime_type: "audio/wav".to_owned() }
}
