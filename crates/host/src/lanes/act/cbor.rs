//! CBOR (RFC 8949), the encoding of arguments, metadata and some results.
//!
//! Arguments are encoded deterministically (section 4.2.1). Data of the guest is written as JSON
//! while it is read, so that a few bytes cannot become a tree of values in memory.

use std::collections::HashSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minicbor::data::Type;
use minicbor::{Decoder, Encoder};
use serde_json::{Number, Value};

/// Maximum depth of arrays, maps and tags.
const DEPTH: usize = 64;

/// Why data is not usable CBOR.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CborError {
    #[error("it is not valid CBOR: {0}")]
    Malformed(String),
    #[error("its values are nested more than {DEPTH} deep")]
    Deep,
    #[error("it has a key twice: {0}")]
    Duplicate(String),
    #[error("as JSON it has more than {0} bytes")]
    Long(usize),
}

impl From<minicbor::decode::Error> for CborError {
    fn from(error: minicbor::decode::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// Encodes a JSON value deterministically.
pub(super) fn encode(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_to(&mut bytes, value);
    bytes
}

fn encode_to(bytes: &mut Vec<u8>, value: &Value) {
    const INFALLIBLE: &str = "a vector takes all bytes";
    let mut encoder = Encoder::new(&mut *bytes);
    match value {
        Value::Null => drop(encoder.null().expect(INFALLIBLE)),
        Value::Bool(value) => drop(encoder.bool(*value).expect(INFALLIBLE)),
        Value::Number(number) => encode_number(bytes, number),
        Value::String(text) => drop(encoder.str(text).expect(INFALLIBLE)),
        Value::Array(items) => {
            encoder.array(items.len() as u64).expect(INFALLIBLE);
            items.iter().for_each(|item| encode_to(bytes, item));
        }
        Value::Object(entries) => {
            encoder.map(entries.len() as u64).expect(INFALLIBLE);
            let key = |key: &String| encode(&Value::String(key.clone()));
            let mut entries: Vec<_> =
                entries.iter().map(|(name, value)| (key(name), value)).collect();
            // Bytewise, by the encoded keys.
            entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            for (key, value) in entries {
                bytes.extend(key);
                encode_to(bytes, value);
            }
        }
    }
}

/// Encodes a number in the shortest form that keeps its value.
fn encode_number(bytes: &mut Vec<u8>, number: &Number) {
    const INFALLIBLE: &str = "a vector takes all bytes";
    let mut encoder = Encoder::new(&mut *bytes);
    if let Some(number) = number.as_u64() {
        encoder.u64(number).expect(INFALLIBLE);
    } else if let Some(number) = number.as_i64() {
        encoder.i64(number).expect(INFALLIBLE);
    } else {
        let number = number.as_f64().unwrap_or_default();
        #[expect(clippy::cast_possible_truncation, reason = "compared below")]
        let single = number as f32;
        if f64::from(single) != number {
            encoder.f64(number).expect(INFALLIBLE);
        } else if let Some(half) = half_of(single) {
            bytes.push(0xf9);
            bytes.extend(half.to_be_bytes());
        } else {
            encoder.f32(single).expect(INFALLIBLE);
        }
    }
}

/// Returns the bits of a finite number with half precision, if it has one.
fn half_of(number: f32) -> Option<u16> {
    let bits = number.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let (exponent, fraction) = ((bits >> 23) & 0xff, bits & 0x7f_ffff);
    let half = match exponent {
        0 if fraction == 0 => sign,
        // Normal numbers.
        113..=142 => sign | (((exponent - 112) as u16) << 10) | (fraction >> 13) as u16,
        // Subnormal numbers.
        103..=112 => sign | ((fraction | 0x80_0000) >> (126 - exponent)) as u16,
        _ => return None,
    };
    (half_value(half) == f64::from(number)).then_some(half)
}

/// Returns the value of a number with half precision.
fn half_value(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from((bits >> 10) & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * f64::powi(2.0, -24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * f64::powi(2.0, exponent - 25),
    }
}

/// Returns data as JSON text of at most this length. Byte strings become base64, undefined values
/// and numbers that JSON lacks become `null`, and tags are omitted.
pub(super) fn to_json(data: &[u8], limit: usize) -> Result<String, CborError> {
    let mut writer = Writer { decoder: Decoder::new(data), text: String::new(), limit };
    writer.value(0)?;
    match writer.decoder.position() == data.len() {
        true => Ok(writer.text),
        false => Err(CborError::Malformed("bytes follow the value".to_owned())),
    }
}

/// Returns the value of a flag in the metadata, if it is one.
pub(super) fn flag(data: &[u8]) -> Option<bool> {
    Decoder::new(data).bool().ok()
}

/// Returns the value of a whole number in the metadata, if it is one.
pub(super) fn number(data: &[u8]) -> Option<f64> {
    Decoder::new(data).u32().ok().map(f64::from)
}

struct Writer<'a> {
    decoder: Decoder<'a>,
    text: String,
    limit: usize,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) -> Result<(), CborError> {
        if text.len() > self.limit - self.text.len() {
            return Err(CborError::Long(self.limit));
        }
        self.text.push_str(text);
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<(), CborError> {
        if depth > DEPTH {
            return Err(CborError::Deep);
        }
        match self.decoder.datatype()? {
            Type::Bool => {
                let value = self.decoder.bool()?;
                self.push(if value { "true" } else { "false" })
            }
            Type::Null => {
                self.decoder.null()?;
                self.push("null")
            }
            Type::Undefined => {
                self.decoder.undefined()?;
                self.push("null")
            }
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => {
                let number = self.decoder.u64()?.to_string();
                self.push(&number)
            }
            Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::Int => {
                let number = i128::from(self.decoder.int()?).to_string();
                self.push(&number)
            }
            Type::F16 => {
                let position = self.decoder.position();
                let bits = match self.decoder.input().get(position + 1..position + 3) {
                    Some(&[high, low]) => u16::from_be_bytes([high, low]),
                    _ => return Err(CborError::Malformed("it is truncated".to_owned())),
                };
                self.decoder.set_position(position + 3);
                self.float(half_value(bits))
            }
            Type::F32 => {
                let number = self.decoder.f32()?;
                self.float(f64::from(number))
            }
            Type::F64 => {
                let number = self.decoder.f64()?;
                self.float(number)
            }
            Type::Simple => {
                self.decoder.simple()?;
                self.push("null")
            }
            Type::Bytes | Type::BytesIndef => {
                let mut bytes = Vec::new();
                for part in self.decoder.bytes_iter()? {
                    bytes.extend(part?);
                }
                let text = STANDARD.encode(bytes);
                self.push("\"")?;
                self.push(&text)?;
                self.push("\"")
            }
            Type::String | Type::StringIndef => {
                let text = self.string()?;
                self.push(&quoted(&text))
            }
            Type::Array | Type::ArrayIndef => {
                let length = self.decoder.array()?;
                self.push("[")?;
                let mut number = 0;
                while self.has_item(length, number)? {
                    if number > 0 {
                        self.push(",")?;
                    }
                    self.value(depth + 1)?;
                    number += 1;
                }
                self.push("]")
            }
            Type::Map | Type::MapIndef => {
                let length = self.decoder.map()?;
                self.push("{")?;
                let (mut number, mut keys) = (0, HashSet::new());
                while self.has_item(length, number)? {
                    if number > 0 {
                        self.push(",")?;
                    }
                    let key = self.key(depth + 1)?;
                    self.push(&key)?;
                    if !keys.insert(key.clone()) {
                        return Err(CborError::Duplicate(key));
                    }
                    self.push(":")?;
                    self.value(depth + 1)?;
                    number += 1;
                }
                self.push("}")
            }
            Type::Tag => {
                self.decoder.tag()?;
                self.value(depth + 1)
            }
            Type::Break | Type::Unknown(_) => {
                Err(CborError::Malformed("an item has an unknown type".to_owned()))
            }
        }
    }

    /// Returns true if an array or a map has another item, and consumes its end.
    fn has_item(&mut self, length: Option<u64>, number: u64) -> Result<bool, CborError> {
        if let Some(length) = length {
            return Ok(number < length);
        }
        let is_end = self.decoder.datatype()? == Type::Break;
        if is_end {
            self.decoder.set_position(self.decoder.position() + 1);
        }
        Ok(!is_end)
    }

    fn string(&mut self) -> Result<String, CborError> {
        let mut text = String::new();
        for part in self.decoder.str_iter()? {
            text.push_str(part?);
        }
        Ok(text)
    }

    /// Returns a key of a map as a JSON string. Keys that are not text are written as JSON.
    fn key(&mut self, depth: usize) -> Result<String, CborError> {
        if matches!(self.decoder.datatype()?, Type::String | Type::StringIndef) {
            return Ok(quoted(&self.string()?));
        }
        let before = self.text.len();
        self.value(depth)?;
        let key = self.text.split_off(before);
        Ok(quoted(key.trim_matches('"')))
    }

    fn float(&mut self, number: f64) -> Result<(), CborError> {
        let mut text = String::new();
        match number.is_finite() {
            // With a decimal point or an exponent.
            true => write!(text, "{number:?}").expect("a string takes all text"),
            false => text.push_str("null"),
        }
        self.push(&text)
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<_> = hex.chars().filter(|it| !it.is_whitespace()).collect();
        let byte = |pair: &[char]| u8::from_str_radix(&String::from_iter(pair), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    #[test]
    fn arguments_are_encoded_deterministically() {
        // The examples of RFC 8949, appendix A.
        for (value, expected) in [
            (json!(0), "00"),
            (json!(23), "17"),
            (json!(24), "1818"),
            (json!(1_000_000), "1a000f4240"),
            (json!(u64::MAX), "1bffffffffffffffff"),
            (json!(-1), "20"),
            (json!(-1000), "3903e7"),
            (json!(i64::MIN), "3b7fffffffffffffff"),
            (json!(0.0), "f90000"),
            (json!(-0.0), "f98000"),
            (json!(1.0), "f93c00"),
            (json!(1.1), "fb3ff199999999999a"),
            (json!(1.5), "f93e00"),
            (json!(65504.0), "f97bff"),
            (json!(100_000.0), "fa47c35000"),
            (json!(3.4028234663852886e38), "fa7f7fffff"),
            (json!(5.960464477539063e-8), "f90001"),
            (json!(0.00006103515625), "f90400"),
            (json!(1e300), "fb7e37e43c8800759c"),
            (json!(null), "f6"),
            (json!(true), "f5"),
            (json!("ü"), "62c3bc"),
            (json!([1, [2]]), "82018102"),
            (json!({ "bb": 1, "a": 2, "b": 3 }), "a3616102616203626262 01"),
        ] {
            assert_eq!(hex(&encode(&value)), expected.replace(' ', ""), "{value}");
        }
    }

    #[test]
    fn data_is_written_as_json() {
        for (data, expected) in [
            ("1bffffffffffffffff", "18446744073709551615"),
            ("3bffffffffffffffff", "-18446744073709551616"),
            ("f93c00", "1.0"),
            ("f97c00", "null"),
            ("f7", "null"),
            ("c074323031332d30332d32315432303a30343a30305a", "\"2013-03-21T20:04:00Z\""),
            ("4401020304", "\"AQIDBA==\""),
            ("5f42010243030405ff", "\"AQIDBAU=\""),
            ("7f657374726561646d696e67ff", "\"streaming\""),
            ("9f018202039f0405ffff", "[1,[2,3],[4,5]]"),
            ("bf61610161629f0203ffff", "{\"a\":1,\"b\":[2,3]}"),
            ("a201020304", "{\"1\":2,\"3\":4}"),
            ("a16161 62220a", "{\"a\":\"\\\"\\n\"}"),
        ] {
            assert_eq!(to_json(&bytes(data), 1000).as_deref(), Ok(expected), "{data}");
        }
    }

    #[test]
    fn values_survive_the_encoding() {
        let value = json!({ "a": [1, -2, 2.5, null, "x"], "b": { "c": true, "": 1e-3 } });
        let text = to_json(&encode(&value), 1000).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn hostile_data_is_refused() {
        let check = |data: &[u8], expected: &str| {
            let error = to_json(data, 1000).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check(&[0x81].repeat(100_000), "its values are nested more than 64 deep");
        check(&[0xc1].repeat(100_000), "its values are nested more than 64 deep");
        check(&bytes("a2616101616102"), "it has a key twice: \"a\"");
        check(&bytes("9b0000ffffffffffff"), "it is not valid CBOR");
        check(&bytes("bb7fffffffffffffff"), "it is not valid CBOR");
        check(&bytes("5b7fffffffffffffff"), "it is not valid CBOR");
        check(&bytes("f93c"), "it is not valid CBOR");
        check(&bytes("61ff"), "it is not valid CBOR");
        check(&bytes("ff"), "it is not valid CBOR");
        check(&bytes("1c"), "it is not valid CBOR");
        check(&bytes("0000"), "it is not valid CBOR: bytes follow the value");
        check(&[], "it is not valid CBOR");
        let nulls = [&[0x99, 0xff, 0xff][..], &[0xf6].repeat(0xffff)].concat();
        check(&nulls, "as JSON it has more than 1000 bytes");
        // Depth counts keys also.
        check(&[0xa1].repeat(1000), "its values are nested more than 64 deep");
    }
}
