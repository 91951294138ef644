//! A gap closes only if the store has what the connector says it has brought.
//!
//! A connector says "recovered" about conversations 1 to 3 and sends whatever the case is about. The gap's key is
//! that of a conversation; records are messages, which name their conversation in a field.

use crate::world::{Home, Sitting, Terms, delete, done, record, slice_state};
use gleaner_engine::{GapsConfirmed, Misfit, RunOutcome, Validate};
use gleaner_protocol::RawJson;
use gleaner_store::{GapFilter, GapSummary};

const MANIFEST: &str = r#"{"connector_id":"x","connector_key":"x","version":"1","streams":[
    {"name":"conversations","semantics":"mutable_state"},
    {"name":"messages","semantics":"mutable_state"},
    {"name":"people","semantics":"mutable_state"}]}"#;

const PAGE: &str = "{\"type\":\"DETAIL_GAPS_PAGE_REQUEST\",\"request_id\":\"p\",\"reference_only\":true}\n";

/// Bodies with a member `bad` do not fit.
#[derive(Debug)]
struct NoBad;

impl Validate for NoBad {
    fn check(&self, _: &str, body: &RawJson<'_>) -> Result<(), Misfit> {
        if body.as_str().contains("bad") {
            Err(Misfit { pointer: "/bad".to_owned(), ..Misfit::default() })
        } else {
            Ok(())
        }
    }
}

fn gap(fields: &str) -> String {
    format!(
        "{{\"type\":\"DETAIL_GAP\",\"stream\":\"messages\",{fields},\"reason\":\"temporary_unavailable\",\"reference_only\":true}}\n"
    )
}

