//! The options of commands that change a connection: check, answer, pause, resume, cancel, remove.

use super::collect::{HomeArgs, duration};
use clap::Args;
use gleaner_app::Expires;
use gleaner_engine::WallTime;
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    /// The connection.
    pub(crate) connection: String,
    /// Asks for the credentials, tests them, and stores them encrypted if they work.
    #[arg(long)]
    pub(crate) sign_in: bool,
    /// The longest time that the test may take.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "60s")]
    pub(crate) max_duration: Duration,
    /// Prints one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct AnswerArgs {
    /// The number of the question [default: lists the open questions].
    #[arg(value_name = "ID")]
    pub(crate) id: Option<i64>,
    /// Reads the answer from standard input, a JSON object with a key per field.
    #[arg(long, requires = "id", conflicts_with = "decline")]
    pub(crate) stdin: bool,
    /// Declines to answer.
    #[arg(long, requires = "id", conflicts_with = "remember")]
    pub(crate) decline: bool,
    /// Stores the credentials among the answers, encrypted, for later runs.
    #[arg(long, requires = "id")]
    pub(crate) remember: bool,
    /// Prints one JSON object per line and question.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct PauseArgs {
    /// The connection.
    pub(crate) connection: String,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ResumeArgs {
    /// The connection.
    pub(crate) connection: String,
    /// The new end of your permission to collect: a date, a time in RFC 3339, or never.
    #[arg(long, value_name = "TIME|never", value_parser = expires)]
    pub(crate) expires: Option<Expires>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CancelArgs {
    /// The connection.
    pub(crate) connection: String,
    /// Stops at once, without finishing the current slice.
    #[arg(long)]
    pub(crate) now: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Args, Debug)]
pub(crate) struct RemoveArgs {
    /// The connection.
    pub(crate) connection: String,
    /// Deletes its records, too, for good.
    #[arg(long)]
    pub(crate) purge: bool,
    /// With --purge: does not ask for confirmation.
    #[arg(short, long, requires = "purge")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// A date, a time, or `never`.
pub(crate) fn expires(text: &str) -> Result<Expires, String> {
    if text == "never" {
        return Ok(Expires::Never);
    }
    let wrong = || "give a date like 2031-12-31, a time like 2031-12-31T18:00:00Z, or never".to_owned();
    WallTime::parse(text).map(Expires::At).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_ends_at_a_date_at_a_time_or_never() {
        assert_eq!(expires("never"), Ok(Expires::Never));
        assert_eq!(expires("1970-01-02"), Ok(Expires::At(WallTime::from_unix_millis(86_400_000))));
        assert_eq!(expires("1970-01-01T01:00:00+01:00"), Ok(Expires::At(WallTime::default())));
        assert_eq!(
            expires("1970-01-01T00:00:01"),
            Ok(Expires::At(WallTime::from_unix_millis(1000))),
            "UTC without a zone"
        );
        for text in ["", "tomorrow", "2031-13-01"] {
            assert!(expires(text).is_err(), "{text}");
        }
    }
}
