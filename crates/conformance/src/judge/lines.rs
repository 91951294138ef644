//! The first run from the beginning, line by line: which check a breach belongs to, and what a run
//! without one proves.

use crate::observed::{Late, Line, Observed};
use crate::report::Board;
use gleaner_protocol::{Violation, ViolationCode as Code};

/// Checks that any line proves, as far as the run came.
const PROVEN_BY_LINES: [&str; 8] = [
    "starts",
    "first_line_in_time",
    "utf8",
    "no_noise",
    "json_objects",
    "known_types",
    "message_fields",
    "no_unasked_questions",
];

/// Checks that a run proves which came to its end without a breach.
const PROVEN_BY_THE_END: [&str; 8] = [
    "ends_in_time",
    "complete_lines",
    "done_present",
    "done_last",
    "done_error",
    "records_emitted",
    "exit_code",
    "exits_after_ack",
];

/// Judges what can be seen in a run from the beginning that was left alone.
pub(crate) fn judge(run: &Observed, board: &mut Board<'_>) {
    judge_breach(run, board);
    judge_lateness(run, board);
    if !run.lines.is_empty() {
        for id in PROVEN_BY_LINES {
            board.pass(id);
        }
    }
    let proves = |kind: &str| run.of_type(kind).next().is_some();
    for (kind, ids) in [
        ("RECORD", &["streams_in_scope", "key_shape"][..]),
        ("STATE", &["state_streams", "state_shape"]),
        ("DETAIL_GAP", &["gap_shape", "gap_reasons"]),
        ("DETAIL_COVERAGE", &["coverage_consistent"]),
    ] {
        for id in ids.iter().filter(|_| proves(kind)) {
            board.pass(id);
        }
    }
    judge_end(run, board);
}

fn judge_breach(run: &Observed, board: &mut Board<'_>) {
    let Some(violation) = run.violation() else { return };
    let number = violation.position.map(|position| position.line).or_else(|| line_of(run, violation));
    let line = violation.position.and_then(|position| run.line(position.line));
    let mut what = violation.to_string();
    if run.lines.is_empty() {
        let errors = String::from_utf8_lossy(&run.errors);
        let last = errors.lines().last().unwrap_or_default().chars().take(200).collect::<String>();
        what = format!("it ended ({:?}) without a line; the last of its errors: {last:?}", run.exit);
    }
    board.fail(check_of(violation, line, run.lines.is_empty()), what, number);
}

/// Where a breach lies that the engine found later: the report that it is about, or the end.
fn line_of(run: &Observed, violation: &Violation) -> Option<u64> {
    let of_stream = |line: &&Line| violation.stream.is_some() && line.text("stream") == violation.stream.as_deref();
    let report = run.of_type("DETAIL_COVERAGE").filter(of_stream).last();
    report.or_else(|| run.lines.last()).map(|line| line.number)
}

fn judge_lateness(run: &Observed, board: &mut Board<'_>) {
    let Some(late) = run.late else { return };
    let id = match late {
        Late::FirstLine => "first_line_in_time",
        Late::End => "ends_in_time",
        Late::ExitAfterAck => "exits_after_ack",
        Late::ExitAfterTerm => "stops_on_sigterm",
    };
    board.fail(id, late.words(), run.last_line());
}

fn judge_end(run: &Observed, board: &mut Board<'_>) {
    let has_done = run.of_type("DONE").next().is_some();
    if run.violation().is_some() || run.late.is_some() || !has_done {
        return;
    }
    for id in PROVEN_BY_THE_END {
        board.pass(id);
    }
    let left = run.left_early.then(|| ("it exited while its input was still open".to_owned(), run.last_line()));
    board.judge("waits_for_ack", left);
    if run.succeeded() {
        board.pass("full_run");
    } else if let Some((what, line)) = run.trouble() {
        board.warn("full_run", what, line);
    }
}

/// The check that a breach belongs to.
fn check_of(violation: &Violation, line: Option<&Line>, nothing_came: bool) -> &'static str {
    let begins_with = |bytes: &[u8]| line.is_some_and(|line| line.bytes.trim_ascii_start().starts_with(bytes));
    match violation.code {
        Code::InvalidUtf8 | Code::NulByte => "utf8",
        Code::BadJson if begins_with(b"\xef\xbb\xbf") => "utf8",
        Code::BadJson if !begins_with(b"{") => "no_noise",
        Code::IncompleteLine => "complete_lines",
        Code::UnknownType => "known_types",
        Code::MissingField | Code::MalformedField | Code::LoneSurrogate => check_of_field(violation, line),
        Code::MalformedHint | Code::MalformedContinuation => "message_fields",
        Code::UnknownReason | Code::ContradictoryGap => "gap_reasons",
        Code::ContradictoryDone => "done_error",
        Code::AfterDone => "done_last",
        Code::StreamOutOfScope if line.is_some_and(|line| line.is("STATE")) => "state_streams",
        Code::StreamOutOfScope => "streams_in_scope",
        Code::KeyOutOfResources => "resources",
        Code::FieldOutOfScope => "fields",
        Code::TimeOutOfRange => "time_range",
        Code::DeleteOnAppendOnly => "deletes_allowed",
        Code::CoverageDuplicateKey
        | Code::CoverageKeyNotRequired
        | Code::CoverageOverlap
        | Code::CoverageRepeated
        | Code::CoverageUndeclaredParent
        | Code::CoverageForChild => "coverage_consistent",
        Code::InteractionWithoutBinding | Code::OutputWhileWaiting => "no_unasked_questions",
        Code::CountMismatch => "records_emitted",
        Code::ExitDisagrees => "exit_code",
        Code::ExitWithoutDone if nothing_came => "starts",
        Code::ExitWithoutDone => "done_present",
        Code::CredentialInOutput => "no_credentials_in_output",
        // Too long, too deep, no object, a key twice: no line that two programs read alike.
        _ => "json_objects",
    }
}

fn check_of_field(violation: &Violation, line: Option<&Line>) -> &'static str {
    let kind = line.and_then(|line| line.text("type")).unwrap_or_default();
    match (kind, violation.field) {
        (_, Some("type")) => "known_types",
        ("RECORD", Some("key")) => "key_shape",
        ("RECORD", Some("emitted_at")) => "emitted_at_is_time",
        ("STATE", _) => "state_shape",
        ("DETAIL_COVERAGE", _) => "coverage_consistent",
        ("DONE", _) => "done_error",
        (kind, _) if kind.starts_with("DETAIL_GAP") => "gap_shape",
        _ => "message_fields",
    }
}
