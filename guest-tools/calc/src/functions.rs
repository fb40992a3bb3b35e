//! Functions and constants.

use dashu_base::{Gcd, Sign, UnsignedAbs};
use dashu_int::{IBig, UBig};
use dashu_ratio::RBig;

use crate::budget::{self, too_large};
use crate::fail::{Fail, error, undecided};
use crate::interval::Interval;
use crate::lexer::quoted;
use crate::number::{Context, Number, exact_root};

/// Functions, with the minimum and maximum number of arguments.
pub(crate) const FUNCTIONS: &[(&str, usize, usize)] = &[
    ("abs", 1, 1),
    ("acos", 1, 1),
    ("asin", 1, 1),
    ("atan", 1, 1),
    ("atan2", 2, 2),
    ("binomial", 2, 2),
    ("cbrt", 1, 1),
    ("ceil", 1, 1),
    ("cos", 1, 1),
    ("cosh", 1, 1),
    ("degrees", 1, 1),
    ("exp", 1, 1),
    ("factorial", 1, 1),
    ("floor", 1, 1),
    ("gcd", 1, usize::MAX),
    ("lcm", 1, usize::MAX),
    ("ln", 1, 1),
    ("log", 2, 2),
    ("log10", 1, 1),
    ("log2", 1, 1),
    ("max", 1, usize::MAX),
    ("mean", 1, usize::MAX),
    ("min", 1, usize::MAX),
    ("mod", 2, 2),
    ("pow", 2, 2),
    ("radians", 1, 1),
    ("root", 2, 2),
    ("round", 1, 2),
    ("sign", 1, 1),
    ("sin", 1, 1),
    ("sinh", 1, 1),
    ("sqrt", 1, 1),
    ("sum", 1, usize::MAX),
    ("tan", 1, 1),
    ("tanh", 1, 1),
    ("trunc", 1, 1),
];

pub(crate) const CONSTANTS: &[&str] = &["pi", "π", "e", "tau", "τ"];

const LOG_OF_ZERO: &str = "the logarithm of 0, or to the base 0, is not defined";

/// The largest factorial: 25,206! has 100,000 digits.
const MOST_FACTORIAL: u32 = 25_000;

/// Returns true if a function or constant with this name exists.
pub(crate) fn exists(name: &str) -> bool {
    let lower = name.to_lowercase();
    CONSTANTS.contains(&&*lower) || FUNCTIONS.iter().any(|(function, ..)| *function == lower)
}

/// Returns the error for an unknown name.
pub(crate) fn unknown(name: &str) -> String {
    let names: Vec<_> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
    format!(
        "{} is unknown; known are pi, e, tau and the functions {}; units and dates are not \
         supported",
        quoted(name),
        names.join(", ")
    )
}

/// Returns the value of a constant.
pub(crate) fn constant(name: &str, context: &mut Context) -> Result<Option<Number>, Fail> {
    Ok(Some(match name {
        "pi" | "π" => Number::Near(context.precise.pi()),
        "tau" | "τ" => {
            let pi = Number::Near(context.precise.pi());
            pi.multiply(Number::integer(2), context)?
        }
        "e" => {
            let one = Number::integer(1).near(context)?;
            Number::Near(context.precise.exp(&one)?)
        }
        _ => return Ok(None),
    }))
}

