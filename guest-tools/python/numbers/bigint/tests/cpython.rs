//! Big integers compute what CPython computes: `../../answers.txt`, by `../../answers.py`.
//!
//! Operations that RustPython writes itself on top of these crates are written here as there.

use core::cmp::Ordering;

use malachite_base::{num::conversion::traits::RoundingInto, rounding_modes::RoundingMode};
use malachite_bigint::{BigInt, BigUint, Sign, ToBigInt};
use malachite_q::Rational;
use num_integer::Integer;
use num_traits::{Pow, Signed, ToPrimitive};

const ANSWERS: &str = include_str!("../../answers.txt");

#[test]
fn answers_are_those_of_cpython() {
    let mut wrong = Vec::new();
    for line in ANSWERS.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let (operation, words) = words.split_first().expect("an operation");
        let expected = match *operation {
            "ratio" => words[1..].join(" "),
            _ => String::from(*words.last().expect("an answer")),
        };
        let answer = compute(operation, words);
        if answer != expected {
            wrong.push(format!("{line}: {answer}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ANSWERS.lines().count() > 1500);
}

/// Computes the answer to a line of the data, in its form.
fn compute(operation: &str, words: &[&str]) -> String {
    let int = |at: usize| BigInt::parse_bytes(words[at].as_bytes(), 16).expect("an integer");
    let small = |at: usize| u32::from_str_radix(words[at], 16).expect("a small number");
    let float = || f64::from_bits(u64::from_str_radix(words[0], 16).expect("a float"));
    let answer = match operation {
        "divide" => return bits(true_division(&int(0), &int(1))),
        "float" => return bits(int(0).to_f64().filter(|value| value.is_finite())),
        "hash" => {
            // Both ways to the hash: `BigInt` alone, and bytes in between.
            let hash = int(0) % ((1i64 << 61) - 1);
            let (sign, bytes) = hash.to_bytes_le();
            assert_eq!(BigInt::from_bytes_le(sign, &bytes), hash);
            hash
        }
        "text" => {
            let text = int(0).to_str_radix(small(1));
            assert_eq!(BigInt::parse_bytes(text.as_bytes(), small(1)), Some(int(0)));
            return text;
        }
        "ratio" => {
            let ratio = Rational::try_from(float()).expect("finite");
            let (numerator, denominator) = ratio.into_numerator_and_denominator();
            let sign = if float() < 0.0 { Sign::Minus } else { Sign::Plus };
            let numerator = BigInt::from_biguint(sign, numerator);
            return format!("{numerator:x} {denominator:x}");
        }
        "whole" => float().to_bigint().expect("finite"),
        "left" => int(0) << small(1),
        "right" => int(0) >> small(1),
        "isqrt" => int(0).sqrt(),
        "floor" => int(0).div_floor(&int(1)),
        "modulo" => int(0).mod_floor(&int(1)),
        "and" => int(0) & int(1),
        "or" => int(0) | int(1),
        "xor" => int(0) ^ int(1),
        "power" => Pow::pow(&int(0), u64::from(small(1))),
        "modpow" => {
            let answer = int(0).modpow(&int(1), &int(2));
            assert!(!answer.is_negative());
            BigUint::try_from(answer).expect("positive").into()
        }
        other => panic!("unknown operation {other}"),
    };
    format!("{answer:x}")
}

/// Divides as `rustpython_common::int::true_div` and its caller do.
fn true_division(numerator: &BigInt, denominator: &BigInt) -> Option<f64> {
    let ratio = Rational::from_integers_ref(numerator, denominator);
    match ratio.rounding_into(RoundingMode::Nearest) {
        (_, Ordering::Less | Ordering::Greater) => None,
        (value, Ordering::Equal) => Some(value),
    }
}

fn bits(value: Option<f64>) -> String {
    value.map_or_else(|| String::from("overflow"), |value| format!("{:016x}", value.to_bits()))
}
