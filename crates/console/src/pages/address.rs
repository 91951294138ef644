//! Addresses on this console, made of names from outside: each part is encoded, so that a name cannot lead elsewhere.

use std::fmt::Write as _;

/// The page of a connection.
pub(crate) fn connection(name: &str) -> String {
    href(&["connections", name])
}

/// What is missing of a connection.
pub(crate) fn gaps(name: &str) -> String {
    href(&["connections", name, "gaps"])
}

/// What is missing of one of its streams.
pub(crate) fn gaps_of(name: &str, stream: &str) -> String {
    href_with(&["connections", name, "gaps"], &[("stream", stream)])
}

/// Something that can be done about a gap.
pub(crate) fn gap_form(name: &str, gap_id: &str, form: &str) -> String {
    href(&["connections", name, "gaps", gap_id, form])
}

/// The page of a run.
pub(crate) fn run(run_id: &str) -> String {
    href(&["runs", run_id])
}

/// The records of a stream.
pub(crate) fn stream(name: &str, stream: &str) -> String {
    href(&["data", name, stream])
}

/// One record.
pub(crate) fn record(name: &str, stream: &str, key: &str) -> String {
    href_with(&["data", name, stream, "record"], &[("key", key)])
}

/// The form that adds a connection of this connector.
pub(crate) fn add(connector: &str) -> String {
    href(&["add", connector])
}

/// An address of these parts.
pub(crate) fn href(parts: &[&str]) -> String {
    parts.iter().fold(String::new(), |mut path, part| {
        path.push('/');
        path.push_str(&encoded(part));
        path
    })
}

/// The same with a query.
pub(crate) fn href_with(parts: &[&str], query: &[(&str, &str)]) -> String {
    let mut address = href(parts);
    for (at, (name, value)) in query.iter().enumerate() {
        address.push(if at == 0 { '?' } else { '&' });
        address.push_str(name);
        address.push('=');
        address.push_str(&encoded(value));
    }
    address
}

fn encoded(part: &str) -> String {
    // A part of dots alone would be taken for a step up.
    let is_dots = !part.is_empty() && part.bytes().all(|byte| byte == b'.');
    part.bytes().fold(String::with_capacity(part.len()), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') || (byte == b'.' && !is_dots) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_part_of_an_address() {
        assert_eq!(href(&["connections", "a/../b?c#d e"]), "/connections/a%2F..%2Fb%3Fc%23d%20e");
        assert_eq!(href(&["data", ".."]), "/data/%2E%2E");
        assert_eq!(href_with(&["gaps"], &[("after", "1&x=2"), ("s", "ä")]), "/gaps?after=1%26x%3D2&s=%C3%A4");
    }
}