/// Calls a function.
pub(crate) fn call(
    name: &str,
    arguments: Vec<Number>,
    context: &mut Context,
) -> Result<Number, Fail> {
    let count = arguments.len();
    let (_, least, most) =
        *FUNCTIONS.iter().find(|(function, ..)| *function == name).unwrap_or(&("", 0, usize::MAX));
    if name == "log" && count == 1 {
        return error("`log` needs its base: log(x, 10), or log10(x), log2(x) and ln(x)");
    }
    if count < least || count > most {
        let takes = match (least, most) {
            (1, 1) => "one argument".to_owned(),
            (1, 2) => "one argument or two".to_owned(),
            (1, _) => "arguments".to_owned(),
            (least, _) => format!("{least} arguments"),
        };
        return error(format!("`{name}` takes {takes}, not {count}"));
    }
    let mut arguments = arguments.into_iter();
    let first = arguments.next().unwrap_or_else(|| Number::integer(0));
    match name {
        "abs" => Ok(first.absolute()),
        "sign" => sign(&first),
        "floor" => first.floor().map(Number::integer),
        "ceil" => Ok(Number::integer(-first.negated().floor()?)),
        "trunc" => trunc(first),
        "round" => round(first, arguments.next(), context),
        "factorial" => factorial(&first, context),
        "mod" | "pow" | "log" | "root" | "atan2" | "binomial" => {
            let second = arguments.next().unwrap_or_else(|| Number::integer(0));
            of_two(name, first, second, context)
        }
        "sum" | "mean" | "min" | "max" | "gcd" | "lcm" => of_many(name, first, arguments, context),
        _ => of_one(name, first, context),
    }
}

/// Evaluates functions of one number that are irrational nearly everywhere.
fn of_one(name: &str, number: Number, context: &mut Context) -> Result<Number, Fail> {
    if let Some(exact) = exact_value(name, &number, context)? {
        return Ok(exact);
    }
    context.budget.spend_on_function(context.precise.digits())?;
    if matches!(name, "radians" | "degrees") {
        let pi = Number::Near(context.precise.pi());
        let half_turn = Number::integer(180);
        return match name {
            "radians" => number.divide(half_turn, context)?.multiply(pi, context),
            _ => number.multiply(half_turn, context)?.divide(pi, context),
        };
    }
    let argument = number.near(context)?;
    let precise = &mut context.precise;
    let value = match name {
        "sqrt" => precise.sqrt(&argument)?,
        "cbrt" => return root(number, 3, context),
        "exp" => precise.exp(&argument)?,
        "ln" => precise.ln(&argument)?,
        "log10" | "log2" => {
            let base = if name == "log2" { 2 } else { 10 };
            return logarithm(number, Number::integer(base), context);
        }
        "sin" => precise.sin(&argument)?,
        "cos" => precise.cos(&argument)?,
        "tan" => {
            let (sine, cosine) = (precise.sin(&argument)?, precise.cos(&argument)?);
            precise.divide(&sine, &cosine)?
        }
        "asin" => precise.asin(&argument)?,
        "acos" => {
            let sine = Number::Near(precise.asin(&argument)?);
            let quarter = Number::Near(precise.pi()).divide(Number::integer(2), context)?;
            return quarter.subtract(sine, context);
        }
        "atan" => precise.atan(&argument)?,
        "sinh" => precise.sinh(&argument)?,
        "tanh" => precise.tanh(&argument)?,
        _ => {
            // The hyperbolic cosine is the mean of two powers of e.
            let rising = Number::Near(precise.exp(&argument)?);
            let falling = Number::Near(precise.exp(&argument.negated())?);
            return rising.add(falling, context)?.divide(Number::integer(2), context);
        }
    };
    Ok(Number::Near(value))
}

/// Returns the value of a function at a point where it is rational.
fn exact_value(name: &str, number: &Number, context: &mut Context) -> Result<Option<Number>, Fail> {
    let Number::Exact(value) = number else { return Ok(None) };
    let is_negative = value.numerator().sign() == Sign::Negative && !value.is_zero();
    Ok(match name {
        "sqrt" if !is_negative => exact_root(value, 2, context)?.map(Number::Exact),
        "sin" | "tan" | "asin" | "atan" | "sinh" | "tanh" | "radians" | "degrees"
            if value.is_zero() =>
        {
            Some(Number::integer(0))
        }
        "ln" | "log2" | "log10" if value.is_zero() => return error(LOG_OF_ZERO),
        "cos" | "cosh" | "exp" if value.is_zero() => Some(Number::integer(1)),
        "ln" | "acos" if value.is_one() => Some(Number::integer(0)),
        _ => None,
    })
}

