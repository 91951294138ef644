//! Every check by its name: what it demands, why that matters, and what an author can do.
//!
//! One table, because the names are promised: scripts and issues refer to them. A name is never given
//! a new meaning; a check that is dropped takes its name with it.

/// One thing that is demanded of a connector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name. It stays.
    pub id: &'static str,
    /// What is demanded, as a sentence about the connector.
    pub title: &'static str,
    /// What goes wrong otherwise.
    pub why: &'static str,
    /// What to do about it.
    pub hint: &'static str,
}

macro_rules! checks {
    ($($id:ident = $title:literal, $why:literal, $hint:literal;)+) => {
        /// All checks, in the order in which they are reported.
        pub const CHECKS: &[Check] =
            &[$(Check { id: stringify!($id), title: $title, why: $why, hint: $hint }),+];
    };
}

checks! {
    // The manifest.
    manifest_valid = "The manifest can be read",
        "Nothing is started with a manifest that breaks a rule.",
        "Correct each place that is named.";
    manifest_clean = "The manifest contradicts itself nowhere",
        "Owners see a connection that never gets well.",
        "Change what the warning names.";
    manifest_schemas = "Every stream has a schema that can be used",
        "Without one nobody notices when a provider changes its answers.",
        "Add a JSON Schema to the stream, or correct it where the fault is.";
    manifest_primary_keys = "Every stream names its primary key, and the schema has it",
        "Records are told apart by it.",
        "Set `primary_key` to fields that the schema's properties have.";
    manifest_refresh_policy = "The manifest says when to run",
        "Without a policy a connection never runs automatically.",
        "Add `capabilities.refresh_policy` with a mode and a rationale.";
    // Starting.
    starts = "It starts and writes something",
        "A program that ends without a word leaves the owner guessing.",
        "Run the command by hand, give it a START line, and look at its errors.";
    first_line_in_time = "Its first line comes soon",
        "Owners take a silent program for a stuck one.",
        "Write a PROGRESS before anything slow, and flush it.";
    ends_in_time = "It comes to an end",
        "A run that never ends blocks its connection.",
        "Put a limit on every wait, and write DONE.";
    full_run = "A run from the beginning succeeds",
        "Most checks need a run that works.",
        "Give it what it needs: credentials, files, a network.";
    // Lines.
    utf8 = "Its output is UTF-8 without byte order mark and raw NUL",
        "Other bytes cannot be part of a message.",
        "Set the encoding of standard output to UTF-8, without a mark.";
    no_noise = "There are only messages on its standard output",
        "The first line that is no message ends the run.",
        "Send logs to standard error; look for a library that prints.";
    json_objects = "Every line is one JSON object",
        "Programs must agree about what was said.",
        "Write each message with a JSON library, on one line, each key once.";
    complete_lines = "Its last line ends with a line feed",
        "A line without its end may have been cut, and is not taken.",
        "End every message with a line feed, and flush before the end.";
    known_types = "Every message has a type that is known",
        "What is not known cannot be accounted for.",
        "Use the types in docs/protocol.md, in capitals.";
    message_fields = "Every message has the fields that it must have",
        "Without them it has no meaning.",
        "Compare the line with docs/protocol.md.";
    // Records.
    streams_in_scope = "It sends only streams that it was asked for",
        "Only what the owner granted may be collected.",
        "Look at `scope.streams` of START before you send.";
    key_shape = "Keys are texts, or lists of texts, and never empty",
        "A record without a key cannot be found again.",
        "Write numbers as text; leave out what has no key.";
    key_type_stable = "The keys of a stream all have the same number of parts",
        "The same record would be stored twice.",
        "Choose text or list for a stream, and stay with it.";
    key_unique_in_slice = "A key comes with one content between two states",
        "Of two contents of the same moment nobody knows which is right.",
        "Send each record once, or a state in between.";
    emitted_at_is_time = "`emitted_at` is a time",
        "The order of changes is shown by it.",
        "Write RFC 3339, for instance 2031-01-01T08:00:00Z.";
    fits_schema = "Records fit the schema of their stream",
        "A record that does not fit goes to quarantine.",
        "Correct the record, or the schema, at the place that is named.";
    primary_key_matches = "The primary key is in the record and is its key",
        "Two identities for one record end in two records.",
        "Make `key` from the fields that `primary_key` names.";
    deletes_allowed = "It deletes only where records may change",
        "An append-only stream only grows.",
        "Declare the stream `mutable_state`, or send no deletion.";
    append_only_unchanged = "Records of an append-only stream never change",
        "Whoever read it once does not look again.",
        "Declare the stream `mutable_state`, or leave out what changes.";
    evidence = "Pace and circuit are well-formed",
        "Evidence that cannot be read is dropped.",
        "Compare `collection_rate` and `provider_budget` with docs/protocol.md.";
    // States.
    state_streams = "States are for streams that it was asked for",
        "Another stream's cursor cannot be kept.",
        "Send STATE only for streams in scope.";
    state_shape = "Cursors are objects or null",
        "Anything else is not given back.",
        "Put your cursor into an object.";
    // What was asked for.
    one_stream = "Asked for one stream it sends nothing of others",
        "Only what the owner granted may be collected.",
        "Filter every message by `scope.streams`, states and gaps too.";
    resources = "Asked for one record it sends no other",
        "The owner named the records.",
        "Filter by `resources`, or do not claim `selection.resources`.";
    fields = "Asked for some fields it sends no others",
        "The owner named the fields.",
        "Keep `fields` and what the schema requires, or do not claim `selection.fields`.";
    time_range = "Asked for a range of time it sends nothing outside",
        "The owner named the time: since is in it, until is not.",
        "Compare the field that `consent_time_field` names.";
    complete_after_scope = "Runs that ask for less take nothing from a later run of everything",
        "A narrowed run passes over records; what takes them for collected never collects them.",
        "Keep no state but the cursor of START, and collect everything where that is null.";
    unknown_start_keys = "Keys of START that it does not know are ignored",
        "Newer runtimes say more.",
        "Read the keys you know and leave the others alone.";
    // Going on.
    first_incremental = "A first run with nothing saved works under the runtime",
        "Every connection begins with `incremental` and `state: null`.",
        "Treat `null`, an absent stream and an absent key as the beginning.";
    continues = "A run from the saved state works",
        "A cursor that is not understood stops the connection for good.",
        "Read back exactly what you wrote as cursor.";
    continues_with_little = "A run from the saved state does not send everything again",
        "Otherwise the provider pays for every run, and so does the owner.",
        "Begin at the cursor, or do not claim `incremental`.";
    resume_complete = "Killed at any point and started again, nothing is missing",
        "A cursor ahead of its records loses them for ever.",
        "Send everything that a cursor covers before the STATE.";
    resume_bounded = "Started again it repeats one slice at most",
        "Runs that are killed often would never get anywhere.",
        "Begin at the cursor of the last slice.";
    deterministic = "Two runs from the beginning give the same keys",
        "Keys that change make new records of old ones.",
        "Take keys from the provider, not from time, order or chance.";
    // Gaps.
    gap_shape = "Messages about gaps have the fields that they must have",
        "A gap that cannot be read is a record lost.",
        "Compare the line with docs/protocol.md.";
    gap_reasons = "Gaps give a known reason, and a run cap is no failure",
        "The reason decides what happens next.",
        "For a run cap: `retry_exhausted`, class `run_cap_deferred`, no `http_status`.";
    gaps_answered = "Every gap that is served is recovered, attempted or put back",
        "A gap without an answer is served for ever.",
        "End each served gap with one of the three messages.";
    gap_ids = "Ids of gaps and leases are repeated exactly",
        "An id that was not served settles nothing.",
        "Copy `gap_id` and `lease_id` from what was served.";
    gap_streams = "A gap is answered, and fetched, as one of its own stream",
        "With the function of another stream the wrong record is fetched, and the right one stays missing.",
        "Look at `stream` of each served gap, and repeat it in the answer.";
    recovered_with_record = "A gap is called recovered only after its record was sent",
        "Otherwise the gap is closed, and the record is missing without a word.",
        "Send RECORD before DETAIL_GAP_RECOVERED; leave alone what you skip, or put it back with DETAIL_GAP.";
    gap_pages = "It asks for gaps until there are no more",
        "A page is no cap: the rest would wait for another run.",
        "Send DETAIL_GAPS_PAGE_REQUEST until the answer is empty.";
    recovery_only = "Asked to recover only, it does not walk forward",
        "A provider that rate-limits must be left alone.",
        "With `recovery_only` send nothing but what closes gaps.";
    run_budget = "A run that is stopped by its own budget is no failure",
        "The owner set the cap; the rest is for the next run.",
        "Send gaps of class `run_cap_deferred` and end with `succeeded`.";
    // Coverage.
    coverage_consistent = "Coverage reports count every key once",
        "A report that contradicts itself proves nothing.",
        "Each key once per list, one outcome per key, one report per pair of streams.";
    coverage_complete = "Every required key has an outcome",
        "The checkpoint is withheld, and everything is collected again.",
        "Each required key is hydrated, a gap that was sent, or skipped.";
    hydrated_with_record = "A key is called hydrated only if its record was sent",
        "The checkpoint moves past a record that nobody has.",
        "List in `hydrated_keys` what you sent; what the scope left out goes into `optional_skip_keys`.";
    coverage_last = "The coverage report of a stream comes after its last record and gap",
        "A report before the end of its pass says something about records that are not there yet.",
        "Send DETAIL_COVERAGE when the pass is over.";
    coverage_names_gaps = "`gap_keys` names every gap that was sent",
        "The report and the gaps contradict each other.",
        "Add the key of each DETAIL_GAP to `gap_keys`; one that stands for many records is excepted.";
    coverage_reported = "There is a report for every declared parent",
        "The parent's checkpoint is withheld without it.",
        "Send DETAIL_COVERAGE for each of `parent_streams`, also when there was nothing to do.";
    // The end.
    done_present = "It says DONE before it ends",
        "Without DONE nothing shows that the run is complete.",
        "Write DONE on every way out, also after an error.";
    done_last = "Nothing comes after DONE",
        "What comes after the end cannot be accounted for.",
        "Write DONE once, after all threads have ended.";
    done_error = "DONE is well-formed, and a success has no error",
        "Success with an error is neither.",
        "Leave `error` out when you succeeded.";
    records_emitted = "`records_emitted` is the number of RECORDs",
        "The count is how a lost line is noticed.",
        "Count lines of type RECORD, deletions too.";
    exit_code = "The exit code agrees with DONE",
        "Code 0 exactly when it succeeded.",
        "Exit with 0 after `succeeded`, with another code otherwise.";
    honest_end = "A run that leaves something out says so",
        "A success without gaps and skips means that nothing is missing.",
        "Send a DETAIL_GAP or SKIP_RESULT for what you leave out, or end with `failed`.";
    waits_for_ack = "It waits for the end of its input before it exits",
        "The end of input says that everything is saved.",
        "After DONE, read standard input until it ends.";
    exits_after_ack = "It exits soon after the end of its input",
        "What does not end blocks the connection.",
        "Stop timers, threads and browsers before DONE.";
    // Rough treatment.
    slow_reader = "A slow reader loses nothing",
        "The store may be slower than the provider.",
        "Write blocking, or wait until the pipe can take more.";
    early_end_of_input = "The end of its input does not hang it",
        "Nobody may be there to answer.",
        "Go on without input, or end with DONE.";
    stops_on_sigterm = "It ends soon after SIGTERM",
        "What ignores it is killed in the middle of its work.",
        "Finish the slice, say DONE `cancelled`, and exit.";
    retry_after_kept = "A Retry-After is kept even if it is killed in between",
        "A provider that is asked again too early may lock the account.",
        "Write down until when to wait, in the folder that `GLEANER_PACING_DIR` names, before anything else.";
    no_processes_left = "It leaves no process behind",
        "Browsers and helpers pile up with every run.",
        "End and wait for every child before you exit.";
    // Questions and secrets.
    no_unasked_questions = "It asks only where somebody can answer",
        "A question to nobody ends the run.",
        "Look for `interactive` in `bindings`; without it end with DONE `failed`.";
    missing_credentials = "Without its credentials it fails and says so",
        "The owner must learn what to give.",
        "Check credentials first and end with DONE `failed` and an error.";
    no_credentials_in_output = "Its credentials are in no message",
        "Records are shown and exported, and messages are shown.",
        "Remove tokens from addresses, cursors, locators and texts.";
    no_credentials_in_errors = "Its credentials are not on standard error",
        "Logs are shown to others.",
        "Remove request headers and addresses with tokens from your logs.";
}

/// The check of this name.
#[must_use]
pub(crate) fn find(id: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_plain_and_given_once() {
        let ids = CHECKS.iter().map(|check| check.id).collect::<BTreeSet<_>>();
        assert_eq!(ids.len(), CHECKS.len());
        assert!(ids.len() >= 25);
        assert!(ids.iter().all(|id| id.bytes().all(|byte| byte.is_ascii_lowercase() || b"_8".contains(&byte))));
        assert_eq!(find("utf8").map(|check| check.id), Some("utf8"));
    }
}
