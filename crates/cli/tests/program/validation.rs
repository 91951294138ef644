//! A connector that comes with the program lets no record out that does not fit its schema.

use crate::acceptance::Notes;
use crate::notes_provider::Reply;
use serde_json::json;

#[test]
fn a_record_that_does_not_fit_never_leaves_a_connector_of_ours() {
    let notes = Notes::new(10, 10);
    let unfit = json!({"id": "n0004", "title": 7, "written_at": "2021-01-01T00:04:00Z"});
    notes
        .provider
        .rule(move |note, _| (note == Some("n0004")).then(|| Reply { body: Some(unfit.clone()), ..Reply::default() }));
    let (code, end) = notes.run(&[], 10);
    // What arrived and did not fit would be in quarantine, and counted as rejected.
    assert_eq!((code, &end["records_accepted"], &end["records_rejected"]), (3, &json!(9), &json!(0)), "{end}");
    let gaps = notes.gaps();
    assert!(gaps.len() == 1 && gaps[0]["record_key"] == "n0004" && gaps[0]["kind"] == "gap", "{gaps:?}");
    let skips = notes.lines(&["query", "--json", "SELECT message FROM events WHERE kind = 'skip'"]);
    let said = skips[0]["message"].as_str().unwrap();
    assert!(said.contains("record_schema_mismatch") && said.contains("/title"), "{said}");
}
