//! Reads fuzz input as a block of HTTP headers, so that a stored input can be read and written by
//! hand. Shared by the header targets; never fails: a line that is no header is left out.

use gleaner_governor::WallTime;

/// 2026-11-16 12:00:00 UTC. Fixed, so that a reproducer stays one.
pub const NOW: WallTime = WallTime::from_unix_millis(1_794_830_400_000);

/// `name: value`, one per line.
pub fn headers(input: &[u8]) -> Vec<(&str, &[u8])> {
    input.split(|byte| *byte == b'\n').filter_map(header).collect()
}

fn header(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let name = std::str::from_utf8(&line[..colon]).ok()?;
    Some((name, &line[colon + 1..]))
}
