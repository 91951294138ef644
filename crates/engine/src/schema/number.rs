//! What a number in JSON text is worth to a schema.
//!
//! Why it exists: `1e400`, 2^64 and 400 digits are legal JSON, and libraries refuse them or turn them
//! into something that is no number. A record must not be rejected for that. So numbers are read
//! here, once for the plan and for the library alike, which is what lets both say the same: an integer
//! that fits 64 bits is exact, everything else is the nearest floating-point number that is finite, and
//! what is not zero never becomes zero. A number is never written back.

use serde_json::Number;
use std::cmp::Ordering;

/// A number as schemas compare it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Worth {
    /// Fits `i64` or `u64`.
    Whole(i128),
    /// Anything else. Finite.
    Float(f64),
}

/// 2^64 and more is larger than any `Whole`, and this or less is smaller.
const ABOVE_WHOLE: f64 = 18_446_744_073_709_551_616.0;
const BELOW_WHOLE: f64 = -18_446_744_073_709_551_616.0;

impl Worth {
    /// Reads a number token. `None` for what is no number.
    pub(super) fn read(token: &str) -> Option<Self> {
        // The usual case first. A `+` in front is no JSON, and no harm.
        if let Ok(whole) = token.parse::<i64>() {
            return Some(Self::Whole(i128::from(whole)));
        }
        if let Ok(whole) = token.parse::<u64>() {
            return Some(Self::Whole(i128::from(whole)));
        }
        let float = token.parse::<f64>().ok().filter(|float| !float.is_nan())?;
        if float == 0.0 && has_value(token) {
            return Some(Self::Float(f64::from_bits(1).copysign(float)));
        }
        Some(Self::Float(float.clamp(f64::MIN, f64::MAX)))
    }

    /// A number that the library holds.
    pub(super) fn of(number: &Number) -> Option<Self> {
        if let Some(whole) = number.as_i64() {
            return Some(Self::Whole(i128::from(whole)));
        }
        if let Some(whole) = number.as_u64() {
            return Some(Self::Whole(i128::from(whole)));
        }
        number.as_f64().filter(|float| float.is_finite()).map(Self::Float)
    }

    /// The same for the library.
    pub(super) fn to_number(self) -> Option<Number> {
        match self {
            Self::Whole(whole) => {
                i64::try_from(whole).map(Number::from).or_else(|_| u64::try_from(whole).map(Number::from)).ok()
            }
            Self::Float(float) => Number::from_f64(float),
        }
    }

    /// Whether it is an integer. To a schema, `1.0` is one.
    pub(super) fn is_integer(self) -> bool {
        match self {
            Self::Whole(_) => true,
            Self::Float(float) => float.fract() == 0.0,
        }
    }

    /// Compares without rounding.
    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Whole(one), Self::Whole(two)) => one.cmp(&two),
            // Both are finite, so there is an order.
            (Self::Float(one), Self::Float(two)) => one.partial_cmp(&two).unwrap_or(Ordering::Equal),
            (Self::Float(float), Self::Whole(whole)) => compare_float(float, whole),
            (Self::Whole(whole), Self::Float(float)) => compare_float(float, whole).reverse(),
        }
    }
}

/// Below 2^64 the part before the point is exact as an integer, and what is behind it decides a tie.
fn compare_float(float: f64, whole: i128) -> Ordering {
    if float >= ABOVE_WHOLE {
        return Ordering::Greater;
    }
    if float <= BELOW_WHOLE {
        return Ordering::Less;
    }
    let floor = float.floor();
    (floor as i128).cmp(&whole).then(if float > floor { Ordering::Greater } else { Ordering::Equal })
}

/// Whether a token is not zero, however small it is.
fn has_value(token: &str) -> bool {
    token.bytes().take_while(|byte| !matches!(byte, b'e' | b'E')).any(|byte| matches!(byte, b'1'..=b'9'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(token: &str) -> Worth {
        Worth::read(token).unwrap()
    }

    #[test]
    fn numbers_of_any_size_are_numbers() {
        let digits = "9".repeat(400);
        for token in ["1e400", "-1e400", "18446744073709551616", "9223372036854775808", "1.0", "-0", "1e2", &digits] {
            assert!(read(token).is_integer(), "{token}");
            assert!(read(token).to_number().is_some(), "{token}");
        }
        for token in ["1e-400", "-1e-400", "0.5", "5e-1"] {
            assert!(!read(token).is_integer(), "{token}");
        }
        assert!(Worth::read("").is_none() && Worth::read("-").is_none() && Worth::read("NaN").is_none());
    }

    #[test]
    fn comparing_does_not_round() {
        for (one, two, order) in [
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("18446744073709551615", "18446744073709551616", Ordering::Less),
            ("-0", "0", Ordering::Equal),
            ("1", "1.0", Ordering::Equal),
            ("-1", "-0.5", Ordering::Less),
            ("1e400", "18446744073709551615", Ordering::Greater),
            ("-1e400", "-9223372036854775808", Ordering::Less),
            ("1e-400", "0", Ordering::Greater),
        ] {
            assert_eq!(read(one).compare(read(two)), order, "{one} {two}");
            assert_eq!(read(two).compare(read(one)), order.reverse(), "{two} {one}");
        }
    }
}
