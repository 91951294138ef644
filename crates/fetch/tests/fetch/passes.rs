//! One pass after the other, and one that was interrupted.

use crate::support::{Host, answer, fetched, line, pass, settings, told};
use gleaner_fetch::{Event, FetchError, List, ResultLine, Settings, Stop, fetch};
use std::fs;
use std::io;
use std::time::Duration;

fn etag(path: &str) -> String {
    format!("\"{path}\"")
}

async fn versioned(number: u8) -> Host {
    Host::start(number, Duration::ZERO, |request, _| {
        let tag = etag(&request.path);
        if request.if_none_match.as_deref() == Some(&tag) {
            return answer(304, &[("etag", &tag)], "");
        }
        answer(200, &[("etag", &tag)], format!("body of {}", request.path))
    })
    .await
}

#[tokio::test]
async fn the_second_pass_asks_with_the_versions_of_the_first_and_keeps_its_bodies() {
    let (folder, host) = (tempfile::tempdir().unwrap(), versioned(2).await);
    let urls: Vec<String> = (0..50).map(|number| host.url(&format!("/{number}"))).collect();
    let (first, summary) = fetched(&urls, settings(folder.path())).await;
    assert_eq!((summary.fetched, summary.failed, summary.is_complete), (50, 0, true));
    let one = line(&first, "/7");
    let body = fs::read_to_string(folder.path().join("out").join(one.path.as_ref().unwrap())).unwrap();
    assert_eq!((body.as_str(), one.bytes, one.status), ("body of /7", Some(10), Some(200)));
    assert!(host.received()[0].user_agent.as_ref().unwrap().starts_with("gleaner/"));

    // One body is gone: then it is asked for without a version.
    fs::remove_file(folder.path().join("out").join(one.path.as_ref().unwrap())).unwrap();
    let (second, summary) = fetched(&urls, settings(folder.path())).await;
    assert_eq!((summary.fetched, summary.unchanged), (50, 49));
    assert_eq!(line(&second, "/7").status, Some(200));
    let unchanged = line(&second, "/8");
    assert_eq!((unchanged.status, &unchanged.path), (Some(304), &line(&first, "/8").path));
    let (_, third) = fetched(&urls, settings(folder.path())).await;
    assert_eq!(third.unchanged, 50, "a version outlives the pass that was told it is unchanged");
}

#[tokio::test]
async fn a_list_is_read_once_whatever_is_in_it() {
    let (folder, host) = (tempfile::tempdir().unwrap(), versioned(3).await);
    let urls = [
        host.url("/1"),
        format!("  {}#part  ", host.url("/1")),
        "# a comment".to_owned(),
        String::new(),
        "nonsense".to_owned(),
        "nonsense".to_owned(),
        "http://me:secret@127.0.0.3/".to_owned(),
        host.url("/a/../../../etc/passwd"),
    ];
    let (lines, summary) = fetched(&urls, settings(folder.path())).await;
    assert_eq!((summary.fetched, summary.failed, lines.len()), (2, 2, 4), "{lines:?}");
    assert_eq!(line(&lines, "nonsense").error.as_deref(), Some("it is not a URL"));
    assert_eq!(host.received().iter().filter(|request| request.path == "/1").count(), 1);
    let results = fs::read_to_string(folder.path().join("out/results.jsonl")).unwrap();
    assert!(results.lines().count() == 4 && !results.contains("secret"), "{results}");
    let stored: Vec<_> = lines.iter().filter_map(|line| line.path.as_deref()).collect();
    assert!(stored.iter().all(|path| path.starts_with("bodies/") && !path.contains("..")), "{stored:?}");
}

#[tokio::test]
async fn a_fetch_that_was_stopped_goes_on_and_repeats_nothing_that_was_finished() {
    let (folder, host) = (tempfile::tempdir().unwrap(), versioned(4).await);
    let urls: Vec<String> = (0..100).map(|number| host.url(&format!("/{number}"))).collect();
    let stop = Stop::default();
    let mut seen = 0;
    let summary = told(&urls, settings(folder.path()), stop.clone(), |_| {
        seen += 1;
        if seen == 30 {
            stop.stop();
        }
    })
    .await
    .unwrap();
    assert!(!summary.is_complete && summary.fetched >= 30 && summary.fetched < 100, "{summary:?}");
    assert!(!folder.path().join("out/results.jsonl").exists());
    let before = host.received().len();
    let (lines, rest) = fetched(&urls, settings(folder.path())).await;
    assert_eq!((rest.before, rest.fetched, rest.is_complete), (summary.fetched, 100, true));
    assert_eq!(lines.len() as u64, 100 - summary.fetched);
    assert_eq!(host.received().len() - before, lines.len());
    let results = fs::read_to_string(folder.path().join("out/results.jsonl")).unwrap();
    let mut urls: Vec<String> =
        results.lines().map(|line| serde_json::from_str::<ResultLine>(line).unwrap().url).collect();
    urls.sort_unstable();
    urls.dedup();
    assert_eq!(urls.len(), 100, "each once");
}

