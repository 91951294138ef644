//! Whether a text is a time as RFC 3339 writes it. A date alone is not: `emitted_at` is a moment.

/// Whether it can be read.
pub(crate) fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |from: usize, to: usize, max: u32| {
        let part = text.get(from..to).filter(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
        part.and_then(|part| part.parse::<u32>().ok()).is_some_and(|value| value <= max)
    };
    let is = |at: usize, allowed: &[u8]| bytes.get(at).is_some_and(|byte| allowed.contains(byte));
    let date = digits(0, 4, 9999) && is(4, b"-") && digits(5, 7, 12) && is(7, b"-") && digits(8, 10, 31);
    let clock = is(10, b"Tt ") && digits(11, 13, 23) && is(13, b":") && digits(14, 16, 59) && is(16, b":");
    if !(date && clock && digits(17, 19, 60)) {
        return false;
    }
    let rest = &text[19..];
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() { return false } else { zone }
        }
        None => rest,
    };
    match zone.as_bytes() {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_time;

    #[test]
    fn moments_are_times_and_nothing_else_is() {
        for text in ["2031-01-01T08:00:00Z", "2026-11-15T23:59:17.481Z", "2031-01-01t00:00:60+01:00"] {
            assert!(is_time(text), "{text}");
        }
        for text in [
            "",
            "yesterday",
            "2031-01-01",
            "2031-13-01T00:00:00Z",
            "2031-01-01T00:00:00",
            "1794787156",
            "é031-01-01T00:00:00.Z",
        ] {
            assert!(!is_time(text), "{text}");
        }
    }
}