fn of_two(
    name: &str,
    first: Number,
    second: Number,
    context: &mut Context,
) -> Result<Number, Fail> {
    match name {
        "mod" => first.modulo(second, context),
        "pow" => first.power(second, context),
        "log" => logarithm(first, second, context),
        "root" => match second.as_integer().and_then(budget::small) {
            Some(degree @ 1..=10_000) => root(first, degree as usize, context),
            _ => error("the degree of a root must be a whole number from 1 to 10,000"),
        },
        "binomial" => binomial(&first, &second, context),
        _ => atan2(first, second, context),
    }
}

/// Returns a root of integer degree. A negative number has a root if the degree is odd.
fn root(number: Number, degree: usize, context: &mut Context) -> Result<Number, Fail> {
    let is_negative = match &number {
        Number::Exact(value) => value.numerator().sign() == Sign::Negative && !value.is_zero(),
        Number::Near(interval) => match interval.sign() {
            Some(sign) => sign == Sign::Negative,
            None => return undecided("the root of a value that may be zero"),
        },
    };
    if is_negative && degree.is_multiple_of(2) {
        return error("an even root of a negative number is not real");
    }
    let positive = number.absolute();
    let exact = match &positive {
        Number::Exact(value) => exact_root(value, degree, context)?,
        Number::Near(_) => None,
    };
    let root = match exact {
        Some(root) => Number::Exact(root),
        None => {
            let exponent = RBig::from_parts(IBig::ONE, UBig::from(degree));
            positive.power(Number::Exact(exponent), context)?
        }
    };
    Ok(if is_negative { root.negated() } else { root })
}

fn logarithm(number: Number, base: Number, context: &mut Context) -> Result<Number, Fail> {
    if let (Number::Exact(value), Number::Exact(of)) = (&number, &base) {
        if of.is_one() {
            return error("the base of a logarithm must not be 1");
        }
        if value.is_zero() || of.is_zero() {
            return error(LOG_OF_ZERO);
        }
        if let Some(exact) = exact_logarithm(value, of, context)? {
            return Ok(exact);
        }
    }
    context.budget.spend_on_function(2 * context.precise.digits())?;
    let (number, base) = (number.near(context)?, base.near(context)?);
    let (above, below) = (context.precise.ln(&number)?, context.precise.ln(&base)?);
    context.precise.divide(&above, &below).map(Number::Near)
}

/// Returns a logarithm that is an integer, such as the logarithm of 1,000 or 0.001 to base 10.
fn exact_logarithm(
    number: &RBig,
    base: &RBig,
    context: &mut Context,
) -> Result<Option<Number>, Fail> {
    let is_positive = |it: &RBig| it.numerator().sign() == Sign::Positive && !it.is_zero();
    if !is_positive(number) || !base.is_int() || *base.numerator() < IBig::from(2) {
        return Ok(None);
    }
    context.budget.spend_on(number, number)?;
    let base = base.numerator().clone().unsigned_abs();
    let (numerator, denominator) =
        (number.numerator().clone().unsigned_abs(), number.denominator().clone());
    let (whole, is_below_one) = match (numerator.is_one(), denominator.is_one()) {
        (_, true) => (numerator, false),
        (true, false) => (denominator, true),
        _ => return Ok(None),
    };
    let exponent = whole.ilog(&base);
    if base.pow(exponent) != whole {
        return Ok(None);
    }
    let exponent = IBig::from(exponent);
    Ok(Some(Number::integer(if is_below_one { -exponent } else { exponent })))
}

