//! Start command of a connector, and its environment variables.
//!
//! A manifest is untrusted. It may name a program and variables, but no program relative to the current folder, and
//! no variable that makes a loader or an interpreter run other code.

use super::fault::{Faults, ManifestFaultCode};
use super::node::Node;

/// Maximum number of variables, and of arguments.
const LIST_MAX: usize = 256;

/// Variables that could run other code. A trailing `*` matches anything.
const DANGEROUS: [&str; 17] = [
    "LD_*",
    "DYLD_*",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "NLSPATH",
    "BASH_ENV",
    "ENV",
    "IFS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PERL5*",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
];

pub(super) fn read(root: &Node<'_>, faults: &mut Faults) -> Option<Vec<String>> {
    let node = root.child("command")?;
    let words = node.elements(faults)?;
    if words.is_empty() || words.len() > LIST_MAX {
        faults.error(ManifestFaultCode::TooMany, Some(&node), root, "a program and at most 255 arguments");
        return None;
    }
    let command = words.iter().filter_map(|word| word.as_text(faults)).collect::<Vec<_>>();
    let program = command.first()?;
    if program.contains('/') && (!program.starts_with('/') || program.split('/').any(|part| part == "..")) {
        let allowed = "an absolute path, or the bare name of a program on the PATH";
        faults.error_at(ManifestFaultCode::Dangerous, words[0].path(), words[0].text(), allowed);
        return None;
    }
    if let Some((_, node)) = command.iter().zip(&words).find(|(word, _)| word.contains('\0')) {
        faults.error_at(ManifestFaultCode::NotAllowed, node.path(), node.text(), "text without NUL");
        return None;
    }
    Some(command)
}

/// Text about a variable, for a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableText {
    /// The variable.
    pub name: String,
    /// Label of its field.
    pub label: Option<String>,
    /// Its purpose.
    pub description: Option<String>,
}

/// The variables, and the texts of those written as objects.
pub(super) fn read_environment(
    requirements: Option<&Node<'_>>,
    faults: &mut Faults,
) -> (Vec<String>, Vec<VariableText>) {
    let Some(node) = requirements.and_then(|node| node.child("environment_variables")) else {
        return (Vec::new(), Vec::new());
    };
    let elements = node.elements(faults).unwrap_or_default();
    if elements.len() > LIST_MAX {
        faults.error(ManifestFaultCode::TooMany, Some(&node), &node, "at most 256 names");
        return (Vec::new(), Vec::new());
    }
    let (mut names, mut texts) = (Vec::new(), Vec::new());
    for element in elements {
        let Some(named) = element.child("name") else {
            names.extend(read_variable(&element, faults));
            continue;
        };
        let Some(name) = read_variable(&named, faults) else { continue };
        // An invalid text is no reason to refuse a connector.
        let mut unread = Faults::default();
        let mut text = |key: &str| element.optional_text(key, &mut unread);
        let (label, description) = (text("label"), text("description"));
        if label.is_some() || description.is_some() {
            texts.push(VariableText { name: name.clone(), label, description });
        }
        names.push(name);
    }
    (names, texts)
}

/// A valid name of an environment variable.
pub(super) fn read_variable(node: &Node<'_>, faults: &mut Faults) -> Option<String> {
    let name = node.as_text(faults)?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !name.bytes().all(plain) || name.starts_with(|c: char| c.is_ascii_digit()) {
        let allowed = "letters, digits and `_`, not beginning with a digit";
        faults.error_at(ManifestFaultCode::NotAllowed, node.path(), node.text(), allowed);
        return None;
    }
    let upper = name.to_ascii_uppercase();
    let is_like = |pattern: &&str| match pattern.strip_suffix('*') {
        Some(prefix) => upper.starts_with(prefix),
        None => upper == **pattern,
    };
    if DANGEROUS.iter().any(is_like) {
        let allowed = "a variable of the connector's own";
        faults.error_at(ManifestFaultCode::Dangerous, node.path(), node.text(), allowed);
        return None;
    }
    Some(name)
}
