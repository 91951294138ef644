//! Checks all texts for people: every code has one, none is used twice, and the provider is not blamed wrongly.
//!
//! Why a check at start besides the tests: people who translate and edit texts do not run the tests. The program
//! reports an empty or false sentence before it begins. It compares words only and cannot judge a sentence.

use crate::manifest::ManifestFaultCode;
use crate::messages::hints::RecoveryAction;
use crate::words::reasons::{AbsenceReason, DeferReason, ErrorClass, PressureReason};
use crate::words::terminal::TerminalReason;
use crate::words::violation::ViolationCode;
use crate::words::vocabulary::Wording;

/// An invalid text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordingFault {
    /// A sentence is missing.
    #[error("the text of {0} is not complete")]
    Incomplete(&'static str),
    /// It says that the service is busy, and the code is not a pressure reason.
    #[error("the text of {0} blames the service")]
    BlamesTheService(&'static str),
    /// Two codes are told in the same words.
    #[error("{0} and {1} have the same text")]
    SameText(&'static str, &'static str),
}

/// Checks every vocabulary. A program calls it once when it starts.
///
/// # Errors
///
/// The first invalid text.
pub fn check_wording() -> Result<(), WordingFault> {
    check(&all_entries())
}

struct Entry {
    code: &'static str,
    wording: Wording,
    may_blame: bool,
}

fn all_entries() -> Vec<Entry> {
    /// The entries of one vocabulary.
    macro_rules! entries {
        ($vocabulary:ident, $may_blame:expr) => {
            $vocabulary::ALL.iter().map(|member| Entry {
                code: member.code(),
                wording: member.wording(),
                may_blame: $may_blame,
            })
        };
    }
    entries!(PressureReason, true)
        .chain(entries!(DeferReason, false))
        .chain(entries!(AbsenceReason, false))
        .chain(entries!(ErrorClass, false))
        .chain(entries!(RecoveryAction, false))
        .chain(entries!(TerminalReason, false))
        .chain(entries!(ViolationCode, false))
        .chain(entries!(ManifestFaultCode, false))
        .collect()
}

fn check(entries: &[Entry]) -> Result<(), WordingFault> {
    for (index, entry) in entries.iter().enumerate() {
        let Wording { what, why, next } = entry.wording;
        if entry.code.is_empty() || [what, why, next].iter().any(|text| !is_sentence(text)) {
            return Err(WordingFault::Incomplete(entry.code));
        }
        if !entry.may_blame && [what, why, next].iter().any(|text| blames_the_service(text)) {
            return Err(WordingFault::BlamesTheService(entry.code));
        }
        if let Some(other) = entries[..index].iter().find(|other| other.wording.what == what) {
            return Err(WordingFault::SameText(other.code, entry.code));
        }
    }
    Ok(())
}

fn is_sentence(text: &str) -> bool {
    text.starts_with(char::is_uppercase) && text.ends_with('.') && text.contains(' ')
}

/// Words for a provider under load. Only pressure reasons may use them.
const BLAME: [&str; 9] = [
    "busy",
    "overload",
    "pressure",
    "rate limit",
    "throttl",
    "too many requests",
    "slowed",
    "limiting how fast",
    "service asked",
];

/// Whether a text says, or suggests, that the service is busy.
#[must_use]
pub fn blames_the_service(text: &str) -> bool {
    let text = text.to_lowercase();
    BLAME.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_copy_and_only_pressure_copy_blames_the_service() {
        assert_eq!(check_wording(), Ok(()));
        for pressure in PressureReason::ALL {
            let Wording { what, why, .. } = pressure.wording();
            assert!(blames_the_service(what) || blames_the_service(why), "{pressure}");
        }
    }

    #[test]
    fn the_check_finds_what_it_looks_for() {
        let entry = |code, what, may_blame| Entry {
            code,
            wording: Wording { what, why: "It was so.", next: "Nothing to do." },
            may_blame,
        };
        assert_eq!(check(&[entry("a", "", false)]), Err(WordingFault::Incomplete("a")));
        assert_eq!(check(&[entry("a", "no capital letter.", false)]), Err(WordingFault::Incomplete("a")));
        assert_eq!(check(&[entry("a", "The service is busy.", false)]), Err(WordingFault::BlamesTheService("a")));
        assert_eq!(check(&[entry("a", "The service is busy.", true)]), Ok(()));
        assert_eq!(
            check(&[entry("a", "It stopped.", false), entry("b", "It stopped.", false)]),
            Err(WordingFault::SameText("a", "b"))
        );
    }

    #[test]
    fn run_cap_copy_names_a_self_imposed_budget_without_implying_source_pressure() {
        let Wording { what, why, next } = ErrorClass::RunCapDeferred.wording();
        assert!(what.contains("saved a batch") && what.contains("own budget"));
        assert!(next.contains("next run continues"));
        assert!(![what, why, next].iter().any(|text| blames_the_service(text)));
    }

    #[test]
    fn generic_retry_exhausted_copy_is_not_specific_to_a_configured_cap() {
        let generic = AbsenceReason::RetryExhausted.wording();
        let capped = ErrorClass::RunCapDeferred.wording();
        assert!(generic.what.contains("retries") && generic.what.contains("used up"));
        assert_ne!(generic, capped);
        assert_ne!(generic.what, capped.what);
        let Wording { what, why, next } = generic;
        for text in [what, why, next] {
            assert!(!blames_the_service(text) && !text.contains("cap") && !text.contains("limit"), "{text}");
        }
    }
}