fn message(key: &str, conversation: &str) -> String {
    record("messages", key, &format!(r#"{{"id":"{key}","conversation_id":{conversation}}}"#))
}

fn conversation(key: &str) -> String {
    record("conversations", key, &format!(r#"{{"id":"{key}"}}"#))
}

struct Case {
    home: Home,
    ids: Vec<String>,
}

impl Case {
    /// A store with these gaps, in this order.
    fn with(gaps: &[String]) -> Self {
        let home = Home::new();
        home.run_of("c", MANIFEST, (gaps.concat() + &done(0)).as_bytes());
        let ids = all_gaps(&home).into_iter().map(|gap| gap.gap_id).collect();
        Self { home, ids }
    }

    /// Gaps for conversations 1 to 3.
    fn new() -> Self {
        Self::with(&[1, 2, 3].map(|key| gap(&format!(r#""record_key":"{key}""#))))
    }

    fn recovered(&self, nth: usize) -> String {
        self.recovered_as(nth, "messages")
    }

    fn recovered_as(&self, nth: usize, stream: &str) -> String {
        let id = &self.ids[nth];
        format!(
            "{{\"type\":\"DETAIL_GAP_RECOVERED\",\"stream\":\"{stream}\",\"gap_id\":\"{id}\",\"reference_only\":true}}\n"
        )
    }

    fn run(&self, records: u64, lines: &[String]) -> RunOutcome {
        let terms = Terms { validator: Box::new(NoBad), ..Terms::default() };
        let mut sitting = Sitting::begin_with(self.home.open(), "c", MANIFEST, terms);
        sitting.feed(lines.concat().as_bytes()).unwrap();
        sitting.feed(done(records).as_bytes()).unwrap();
        let outcome = sitting.end().unwrap();
        assert_eq!(outcome.violation, None);
        self.home.assert_whole();
        outcome
    }

    /// What a run with these lines after its first page does to the gaps.
    fn after_page(&self, records: u64, lines: &[String]) -> (Vec<String>, GapsConfirmed) {
        let lines = [&[PAGE.to_owned()], lines].concat();
        let outcome = self.run(records, &lines);
        (self.states(), outcome.counts.confirmed)
    }

    fn states(&self) -> Vec<String> {
        let shown = |gap: GapSummary| match gap.confirmed_by {
            Some(by) => format!("{} by {by}", gap.state),
            None => format!("{} {}", gap.state, gap.attempts),
        };
        all_gaps(&self.home).into_iter().map(shown).collect()
    }
}

fn all_gaps(home: &Home) -> Vec<GapSummary> {
    home.reader().gaps("c", GapFilter { stream: None, closed_too: true }, 0, 99).unwrap()
}

const fn confirmed(by_record: u64, empty: u64, unconfirmed: u64) -> GapsConfirmed {
    GapsConfirmed { by_record, empty, unconfirmed, lists: 0, list_records: 0, list_gaps: 0 }
}

#[test]
fn a_gap_whose_record_never_came_stays_open_and_the_attempt_counts() {
    let case = Case::new();
    let (states, counted) = case.after_page(0, &[case.recovered(0), case.recovered(1)]);
    assert_eq!(states, ["pending 1", "pending 1", "pending 0"]);
    assert_eq!(counted, confirmed(0, 0, 2));
    let run = &case.home.reader().runs("c", 1).unwrap()[0];
    assert_eq!(run.counts.confirmed, confirmed(0, 0, 2), "the store keeps it");
}

#[test]
fn a_record_or_a_deletion_with_the_gaps_key_confirms_it_also_when_nothing_changed() {
    let case = Case::new();
    case.run(1, &[message("2", "0")]);
    let lines = [delete("messages", "1"), message("2", "0"), message("3", "0")];
    let recovered = [0, 1, 2].map(|nth| case.recovered(nth));
    let (states, counted) = case.after_page(3, &[lines, recovered].concat());
    assert_eq!(states, ["recovered by record", "recovered by record", "recovered by record"]);
    assert_eq!(counted, confirmed(3, 0, 0));
}

#[test]
fn a_field_that_equals_the_key_confirms_it_as_text_or_as_number_and_both_groups_may_come_first() {
    let case = Case::new();
    let lines = [message("a", r#""1""#), message("b", "2"), message("c", "[3]")];
    let recovered = [0, 1, 2].map(|nth| case.recovered(nth));
    let (states, counted) = case.after_page(3, &[lines, recovered].concat());
    assert_eq!(states, ["recovered by record", "recovered by record", "pending 1"], "no deeper than the top level");
    assert_eq!(counted, confirmed(2, 0, 1));
}

#[test]
fn the_record_may_be_in_an_earlier_slice() {
    let case = Case::new();
    let lines = [message("a", "1"), slice_state("messages", "{}"), case.recovered(0)];
    assert_eq!(case.after_page(1, &lines).0[0], "recovered by record");
}

#[test]
fn what_came_before_the_gap_was_served_or_after_it_was_called_recovered_does_not_confirm_it() {
    let case = Case::new();
    case.run(1, &[message("1", "0"), PAGE.to_owned(), case.recovered(0)]);
    assert_eq!(case.states()[0], "pending 1", "before it was served");
    let case = Case::new();
    let (states, _) = case.after_page(1, &[case.recovered(0), message("1", "0")]);
    assert_eq!(states[0], "pending 1", "afterwards");
    let case = Case::new();
    case.run(1, &[PAGE.to_owned(), message("1", "0")]);
    case.run(0, &[PAGE.to_owned(), case.recovered(0)]);
    assert_eq!(case.states()[0], "pending 1", "by an earlier run");
}

#[test]
fn a_record_in_quarantine_does_not_confirm() {
    let case = Case::new();
    let bad = record("messages", "1", r#"{"bad":1,"conversation_id":"2"}"#);
    let (states, counted) = case.after_page(1, &[bad, case.recovered(0), case.recovered(1)]);
    assert_eq!(states[..2], ["pending 1", "pending 1"]);
    assert_eq!(counted, confirmed(0, 0, 2));
}

#[test]
fn a_gap_is_not_closed_in_the_name_of_another_stream() {
    let case = Case::new();
    let lines = [message("1", "0"), conversation("1"), case.recovered_as(0, "conversations")];
    let (states, counted) = case.after_page(2, &lines);
    assert_eq!(states[0], "pending 1");
    assert_eq!(counted, confirmed(0, 0, 1));
}

#[test]
fn where_only_another_stream_has_the_key_the_gap_closes_as_empty_and_this_can_be_seen() {
    let case = Case::new();
    let lines = [conversation("1"), conversation("2"), message("b", "2"), case.recovered(0), case.recovered(1)];
    let (states, counted) = case.after_page(3, &lines);
    assert_eq!(states, ["recovered by empty", "recovered by record", "pending 0"]);
    assert_eq!(counted, confirmed(1, 1, 0));
    assert_eq!(case.home.reader().streams("c").unwrap()[1].gaps_empty, 1);
    // It is missing again, and is collected in the end: then it is not empty.
    case.run(0, &[gap(r#""record_key":"1""#)]);
    assert_eq!(case.states()[0], "pending 0");
    case.after_page(1, &[message("a", "1"), case.recovered(0)]);
    assert_eq!(case.states()[0], "recovered by record");
    assert_eq!(case.home.reader().streams("c").unwrap()[1].gaps_empty, 0);
}

#[test]
fn a_gap_that_names_its_parent_is_empty_only_if_the_parent_has_the_key() {
    let with_parent = |key: &str| gap(&format!(r#""record_key":"{key}","parent_stream":"conversations""#));
    let case = Case::with(&[with_parent("1"), with_parent("2")]);
    let other = record("people", "1", "{}");
    let lines = [other, conversation("2"), case.recovered(0), case.recovered(1)];
    let (states, counted) = case.after_page(2, &lines);
    assert_eq!(states, ["pending 1", "recovered by empty"]);
    assert_eq!(counted, confirmed(0, 1, 1));
}

#[test]
fn a_gap_that_stands_for_a_list_closes_on_the_connectors_word_and_the_run_says_what_took_its_place() {
    let backlog = gap(r#""record_key":"rest","detail_locator":{"kind":"backlog","watermark":"w"}"#);
    let place = gap(r#""detail_locator":{"kind":"file","file":"a.txt"}"#);
    let case = Case::with(&[backlog, place, gap(r#""record_key":"9""#)]);
    let lines = [
        message("a", "1"),
        message("b", "1"),
        conversation("c"),
        gap(r#""record_key":"10""#),
        case.recovered(0),
        message("c", "1"),
        case.recovered(1),
    ];
    let (states, counted) = case.after_page(4, &lines);
    assert_eq!(states, ["recovered by list", "recovered by list", "pending 0", "pending 0"]);
    // Two records and a gap when the first closed; a record more when the second did.
    let expected = GapsConfirmed { lists: 2, list_records: 3, list_gaps: 1, ..GapsConfirmed::default() };
    assert_eq!(counted, expected);
}

#[test]
fn a_gap_that_the_run_put_back_is_not_closed_by_it_even_with_its_record() {
    let case = Case::new();
    let again = gap(&format!(r#""record_key":"1","gap_id":"{}""#, case.ids[0]));
    let (states, counted) = case.after_page(1, &[message("1", "0"), again, case.recovered(0)]);
    assert_eq!(states[0], "pending 1");
    assert_eq!(counted, confirmed(0, 0, 1));
}

#[test]
fn a_gap_that_was_never_served_or_that_nobody_knows_is_reported_too() {
    let case = Case::new();
    let unknown = case.recovered(0).replace(&case.ids[0], "no-such-gap");
    let outcome = case.run(1, &[message("1", "0"), case.recovered(0), unknown]);
    assert_eq!(case.states()[0], "pending 0", "it was not tried either");
    assert_eq!(outcome.counts.confirmed, confirmed(0, 0, 2));
}

#[test]
fn a_key_of_several_parts_compares_as_minified_json() {
    let case = Case::with(&[gap(r#""record_key":"[\"a\", \"b\"]""#), gap(r#""record_key":"[\"a\",\"c\"]""#)]);
    let key = |key: &str| crate::world::record_raw("messages", key, "{}");
    let lines = [key(r#"["a","b"]"#), key(r#"[ "a", "c" ]"#), case.recovered(0), case.recovered(1)];
    let (states, _) = case.after_page(2, &lines);
    assert_eq!(states, ["recovered by record", "recovered by record"]);
}

/// The lookup must not grow with what a run holds, and a run that holds nothing looks nothing up.
#[test]
fn ten_thousand_gaps_are_held_and_confirmed() {
    let many = 10_000;
    let gaps = (0..many).map(|n| gap(&format!(r#""record_key":"k{n}""#))).collect::<Vec<_>>();
    let case = Case::with(&gaps);
    let pages = vec![PAGE.to_owned(); 40];
    let records = (0..many).map(|n| message(&format!("m{n}"), &format!("\"k{n}\"")));
    let ids = case.home.reader();
    let mut after = 0;
    let mut all = Vec::new();
    loop {
        let page = ids.gaps("c", GapFilter::default(), after, 1000).unwrap();
        let Some(last) = page.last() else { break };
        after = last.id;
        all.extend(page.into_iter().map(|gap| gap.gap_id));
    }
    let case = Case { home: case.home, ids: all };
    let recovered = (0..many).map(|nth| case.recovered(nth));
    let lines = pages.into_iter().chain(records).chain(recovered).collect::<Vec<_>>();
    let outcome = case.run(many as u64, &lines);
    assert_eq!(outcome.counts.confirmed, confirmed(many as u64, 0, 0));
}
