//! `gleaner new connector`: a folder with a connector that works, for its author to change.
//!
//! A template is itself a connector called "example", so that it can be run and checked as it lies there;
//! making a new one replaces that word. Nothing that exists is ever overwritten.

use crate::args::new::{Language, NewConnectorArgs};
use crate::error::CliError;
use crate::terminal::output::{Output, report_to_stderr};
use gleaner_base::outside::one_line;
use std::fs;
use std::io;
use std::path::Path;

/// A file of a template: where it goes, and what is in it.
type File = (&'static str, &'static str);

const PYTHON: [File; 6] = [
    ("README.md", include_str!("../../templates/python/README.md")),
    ("connector.py", include_str!("../../templates/python/connector.py")),
    ("exchanges.jsonl", include_str!("../../templates/python/exchanges.jsonl")),
    ("exchanges.py", include_str!("../../templates/python/exchanges.py")),
    ("gleaner.py", include_str!("../../templates/python/gleaner.py")),
    ("manifest.json", include_str!("../../templates/python/manifest.json")),
];

const RUST: [File; 6] = [
    (".gitignore", "/target\n"),
    ("Cargo.toml", include_str!("../../templates/rust/Cargo.toml.template")),
    ("README.md", include_str!("../../templates/rust/README.md")),
    ("manifest.json", include_str!("../../templates/rust/manifest.json")),
    ("src/main.rs", include_str!("../../templates/rust/src/main.rs")),
    ("tests/exchanges.jsonl", include_str!("../../templates/rust/tests/exchanges.jsonl")),
];

/// The longest name: it becomes part of file names and variables.
const NAME_BYTES_MAX: usize = 40;

pub(crate) fn run(args: &NewConnectorArgs, out: &mut Output) -> Result<(), CliError> {
    let name = Name::new(&args.name)?;
    let (files, build, command) = match args.lang {
        Language::Python => (PYTHON.as_slice(), "", "python3 connector.py".to_owned()),
        Language::Rust => (RUST.as_slice(), "cargo build\n  ", format!("target/debug/{}", name.key)),
    };
    let folder = args.into.as_deref().unwrap_or_else(|| Path::new("")).join(&name.key);
    create(&folder, files, &name)?;
    for (file, _) in files {
        out.line(&one_line(&folder.join(file).display().to_string()))?;
    }
    report_to_stderr(&format!(
        "It runs as it is. See it pass:\n  cd {}\n  export {}_TOKEN=anything\n  {build}gleaner conformance --manifest manifest.json -- {command}",
        one_line(&folder.display().to_string()),
        name.variable
    ));
    Ok(())
}

/// A name in the spellings that a template has.
struct Name {
    /// `my-notes`: file names, and the key of the connector.
    key: String,
    /// `MY_NOTES`: environment variables.
    variable: String,
    /// `My Notes`: for people.
    title: String,
}

impl Name {
    fn new(text: &str) -> Result<Self, CliError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_good = text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.len() <= NAME_BYTES_MAX
            && text.bytes().all(plain);
        if !is_good {
            let hint = format!("begin with a letter, then letters, digits, - and _; at most {NAME_BYTES_MAX}");
            return Err(CliError::usage(format!("{text:?} cannot be the name of a connector"), hint));
        }
        let words = text.split(['-', '_']).filter(|word| !word.is_empty());
        let title = words.map(|word| format!("{}{}", word[..1].to_ascii_uppercase(), &word[1..]));
        Ok(Self {
            key: text.to_owned(),
            variable: text.to_ascii_uppercase().replace('-', "_"),
            title: title.collect::<Vec<_>>().join(" "),
        })
    }

    /// A file of the template, for this name.
    fn put_into(&self, text: &str) -> String {
        text.replace("EXAMPLE", &self.variable).replace("Example", &self.title).replace("example", &self.key)
    }
}

fn create(folder: &Path, files: &[File], name: &Name) -> Result<(), CliError> {
    let shown = folder.display();
    fs::create_dir(folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            CliError::usage(format!("{shown} is there already"), "give another name, or remove it")
        }
        _ => CliError::usage(format!("{shown} cannot be made: {error}"), "give a folder that is there with --into DIR"),
    })?;
    for (file, text) in files {
        let path = folder.join(file);
        let written =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, name.put_into(text)));
        written.map_err(|error| {
            CliError::failed(
                format!("{} cannot be written: {error}", path.display()),
                format!("remove {shown} and try again where there is room"),
            )
        })?;
    }
    Ok(())
}