/// Returns the angle of a point, from -pi to pi.
fn atan2(y: Number, x: Number, context: &mut Context) -> Result<Number, Fail> {
    context.budget.spend_on_function(2 * context.precise.digits())?;
    let sign_of = |number: &Number| match number {
        Number::Exact(value) if value.is_zero() => Some(0),
        Number::Exact(value) if value.numerator().sign() == Sign::Negative => Some(-1),
        Number::Exact(_) => Some(1),
        Number::Near(interval) => {
            interval.sign().map(|sign| if sign == Sign::Negative { -1 } else { 1 })
        }
    };
    let (Some(side), Some(height)) = (sign_of(&x), sign_of(&y)) else {
        return undecided("cannot tell in which quadrant a point is");
    };
    let pi = Number::Near(context.precise.pi());
    match (side, height) {
        (0, 0) => error("the angle of (0, 0) is undefined"),
        (0, height) => {
            pi.multiply(Number::integer(height), context)?.divide(Number::integer(2), context)
        }
        (1, 0) => Ok(Number::integer(0)),
        (_, 0) => Ok(pi),
        (side, height) => {
            let quotient = y.divide(x, context)?.near(context)?;
            let angle = Number::Near(context.precise.atan(&quotient)?);
            match side {
                1 => Ok(angle),
                _ => angle.add(pi.multiply(Number::integer(height), context)?, context),
            }
        }
    }
}

fn of_many(
    name: &str,
    first: Number,
    others: impl ExactSizeIterator<Item = Number>,
    context: &mut Context,
) -> Result<Number, Fail> {
    let count = others.len() + 1;
    if matches!(name, "gcd" | "lcm") {
        let mut result = whole(name, &first)?.unsigned_abs();
        for other in others {
            let other = whole(name, &other)?.unsigned_abs();
            context.budget.spend_on(&RBig::from(result.clone()), &RBig::from(other.clone()))?;
            result = match (name, result.is_zero(), other.is_zero()) {
                ("gcd", true, _) => other,
                ("gcd", _, true) => result,
                ("gcd", ..) => result.gcd(other),
                (_, true, _) | (_, _, true) => UBig::ZERO,
                _ => {
                    let divisor = (&result).gcd(&other);
                    result / divisor * other
                }
            };
            budget::checked(RBig::from(result.clone()))?;
        }
        return Ok(Number::integer(result));
    }
    let mut result = first;
    for other in others {
        result = match name {
            "min" => least(result, other, context)?,
            "max" => least(result.negated(), other.negated(), context)?.negated(),
            _ => result.add(other, context)?,
        };
    }
    match name {
        "mean" => result.divide(Number::integer(count), context),
        _ => Ok(result),
    }
}

fn least(one: Number, two: Number, context: &mut Context) -> Result<Number, Fail> {
    match (&one, &two) {
        (Number::Exact(first), Number::Exact(second)) => {
            context.budget.spend_on(first, second)?;
            Ok(if second < first { two } else { one })
        }
        _ => {
            let (first, second) = (one.near(context)?, two.near(context)?);
            // A value that is certainly smaller is the result, and is exact if it was exact.
            let difference = Number::Near(context.precise.add(&first, &second.negated()));
            let sign = match &difference {
                Number::Near(interval) => Interval::sign(interval),
                Number::Exact(_) => None,
            };
            Ok(match sign {
                Some(Sign::Negative) => one,
                Some(Sign::Positive) => two,
                None => Number::Near(first.least(&second)),
            })
        }
    }
}

fn sign(number: &Number) -> Result<Number, Fail> {
    match number {
        Number::Exact(value) if value.is_zero() => Ok(Number::integer(0)),
        Number::Exact(value) => {
            Ok(Number::integer(if value.numerator().sign() == Sign::Negative { -1 } else { 1 }))
        }
        Number::Near(interval) => match interval.sign() {
            Some(Sign::Negative) => Ok(Number::integer(-1)),
            Some(Sign::Positive) => Ok(Number::integer(1)),
            None => undecided("cannot tell whether a number is zero"),
        },
    }
}

