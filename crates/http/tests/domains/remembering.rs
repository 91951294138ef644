//! Learned state of many hosts in a file: after an end, after a kill, and after damage.

use crate::hosts::{acquire, answer, exchange, ms, rate, within};
use gleaner_http::governor::keyed::RegistryConfig;
use gleaner_http::{AcquireError, DomainSettings, Domains, Refusal};
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

fn open(file: &Path) -> Domains {
    Domains::remembering(DomainSettings::default(), file).unwrap()
}

async fn warm(domains: &Domains, host: &str) -> f64 {
    for _ in 0..200 {
        exchange(domains, host, 200, ms(10)).await;
    }
    rate(domains, host)
}

fn folder() -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("deep/hosts.learned");
    (folder, file)
}

#[tokio::test(start_paused = true)]
async fn a_restart_starts_warm() {
    let (_folder, file) = folder();
    let domains = open(&file);
    let before = warm(&domains, "a.com").await;
    domains.save().unwrap();
    drop(domains);
    let domains = open(&file);
    exchange(&domains, "a.com", 200, ms(10)).await;
    let after = rate(&domains, "a.com");
    assert!(before > 10.0 && (after - before).abs() < 0.5, "{before} {after}");
}

#[tokio::test(start_paused = true)]
async fn a_gate_is_written_down_before_anybody_hears_of_it() {
    let (_folder, file) = folder();
    let domains = open(&file);
    let permit = acquire(&domains, "a.com").await.unwrap();
    answer(permit, 429, ms(10), "900").await;
    // As after a kill: nobody saves.
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.lines().any(|line| line.starts_with("a.com gleaner-learned-1 ")), "{text}");
    let killed = file.with_file_name("killed");
    fs::copy(&file, &killed).unwrap();
    let domains = open(&killed);
    let error = domains.acquire("a.com", &within(ms(1000))).await.unwrap_err();
    let AcquireError::Refused(refused) = error else { panic!("{error}") };
    assert_eq!(refused.reason, Refusal::MaxWait);
    assert!(refused.retry_in.unwrap() > Duration::from_secs(890), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn of_two_lines_about_a_host_the_later_counts_and_bad_ones_are_dropped() {
    let (_folder, file) = folder();
    let domains = open(&file);
    let fast = warm(&domains, "a.com").await;
    domains.save().unwrap();
    drop(domains);
    let text = fs::read_to_string(&file).unwrap();
    let line = text.lines().find(|line| line.starts_with("a.com ")).unwrap();
    let other_spelling = line.replace("a.com", "Z.com");
    let long = "x".repeat(100_000);
    let zero = line.split_once(" interval_ns").unwrap().0;
    let cut_off = &line[..line.len() - 3];
    let damaged = format!(
        "{text}\n\nnonsense\n{other_spelling}\n{long}\n{zero} interval_ns=0\n\u{0}\u{7f}\n b.com {line}\n{line}\n{}",
        cut_off.replace("a.com", "c.com")
    );
    fs::write(&file, damaged).unwrap();
    let domains = open(&file);
    assert_eq!(domains.len(), 1, "{:?}", domains.snapshot(10));
    exchange(&domains, "a.com", 200, ms(10)).await;
    assert!((rate(&domains, "a.com") - fast).abs() < 0.5);
    let text = fs::read_to_string(&file).unwrap();
    assert_eq!(text.lines().count(), 2, "written anew: {text}");
}

#[test]
fn a_file_of_something_else_is_no_memory() {
    let (_folder, file) = folder();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let line = "a.com gleaner-learned-1 recorded_at_ms=1000 interval_ns=250000000";
    fs::write(&file, format!("gleaner-domains-1\n{line}\n")).unwrap();
    assert_eq!(open(&file).len(), 1);
    let other_version = format!("gleaner-domains-2\n{line}\n");
    for bytes in [&b""[..], b"PK\x03\x04\xff\xfe", other_version.as_bytes(), b"gleaner-domains-1"] {
        fs::write(&file, bytes).unwrap();
        assert!(open(&file).is_empty());
    }
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let error = Domains::remembering(DomainSettings::default(), folder.path()).unwrap_err();
    assert!(error.to_string().contains(&folder.path().display().to_string()), "{error}");
}

#[tokio::test(start_paused = true)]
async fn no_more_hosts_are_read_than_may_be_known() {
    let (_folder, file) = folder();
    let domains = open(&file);
    for number in 0..20 {
        let permit = acquire(&domains, &format!("h{number}.com")).await.unwrap();
        answer(permit, 429, ms(10), "900").await;
    }
    drop(domains);
    let config = RegistryConfig { keys_max: 5, ..RegistryConfig::default() };
    let domains = Domains::remembering(DomainSettings { config, ..DomainSettings::default() }, &file).unwrap();
    assert_eq!(domains.len(), 5);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 6, "and no more are kept");
}
