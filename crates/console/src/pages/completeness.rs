//! How much of what should be here is here, added up over streams, and honest where nobody can know.

use super::words::{counted, number, percent};
use gleaner_app::CoveredStream;
use gleaner_store::{Missing, Share};

/// Several streams together. Those of which nobody knows the whole are counted and not guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shares {
    here: u64,
    whole: u64,
    known: u64,
    unknown: u64,
}

impl Shares {
    pub(crate) fn add(&mut self, stream: &CoveredStream) {
        match stream.share() {
            Share::Known(_) => {
                self.here += stream.coverage.summary.records;
                self.whole += stream.coverage.summary.records + stream.coverage.missing();
                self.known += 1;
            }
            Share::Unknown(_) => self.unknown += 1,
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.here += other.here;
        self.whole += other.whole;
        self.known += other.known;
        self.unknown += other.unknown;
    }

    /// In hundredths of a percent, rounded down.
    pub(crate) fn hundredths(&self) -> Option<u64> {
        let share = (self.known > 0).then(|| u128::from(self.here) * 10_000 / u128::from(self.whole.max(1)));
        share.map(|share| u64::try_from(share).unwrap_or(10_000))
    }

    pub(crate) fn percent(&self) -> Option<String> {
        self.hundredths().map(percent)
    }

    /// What the figure does not cover.
    pub(crate) fn note(&self) -> String {
        match (self.known, self.unknown) {
            (0, 0) => "nothing is collected yet".to_owned(),
            (_, 0) => "of everything that is known of".to_owned(),
            (0, _) => "the connectors do not say how much there is".to_owned(),
            (_, unknown) => format!(
                "of what is known of; {} of {} streams cannot say",
                number(unknown),
                number(self.known + unknown)
            ),
        }
    }
}

/// All that is missing in a sentence. What the owner ignores is missing all the same, and said when nothing else is.
pub(crate) fn missing_sentence(missing: &Missing) -> String {
    match (missing.wanted(), missing.ignored) {
        (0, 0) => "Nothing that is known of is missing.".to_owned(),
        (0, ignored) => format!("Nothing is missing but {} that you ignore.", counted(ignored, "record", "records")),
        (_, 0) => format!("{} missing.", counted(missing.total(), "record or part is", "records or parts are")),
        (_, ignored) => {
            let missing = counted(missing.total(), "record or part is", "records or parts are");
            format!("{missing} missing, {} of them ignored by you.", number(ignored))
        }
    }
}

/// What is missing, by cause, in a line.
pub(crate) fn missing_words(missing: &Missing) -> String {
    let parts = missing.causes().map(|(_, count, words)| format!("{} {words}", number(count))).collect::<Vec<_>>();
    if parts.is_empty() { "nothing that is known of".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_never_called_complete() {
        let said = |source, ignored| missing_sentence(&Missing { source, ignored, ..Missing::default() });
        assert_eq!(said(0, 0), "Nothing that is known of is missing.");
        assert_eq!(said(0, 1), "Nothing is missing but 1 record that you ignore.");
        assert_eq!(said(2, 0), "2 records or parts are missing.");
        assert_eq!(said(2, 1), "3 records or parts are missing, 1 of them ignored by you.");
    }
}
