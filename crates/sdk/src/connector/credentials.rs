//! Credentials of a connector: from its environment, or asked from the owner.
//!
//! They are looked up before anything is collected. If one is missing and somebody can answer, the owner is asked,
//! and nothing else is sent until the answer arrives. If nobody can answer, the run fails at once and names the
//! missing ones.

use crate::emit::Emitter;
use crate::question::{self, Answered, Question, Reply};
use crate::stop::Stop;
use gleaner_protocol::{Auth, Manifest, RecoveryAction};

/// Credentials of one connection, by required name and alias.
pub(crate) type Credentials = Reply;

impl Credentials {
    /// All values as one text, to identify the account.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        let mut values = self.values.values().map(String::as_str).collect::<Vec<_>>();
        values.sort_unstable();
        values.dedup();
        (!values.is_empty()).then(|| values.join("\0"))
    }

    /// A value has all names of its group.
    fn put(&mut self, group: &[String], value: &str) {
        for name in group {
            self.values.insert(name.clone(), value.to_owned());
        }
    }
}

/// Finds every required credential. A replay needs no sign-in and asks nobody: missing ones get a placeholder.
pub(crate) fn obtain(
    emitter: &mut Emitter<'_>,
    manifest: &Manifest,
    variable: &dyn Fn(&str) -> Option<String>,
    someone_can_answer: bool,
    is_playing: bool,
) -> Result<Credentials, Stop> {
    let mut found = Credentials::default();
    let Some(auth) = &manifest.auth else { return Ok(found) };
    let missing = search(auth, variable, &mut found);
    if missing.is_empty() {
        return Ok(found);
    }
    if is_playing {
        missing.iter().for_each(|group| found.put(group, &format!("placeholder-of-{}", group.join("-"))));
        return Ok(found);
    }
    let sentence = format!("{} needs {} to sign in", manifest.display_name, named(&missing));
    if !someone_can_answer {
        let advice = "set it for this connection, and run again";
        return Err(missing_for_good(format!("{sentence}, and this run cannot ask the owner; {advice}")));
    }
    // One name of each group is enough.
    let names = missing.iter().filter_map(|group| group.first().cloned()).collect();
    match question::put(emitter, &Question::missing(sentence.clone(), names))? {
        Answered::Values(values) => {
            let entered = |name: &str| values.get(name).cloned().or_else(|| variable(name));
            let still_missing = search(auth, &entered, &mut found);
            if still_missing.is_empty() {
                return Ok(found);
            }
            Err(missing_for_good(format!("the answer does not have {}", named(&still_missing))))
        }
        Answered::Declined => Err(Stop::Cancelled),
        Answered::NotAtAll => Err(missing_for_good(format!("{sentence}, and nobody answered"))),
    }
}

/// Puts the values into `found`, and returns the groups without one.
fn search<'a>(auth: &'a Auth, variable: &dyn Fn(&str) -> Option<String>, found: &mut Credentials) -> Vec<&'a [String]> {
    let mut missing = Vec::new();
    for group in &auth.required {
        let value = group.iter().find_map(|name| variable(name).filter(|value| !value.trim().is_empty()));
        match value {
            Some(value) => found.put(group, &value),
            None => missing.push(group.as_slice()),
        }
    }
    missing
}

/// `A, and B or C`.
fn named(groups: &[&[String]]) -> String {
    groups.iter().map(|group| group.join(" or ")).collect::<Vec<_>>().join(", and ")
}

fn missing_for_good(message: impl Into<String>) -> Stop {
    Stop::for_good(message, RecoveryAction::RefreshCredentials).with_code("missing_credentials")
}
