//! Learned state that outlives the process: a folder with a file per key.

use crate::support::{Provider, Reply, fetch, fetch_with, secs};
use gleaner_http::governor::{Learned, Outcome, WallTime};
use gleaner_http::{CallLimits, Governors, Settings};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn texts(folder: &Path) -> Vec<(String, String)> {
    let mut texts: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|extension| extension == "learned"))
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn a_refusal_is_on_disk_before_anybody_hears_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let governors = Governors::remembering(folder.path()).unwrap();
    let key = governors.key("example", Some(b"secret-token"));
    let governor = governors.governor(&key, &Settings::default()).unwrap();
    let provider = Provider::first(vec![Reply::throttled("100")]);
    fetch_with(&governor, &provider, &CallLimits::single_attempt()).await.unwrap();
    // No save, no shutdown: the process could be killed here.
    let texts = texts(folder.path());
    assert!(texts.len() == 1 && texts[0].1.contains("gate_until_ms="), "{texts:?}");
    assert!(!format!("{texts:?}").contains("secret"), "{texts:?}");
    drop(governor);
    let again = Governors::remembering(folder.path()).unwrap();
    let key = again.key("example", Some(b"secret-token"));
    let waiting = again.governor(&key, &Settings::default()).unwrap().waiting().unwrap();
    assert!(waiting.remaining.unwrap() > secs(90), "{waiting:?}");
    // Another account is not closed.
    let other = again.key("example", Some(b"other-token"));
    assert_eq!(again.governor(&other, &Settings::default()).unwrap().waiting(), None);
}

#[tokio::test(start_paused = true)]
async fn a_learned_rate_is_there_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    let governors = Governors::remembering(folder.path()).unwrap();
    let governor = governors.governor(&governors.key("example", None), &settings).unwrap();
    let provider = Provider::always(200);
    for _ in 0..60 {
        fetch(&governor, &provider).await.unwrap();
    }
    governors.save();
    let learned = governor.collection_rate().unwrap().current_interval_ms;
    assert!(learned < 300.0, "{learned}");
    let again = Governors::remembering(folder.path()).unwrap();
    let governor = again.governor(&again.key("example", None), &settings).unwrap();
    let restored = governor.collection_rate().unwrap().current_interval_ms;
    assert!((restored - learned).abs() < 0.01, "{restored} after {learned}");
}

#[tokio::test]
async fn a_file_that_makes_no_sense_is_no_memory_and_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let governors = Governors::remembering(folder.path()).unwrap();
    governors.governor(&governors.key("example", None), &Settings::default()).unwrap();
    governors.save();
    let file = folder.path().join(&texts(folder.path())[0].0);
    for garbage in [b"\xff\xfe".to_vec(), b"gleaner-learned-1 interval_ns=0".to_vec(), vec![b'x'; 1 << 20]] {
        fs::write(&file, garbage).unwrap();
        let again = Governors::remembering(folder.path()).unwrap();
        let governor = again.governor(&again.key("example", None), &Settings::default()).unwrap();
        assert_eq!(governor.collection_rate().unwrap().current_interval_ms, 1000.0);
        assert!(
            governor.memory_trouble().is_some_and(|trouble| trouble.contains("is damaged, or not a file of Gleaner"))
        );
        again.save();
        assert!(texts(folder.path())[0].1.starts_with("gleaner-learned-1 "));
    }
}

#[test]
fn two_processes_on_one_folder_tear_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let registries = [(); 2].map(|()| Governors::remembering(folder.path()).unwrap());
    for registry in &registries {
        registry.governor(&registry.key("example", None), &Settings::default()).unwrap();
        registry.save();
    }
    let file = folder.path().join(&texts(folder.path())[0].0);
    std::thread::scope(|scope| {
        let writers = registries.each_ref().map(|registry| scope.spawn(|| (0..200).for_each(|_| registry.save())));
        while writers.iter().any(|writer| !writer.is_finished()) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.starts_with("gleaner-learned-1 ") && text.ends_with('\n'), "{text:?}");
        }
    });
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the secret and the one key: {left:?}");
}

