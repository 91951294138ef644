//! A refusal outlives a kill: whatever is killed right after it, and on whichever track, the next run sends nothing before
//! the gate ends.

use super::Notes;
use crate::notes_provider::Reply;
use crate::place::files_below;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const RETRY_AFTER: Duration = Duration::from_secs(3);

/// Refuses the first request and tells how long, and answers as usual after that.
fn refusing() -> Notes {
    let notes = Notes::new(3, 20);
    notes
        .provider
        .rule(|_, asked| asked.is_empty().then(|| Reply { header: Some("retry-after: 3"), ..Reply::status(429) }));
    notes
}

/// The file of the one account.
fn learned(notes: &Notes) -> Option<PathBuf> {
    let files = files_below(&notes.place.home().join("pacing"));
    files.into_iter().find(|file| file.extension().is_some_and(|end| end == "learned"))
}

/// Waits until the refusal is on disk. Only the test's own patience has an end.
fn wait_for_gate(notes: &Notes) {
    let began = Instant::now();
    let is_there = |file: &Path| fs::read_to_string(file).is_ok_and(|text| text.contains("gate_until_ms="));
    while !learned(notes).is_some_and(|file| is_there(&file)) {
        assert!(began.elapsed() < Duration::from_secs(60), "no gate was written down");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Every process of this test that knows its provider: program, guard and connector.
fn processes(notes: &Notes) -> Vec<String> {
    let known = format!("DEMO_URL={}", notes.provider.url);
    let is_ours = |process: &Path| {
        fs::read(process.join("environ"))
            .is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == known.as_bytes()))
    };
    let all = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let ours = all.filter(|process| process.join("environ").exists() && is_ours(process));
    ours.map(|process| process.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

fn assert_gate_is_kept(notes: &Notes, options: &[&str]) {
    let (code, last) = notes.run(options, 20);
    assert_eq!(code, 0, "{last}");
    let asked = notes.provider.asked();
    assert_eq!(asked[0].status, 429);
    let gap = asked[1].at - asked[0].at;
    assert!(gap >= RETRY_AFTER, "asked again after {gap:?}");
    assert_eq!(notes.stored().len(), 3);
}

#[test]
fn a_kill_of_the_program_alone_keeps_the_gate() {
    let notes = refusing();
    let running = notes.start(&[], 20);
    wait_for_gate(&notes);
    running.signal("KILL");
    drop(running);
    assert_gate_is_kept(&notes, &[]);
}

#[test]
fn a_kill_of_program_and_connector_on_one_track_keeps_the_gate_on_the_other() {
    let notes = refusing();
    let running = notes.start(&["--catch-up"], 20);
    wait_for_gate(&notes);
    let processes = processes(&notes);
    assert!(processes.len() >= 2, "{processes:?}");
    // One may have ended because another did.
    processes.iter().filter(|process| Path::new("/proc").join(process).exists()).for_each(|process| {
        let _killed = std::process::Command::new("kill").args(["-KILL", process.as_str()]).status();
    });
    drop(running);
    assert_gate_is_kept(&notes, &[]);
}

#[test]
fn the_files_are_the_owner_s_alone_and_name_no_credential() {
    use std::os::unix::fs::PermissionsExt;
    let notes = refusing();
    let running = notes.start(&[], 20);
    wait_for_gate(&notes);
    drop(running);
    let folder = notes.place.home().join("pacing");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    for file in files_below(&folder) {
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
    // A file that was damaged costs what it remembered, and the run says so.
    fs::write(learned(&notes).unwrap(), b"\xff not ours").unwrap();
    notes.provider.heal();
    let (code, last) = notes.run(&[], 20);
    assert_eq!(code, 0, "{last}");
    assert_eq!(notes.stored().len(), 3);
    let text = fs::read_to_string(learned(&notes).unwrap()).unwrap();
    assert!(text.starts_with("gleaner-learned-1 ") && !text.contains("gate_until_ms="), "{text}");
}
