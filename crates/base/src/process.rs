//! Which processes there are, as Linux lists them in `/proc`.

use std::fs;

/// A process that is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
}

/// Every process that is alive; none where there is no `/proc`.
#[must_use]
pub fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter_map(|pid| parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// State, parent and group come after a name in parentheses that may hold anything. The dead are left out.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if state == "Z" || state == "X" {
        return None;
    }
    Some(Process { pid, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_move_the_fields() {
        assert_eq!(parse(7, "7 (a) b) S 4 5 6"), Some(Process { pid: 7, parent: 4, group: 5 }));
        assert_eq!(parse(7, "7 (a) Z 4 5 6"), None);
        assert_eq!(parse(7, "7 (a) Z 4"), None);
        assert_eq!(parse(7, "garbage"), None);
    }
}