/// The text of the one key in a folder.
fn text(folder: &Path) -> String {
    texts(folder).remove(0).1
}

#[tokio::test]
async fn of_two_processes_neither_erases_the_other_s_gate_or_refusals() {
    let folder = tempfile::tempdir().unwrap();
    let registries = [(); 2].map(|()| Governors::remembering(folder.path()).unwrap());
    let [catch_up, steady] = registries
        .each_ref()
        .map(|governors| governors.governor(&governors.key("example", Some(b"token")), &Settings::default()).unwrap());
    let refused = Provider::first(vec![Reply::throttled("100")]);
    fetch_with(&catch_up, &refused, &CallLimits::single_attempt()).await.unwrap();
    // The other one knows nothing of it yet, and writes last.
    registries[1].save();
    let written = text(folder.path());
    assert!(written.contains("gate_until_ms=") && written.matches("strike_ms=").count() == 1, "{written}");
    assert!(steady.waiting().unwrap().remaining.unwrap() > secs(90), "it has heard of the gate");
    for _ in 0..3 {
        registries.iter().for_each(Governors::save);
    }
    let written = text(folder.path());
    assert_eq!(written.matches("strike_ms=").count(), 1, "one refusal is one, however often it is written: {written}");
}

#[tokio::test]
async fn two_processes_that_are_refused_at_once_keep_the_later_gate_and_both_refusals() {
    let folder = tempfile::tempdir().unwrap();
    let registries = [(); 2].map(|()| Governors::remembering(folder.path()).unwrap());
    let mut in_flight = Vec::new();
    for governors in &registries {
        let governor = governors.governor(&governors.key("example", None), &Settings::default()).unwrap();
        let mut permit = governor.until_ready().await.unwrap();
        permit.sent();
        in_flight.push(permit);
    }
    // The one that is refused for longer writes first.
    for (permit, wait) in in_flight.into_iter().zip([secs(100), secs(10)]) {
        permit.answer(&Outcome::throttled(Some(wait)), 9).await;
    }
    let written = text(folder.path());
    assert_eq!(written.matches("strike_ms=").count(), 2, "{written}");
    for governors in [&registries[1], &Governors::remembering(folder.path()).unwrap()] {
        let governor = governors.governor(&governors.key("example", None), &Settings::default()).unwrap();
        assert!(governor.waiting().unwrap().remaining.unwrap() > secs(80), "{:?}", governor.waiting());
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_file_and_a_cursor_the_more_careful_counts() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings::default();
    let governors = Governors::remembering(folder.path()).unwrap();
    governors.governor(&governors.key("example", None), &settings).unwrap();
    governors.save();
    let now = WallTime::from_unix_millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64);
    for (cursor_ms, expected_ms) in [(20, 1000.0), (3000, 3000.0)] {
        let again = Governors::remembering(folder.path()).unwrap();
        let governor = again.governor(&again.key("example", None), &settings).unwrap();
        governor.restore(&Learned::from_interval(Duration::from_millis(cursor_ms), now));
        assert_eq!(governor.collection_rate().unwrap().current_interval_ms, expected_ms);
    }
}

#[test]
fn a_damaged_secret_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for damaged in [&b""[..], b"short"] {
        fs::write(folder.path().join("secret"), damaged).unwrap();
        let first = Governors::remembering(folder.path()).unwrap();
        let again = Governors::remembering(folder.path()).unwrap();
        assert_eq!(first.key("example", Some(b"token")), again.key("example", Some(b"token")));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn nobody_else_can_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("pacing");
    let governors = Governors::remembering(&folder).unwrap();
    governors.governor(&governors.key("example", None), &Settings::default()).unwrap();
    governors.save();
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = Governors::remembering(file.path()).unwrap_err();
    assert!(error.to_string().contains(file.path().to_str().unwrap()), "{error}");
}
