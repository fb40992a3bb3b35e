//! Small bodies that decompress to large ones.

use std::io::Write;

use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::Coding;

/// 64 MiB of zeros, compressed with `brotli --quality 11`.
const BROTLI: &[u8] = &[
    0xcb, 0xff, 0xff, 0x3f, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x8f, 0xff, 0xff,
    0x7f, 0xf0, 0x4f, 0x00, 0xc4, 0x61, 0x11, 0x80, 0xee, 0xfd, 0x1f, 0xff, 0xff, 0xff, 0xe0, 0x9f,
    0x00, 0x88, 0xc3, 0x02, 0x00, 0xdd, 0xfb, 0x3f, 0xfe, 0xff, 0xff, 0xc1, 0x3f, 0x01, 0x10, 0x87,
    0x05, 0x00, 0xba, 0xf7, 0x7f, 0xfc, 0xff, 0xff, 0x83, 0x7f, 0x02, 0x20, 0x0e, 0x0b, 0x00, 0x74,
    0xef, 0xff, 0xf8, 0xff, 0xff, 0x07, 0xff, 0x04, 0x40, 0x1c, 0x16, 0x00, 0xe8, 0xde, 0xff, 0xf1,
    0xff, 0xff, 0x0f, 0xfe, 0x09, 0x80, 0x38, 0x2c, 0x00, 0xd0, 0xbd, 0xff, 0xe3, 0xff, 0xff, 0x1f,
    0xfc, 0x13, 0x00, 0x71, 0x58, 0x00, 0xa0, 0x7b, 0xff, 0x37,
];

const MEBIBYTE: usize = 1 << 20;

/// Zeros, compressed.
pub(crate) fn zeros(coding: Coding, mebibytes: u32) -> Vec<u8> {
    let length = u64::from(mebibytes) << 20;
    match coding {
        Coding::Brotli => BROTLI.to_vec(),
        Coding::Gzip => {
            let mut crc = Crc::new();
            let mut one = Crc::new();
            one.update(&vec![0; MEBIBYTE]);
            (0..mebibytes).for_each(|_| crc.combine(&one));
            let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
            // The length is stored modulo 2³².
            let tail = [crc.sum().to_le_bytes(), (length as u32).to_le_bytes()].concat();
            [&head[..], &deflated(mebibytes), &tail].concat()
        }
        Coding::Deflate => {
            // Adler-32: the first sum stays 1, and the second counts it for each byte.
            let adler = ((length % 65521) as u32) << 16 | 1;
            [&[0x78, 0x9c][..], &deflated(mebibytes), &adler.to_be_bytes()].concat()
        }
    }
}

/// The first mebibyte, followed by the second one as often as needed: it refers to earlier data.
fn deflated(mebibytes: u32) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let zeros = vec![0; MEBIBYTE];
    let mut mebibyte = || {
        let mut bytes = Vec::with_capacity(MEBIBYTE);
        compress.compress_vec(&zeros, &mut bytes, FlushCompress::Sync).expect("zeros compress");
        bytes
    };
    let (first, again) = (mebibyte(), mebibyte());
    let mut bytes = Vec::new();
    for number in 0..mebibytes {
        bytes.write_all(if number == 0 { &first } else { &again }).expect("memory");
    }
    // An empty last block.
    bytes.extend([3, 0]);
    bytes
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, copy};

    use flate2::read::{GzDecoder, ZlibDecoder};

    use super::*;

    #[test]
    fn bombs_unpack_to_the_requested_size() {
        for mebibytes in [1, 3, 20] {
            let gzip = zeros(Coding::Gzip, mebibytes);
            assert!(gzip.len() < 2000 * mebibytes as usize, "{}", gzip.len());
            assert_eq!(length(GzDecoder::new(&gzip[..])), u64::from(mebibytes) << 20);
            let deflate = zeros(Coding::Deflate, mebibytes);
            assert_eq!(length(ZlibDecoder::new(&deflate[..])), u64::from(mebibytes) << 20);
        }
    }

    /// Reads to the end, where the checksum is verified.
    fn length(mut reader: impl Read) -> u64 {
        copy(&mut reader, &mut io::sink()).unwrap()
    }
}