#[tokio::test]
async fn a_list_from_a_pipe_is_kept_and_a_listener_that_fails_ends_the_fetch() {
    let (folder, host) = (tempfile::tempdir().unwrap(), versioned(5).await);
    let text = format!("{}\n{}", host.url("/1"), host.url("/2"));
    let pipe = || List::Pipe(Box::new(io::Cursor::new(text.clone().into_bytes())));
    let failing = |event: Event<'_>| match event {
        Event::Line(..) => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        Event::Started(_) | Event::Progress(_) => Ok(()),
    };
    let error = fetch(pipe(), settings(folder.path()), Stop::default(), failing).await.unwrap_err();
    assert!(matches!(error, FetchError::Listener(_)), "{error:?}");
    let unfinished = fs::read_to_string(folder.path().join("out/unfinished.jsonl")).unwrap();
    assert!(unfinished.lines().count() >= 1, "what nobody heard of is written down all the same");
    let summary = fetch(pipe(), settings(folder.path()), Stop::default(), |_| Ok(())).await.unwrap();
    assert_eq!((summary.fetched, summary.is_complete), (2, true));
    assert_eq!(fs::read_to_string(folder.path().join("out/list.txt")).unwrap(), text);
}

#[tokio::test]
async fn two_fetches_do_not_share_a_folder() {
    let (folder, host) = (tempfile::tempdir().unwrap(), versioned(6).await);
    let mut refused = None;
    let inner = settings(folder.path());
    let handle = tokio::runtime::Handle::current();
    let summary = told(&[host.url("/1")], settings(folder.path()), Stop::default(), |_| {
        let other = fetch(List::Pipe(Box::new(io::empty())), inner.clone(), Stop::default(), |_| Ok(()));
        let (send, answer) = std::sync::mpsc::channel();
        let entered = handle.clone();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let _in_runtime = entered.enter();
                send.send(futures_util::FutureExt::now_or_never(other).map(|result| result.is_err()))
            });
        });
        refused = answer.recv().unwrap();
    })
    .await
    .unwrap();
    assert_eq!((summary.fetched, refused), (1, Some(true)));
}

#[tokio::test]
async fn a_host_that_asked_to_be_left_alone_is_left_alone_by_the_next_run_too() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(7, Duration::ZERO, |_, _| answer(429, &[("retry-after", "100")], "")).await;
    let impatient = || Settings { wait_max: Duration::from_secs(1), ..settings(folder.path()) };
    let (_, summary) = fetched(&[host.url("/1")], impatient()).await;
    assert_eq!((summary.failed, summary.is_complete, host.received().len()), (1, true, 1));
    let (lines, summary) = fetched(&[host.url("/1")], impatient()).await;
    assert_eq!((summary.failed, host.received().len()), (1, 1), "nothing was sent");
    assert!(lines[0].error.as_ref().unwrap().contains("is rate-limited for"), "{lines:?}");
}

#[tokio::test]
async fn a_gate_is_written_down_before_the_next_save_so_that_a_kill_does_not_forget_it() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(8, Duration::ZERO, |_, _| answer(429, &[("retry-after", "100")], "")).await;
    let stop = Stop::default();
    let (urls, settings) = ([host.url("/1")], settings(folder.path()));
    let fetching = told(&urls, settings, stop.clone(), |_| {});
    let looking = async {
        // Half of the time after which the file is saved in any case.
        for _ in 0..250 {
            pass(Duration::from_millis(20)).await;
            let text = fs::read_to_string(folder.path().join("out/hosts.txt")).unwrap_or_default();
            if text.contains("gate_until_ms") {
                stop.stop();
                return true;
            }
        }
        stop.stop();
        false
    };
    let (summary, is_written) = tokio::join!(fetching, looking);
    assert!(is_written && !summary.unwrap().is_complete);
}
