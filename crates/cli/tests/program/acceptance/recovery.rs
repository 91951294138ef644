//! What earlier runs left is fetched in one run, however much it is.

use super::{Notes, is_part_of_list, run};
use crate::notes_provider::NotesProvider;
use gleaner_engine::PAGE_BYTES_MAX;
use serde_json::json;

#[test]
fn more_than_one_page_of_gaps_is_recovered_in_one_run() {
    // Names so long that one page cannot hold them all, whatever its size.
    let keys = (0..420).map(|number| format!("n{number:04}-{}", "x".repeat(3000)));
    let notes = Notes::of(NotesProvider::of(keys, 100), 4);
    let mut command = notes.command(&[], 4);
    command.env("PDPP_DEMO_MAX_DETAIL_FETCHES_PER_RUN", "16");
    command.env("PDPP_DEMO_MAX_TAIL_DEFERRAL_GAPS_PER_RUN", "1000");
    let (code, end) = run(&mut command);
    assert_eq!((code, &end["records_accepted"]), (3, &json!(16)), "{end}");
    let gaps = notes.gaps();
    assert!(gaps.len() == 404 && !gaps.iter().any(is_part_of_list), "a gap for each: {}", gaps.len());
    let names = gaps.iter().map(|gap| gap["record_key"].as_str().unwrap().len() as u64).sum::<u64>();
    assert!(names > PAGE_BYTES_MAX, "they do not fit one page: {names} bytes");
    let before = notes.provider.asked().len();
    let (code, end) = notes.run(&[], 4);
    assert_eq!((code, &end["gaps_open"]), (0, &json!(0)), "{end}");
    notes.assert_complete();
    let last = notes.lines(&["runs", "demo", "--json", "--limit", "1"]).remove(0);
    assert_eq!((&last["recovered"], &last["reason"]), (&json!(404), &json!("succeeded")), "{last}");
    // All of them by this one run, and each once.
    let details = notes.provider.asked().split_off(before).into_iter().filter(|asked| asked.note.is_some());
    assert_eq!(details.count(), 404);
    assert!(notes.provider.sent().values().all(|times| *times == 1));
}
