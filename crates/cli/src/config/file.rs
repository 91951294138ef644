//! `config.toml`: which keys are in it, on which line. A key that nobody reads is a mistake, and is said.

use super::{Declared, options};
use gleaner_app::{AppError, nearest};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// More than anybody would write by hand into a file with so few keys.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Parts of keys that hold what must not be here.
const SECRET: [&str; 9] =
    ["secret", "token", "password", "passwd", "passphrase", "credential", "cookie", "api_key", "apikey"];

/// A value, and where it stands.
#[derive(Debug)]
pub(super) struct InFile {
    pub(super) declared: &'static Declared,
    pub(super) text: String,
    pub(super) line: usize,
}

/// All values of a file. None if there is no file.
pub(super) fn read(path: &Path) -> Result<Vec<InFile>, AppError> {
    let unreadable = |error: io::Error| {
        let hint = "make it a text file that you may read, or move it away";
        AppError::usage(format!("{}: {error}", path.display()), hint)
    };
    let file = match File::open(path) {
        Ok(file) => file,
        // The data root may not be there yet.
        Err(error) if is_absent(&error) => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut text = String::new();
    let length = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
    if length as u64 > FILE_BYTES_MAX {
        let hint = "it holds a few lines; move what does not belong there away";
        return Err(AppError::usage(format!("{} is longer than 64 KiB", path.display()), hint));
    }
    let reading = Reading { path, text: &text };
    let table = DeTable::parse(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| reading.line(span.start));
        reading.fault(line, error.message(), "correct it; docs/configuration.md has an example")
    })?;
    let mut found = Vec::new();
    reading.walk("", table.get_ref(), &mut found)?;
    Ok(found)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reading<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.as_bytes().iter().take(at).filter(|&&byte| byte == b'\n').count() + 1
    }

    fn fault(&self, line: usize, what: &str, hint: &str) -> AppError {
        AppError::usage(format!("{} line {line}: {what}", self.path.display()), hint)
    }

    /// Tables become sections. How deep they go is bounded by the parser.
    fn walk(&self, section: &str, table: &DeTable<'_>, found: &mut Vec<InFile>) -> Result<(), AppError> {
        for (name, value) in table {
            let key = format!("{section}{}", name.get_ref());
            let line = self.line(name.span().start);
            match value.get_ref() {
                DeValue::Table(inner) if is_section(&key) => self.walk(&format!("{key}."), inner, found)?,
                _ => found.push(self.option(&key, value, line)?),
            }
        }
        Ok(())
    }

    fn option(&self, key: &str, value: &Spanned<DeValue<'_>>, line: usize) -> Result<InFile, AppError> {
        let small = key.to_ascii_lowercase();
        if SECRET.iter().any(|part| small.contains(part)) {
            // Without its value.
            let hint = "put it into the environment (NAME, NAME_FILE or NAME_COMMAND), or let `gleaner add` ask for it";
            return Err(self.fault(
                line,
                &format!("{key} looks like a secret, and this file is no place for one"),
                hint,
            ));
        }
        let Some(declared) = options().find(|declared| declared.key == key) else {
            let hint = match nearest(key, options().map(|declared| declared.key)) {
                Some(near) => format!("did you mean {near}? docs/configuration.md has them all"),
                None => "docs/configuration.md has them all".to_owned(),
            };
            return Err(self.fault(line, &format!("there is no option {key}"), &hint));
        };
        let text = match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
            }
            DeValue::Float(number) => Some(number.as_str().to_owned()),
            DeValue::Boolean(is_so) => Some(is_so.to_string()),
            _ => None,
        };
        let hint = format!("write it like this: {key} = {}", declared.example);
        let text = text.ok_or_else(|| self.fault(line, &format!("{key} is neither a text nor a number"), &hint))?;
        Ok(InFile { declared, text, line })
    }
}

/// Whether options have names that begin so.
fn is_section(name: &str) -> bool {
    options().any(|declared| declared.key.split_once('.').is_some_and(|(section, _)| section == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        format!("{:?}", read(&path).unwrap_err())
    }

    #[test]
    fn a_key_that_nobody_reads_is_named_with_the_nearest() {
        let error = fault("\n[run]\nmax_request = 5\n");
        assert!(error.contains("line 3: there is no option run.max_request"), "{error}");
        assert!(error.contains("did you mean run.max_requests?"), "{error}");
        let error = fault("[rn]\nmax_requests = 5");
        assert!(error.contains("there is no option rn"), "{error}");
    }

    #[test]
    fn a_secret_is_refused_and_not_repeated() {
        for text in ["github_token = \"gh-canary\"", "[run]\nPassword = \"gh-canary\"", "run.api_key = \"gh-canary\""] {
            let error = fault(text);
            assert!(error.contains("looks like a secret") && error.contains("NAME_COMMAND"), "{error}");
            assert!(!error.contains("canary"), "{error}");
        }
    }

    #[test]
    fn what_is_no_toml_or_no_value_is_said_with_its_line() {
        assert!(fault("a = 1\nb = [1,\n").contains("line"), "{}", fault("b = [1,"));
        assert!(fault("run.max_requests = [1]").contains("neither a text nor a number"));
        assert!(fault("run = 5").contains("there is no option run"));
        assert!(fault("run.max_requests = 99999999999999999999").contains("line 1"));
        assert!(fault(&"#".repeat(70_000)).contains("longer than 64 KiB"));
    }
}