fn trunc(number: Number) -> Result<Number, Fail> {
    let is_negative = match &number {
        Number::Exact(value) => value.numerator().sign() == Sign::Negative,
        Number::Near(interval) => match interval.sign() {
            Some(sign) => sign == Sign::Negative,
            None => return undecided("cannot tell whether a number is zero"),
        },
    };
    match is_negative {
        true => Ok(Number::integer(-number.negated().floor()?)),
        false => number.floor().map(Number::integer),
    }
}

/// Rounds to this many decimal places, or before the point if negative. Half is rounded away from
/// zero.
fn round(number: Number, places: Option<Number>, context: &mut Context) -> Result<Number, Fail> {
    let places = match places {
        None => 0,
        Some(places) => match places.as_integer().and_then(|it| i32::try_from(it).ok()) {
            Some(places @ -100_000..=100_000) => places,
            _ => return error("the places of `round` must be a whole number up to 100,000"),
        },
    };
    let scale = budget::power_of_ten(places.unsigned_abs() as usize);
    let scale = match places < 0 {
        true => RBig::from_parts(IBig::ONE, scale),
        false => RBig::from(scale),
    };
    let scaled = number.multiply(Number::Exact(scale.clone()), context)?;
    let is_negative = match &scaled {
        Number::Exact(value) => value.numerator().sign() == Sign::Negative,
        Number::Near(interval) => interval.sign() == Some(Sign::Negative),
    };
    let half = Number::Exact(RBig::from_parts(IBig::ONE, UBig::from(2u8)));
    let rounded = match is_negative {
        true => -scaled.negated().add(half, context)?.floor()?,
        false => scaled.add(half, context)?.floor()?,
    };
    Number::integer(rounded).divide(Number::Exact(scale), context)
}

fn whole(name: &str, number: &Number) -> Result<IBig, Fail> {
    match number.as_integer() {
        Some(number) => Ok(number.clone()),
        None => error(format!("`{name}` takes whole numbers")),
    }
}

/// Returns the factorial of an integer.
pub(crate) fn factorial(number: &Number, context: &mut Context) -> Result<Number, Fail> {
    let Some(whole) = number.as_integer() else {
        return error("a factorial takes a whole number from 0 to 25,000");
    };
    if whole.sign() == Sign::Negative && !whole.is_zero() {
        return error("a factorial takes a whole number from 0 to 25,000, not a negative one");
    }
    match budget::small(whole) {
        Some(number) if number <= MOST_FACTORIAL => {
            let bits = number as usize * 16;
            context.budget.spend(bits, bits)?;
            Ok(Number::integer(product(1, number.into())))
        }
        _ => error(
            "a factorial takes a whole number from 0 to 25,000; beyond that it has more than \
             100,000 digits",
        ),
    }
}

/// Multiplies the integers of a range by halving the range, so that both factors have similar
/// sizes.
fn product(from: u64, to: u64) -> UBig {
    match to.checked_sub(from) {
        None => UBig::ONE,
        Some(0) => UBig::from(from),
        Some(1) => UBig::from(from) * UBig::from(to),
        Some(count) => {
            let middle = from + count / 2;
            product(from, middle) * product(middle + 1, to)
        }
    }
}

/// Returns the binomial coefficient.
fn binomial(all: &Number, chosen: &Number, context: &mut Context) -> Result<Number, Fail> {
    let count = |number: &Number| {
        whole("binomial", number).and_then(|whole| match budget::small(&whole) {
            Some(count) if count <= 1_000_000_000 => Ok(u64::from(count)),
            _ => error("`binomial` takes whole numbers from 0 to 1,000,000,000"),
        })
    };
    let (all, chosen) = (count(all)?, count(chosen)?);
    let Some(others) = all.checked_sub(chosen) else { return Ok(Number::integer(0)) };
    let fewer = chosen.min(others);
    if fewer > u64::from(MOST_FACTORIAL) {
        return too_large();
    }
    let bits = fewer as usize * 30;
    context.budget.spend(bits, bits)?;
    let ways = product(all - fewer + 1, all) / product(1, fewer);
    budget::checked(RBig::from(ways)).map(Number::Exact)
}
