//! A wrong scenario file is answered with the file, the key and what is allowed.

use gleaner_lab::scenario::Scenario;
use std::path::{Path, PathBuf};

#[track_caller]
fn check(text: &str, parts: &[&str]) {
    let message = Scenario::parse("my.toml", &format!("name = \"x\"\n{text}")).unwrap_err().to_string();
    assert!(message.starts_with("my.toml: "), "{message}");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in: {message}");
    }
}

fn limit(keys: &str) -> String {
    format!("[[limit]]\n{keys}\n")
}

#[test]
fn unknown_keys_and_values() {
    check(
        "horizont_s = 5",
        &["line 2", "horizont_s = 5", "unknown field `horizont_s`", "expected one of", "horizon_s"],
    );
    check("[latency]\nbase = 5", &["line 3", "unknown field `base`", "base_ms", "sigma", "reject_ms"]);
    check("[penalty]\nstrike = 5", &["unknown field `strike`", "strikes", "within_s", "ban_s", "doubling", "status"]);
    check(&limit("kind = \"leaky\""), &["line 3", "unknown variant `leaky`", "token_bucket", "delay_queue", "tarpit"]);
    check("[signal]\nretry_after = \"later\"", &["unknown variant `later`", "seconds", "wrong_short"]);
    check("[signal]\nheaders = \"github\"", &["unknown variant `github`", "x-ratelimit", "ietf", "used-limit"]);
}

#[test]
fn numbers_out_of_range() {
    let bucket = "kind = \"token_bucket\"\nburst = 1\nrate_per_s = ";
    check(&limit(&format!("{bucket}-1")), &["limit[0].rate_per_s = -1", "more than 0"]);
    check(&limit(&format!("{bucket}nan")), &["limit[0].rate_per_s = NaN", "more than 0"]);
    check(&limit(&format!("{bucket}inf")), &["limit[0].rate_per_s = inf", "more than 0"]);
    let window = "kind = \"fixed_window\"\nlimit = 1\nwindow_s = ";
    check(&limit(&format!("{window}0")), &["limit[0].window_s = 0", "more than 0, at most"]);
    check(&limit(&format!("{window}1\nphase_s = -1")), &["limit[0].phase_s = -1", "from 0"]);
    check(&limit(&format!("{window}1\nfrom_s = 5\nuntil_s = 5")), &["limit[0].until_s = 5", "later than from_s"]);
    check(&limit("kind = \"concurrency\"\nlimit = 1.5"), &["limit[0].limit = 1.5", "a whole number from 1"]);
    check("horizon_s = 0", &["horizon_s = 0", "more than 0, at most 864000"]);
    check("workers = 0", &["workers = 0", "from 1 to 1024"]);
    check("workers = -1", &["line 2", "workers = -1", "expected a whole number, 0 or more"]);
    check("ceiling_interval_ms = 0", &["ceiling_interval_ms = 0", "from 0.1"]);
    check("[latency]\nbase_ms = 0", &["latency.base_ms = 0", "from 0.1 to 600000"]);
    check("[noise]\nreset = 1.5", &["noise.reset = 1.5", "a share from 0 to 1"]);
    check("[noise]\nreset = 0.6\nserver_error = 0.6", &["noise.server_error + noise.reset = 1.2", "at most 1"]);
    check("[signal]\nstatus = 418", &["signal.status = 418", "429, 503, 403 or 200"]);
    check("[penalty]\nstrikes = 0\nwithin_s = 1\nban_s = 1", &["penalty.strikes = 0", "at least 1"]);
    check("[expect]\ngoodput_min = 90", &["expect.goodput_min = 90", "a share from 0 to 1"]);
    check("horizon_s = \"long\"", &["line 2", "horizon_s", "expected a number"]);
}

#[test]
fn missing_and_misplaced_keys() {
    check(&limit("burst = 5"), &["missing field `kind`"]);
    check(
        &limit("kind = \"token_bucket\"\nburst = 5"),
        &["limit[0].rate_per_s is missing for kind \"token_bucket\"", "keys are rate_per_s, burst"],
    );
    check(
        &limit("kind = \"sliding_window\"\nlimit = 5\nwindow_s = 5\nphase_s = 1"),
        &["limit[0].phase_s has no meaning for kind \"sliding_window\"", "keys are limit, window_s"],
    );
    check(
        &limit("kind = \"tarpit\"\nrate_per_s = 5\nwindow_s = 5\nfactor = 2\nburst = 1"),
        &["limit[0].burst has no meaning", "rate_per_s, window_s, factor"],
    );
    let message = Scenario::parse("my.toml", "workers = 1").unwrap_err().to_string();
    assert!(message.contains("missing field `name`"), "{message}");
}

#[test]
fn not_toml_at_all() {
    check("workers 8", &["line 2", "workers 8"]);
}

/// A file of the test's own, removed at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("gleaner-lab-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn error(&self) -> String {
        let message = Scenario::load(&self.0).unwrap_err().to_string();
        assert!(message.starts_with(&self.0.display().to_string()), "{message}");
        message
    }
}

impl Drop for File {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

#[test]
fn files_that_are_no_text_or_too_large() {
    let message = File::new("latin1.toml", b"name = \"caf\xe9\"").error();
    assert!(message.contains("not UTF-8 from byte 11 on"), "{message}");
    let message = File::new("large.toml", &vec![b'#'; (1 << 20) + 1]).error();
    assert!(message.contains("is too long; a scenario has at most 1048576 bytes"), "{message}");
    let missing = Scenario::load(&std::env::temp_dir().join("gleaner-lab-none.toml")).unwrap_err().to_string();
    assert!(missing.contains("gleaner-lab-none.toml: cannot be read"), "{missing}");
}

#[cfg(unix)]
#[test]
fn a_device_that_never_ends_is_too_long() {
    let message = Scenario::load(Path::new("/dev/zero")).unwrap_err().to_string();
    assert_eq!(message, "/dev/zero: is too long; a scenario has at most 1048576 bytes");
}

#[test]
fn a_file_of_the_greatest_length_is_read() {
    let mut text = b"name = \"long\"\n".to_vec();
    text.resize(1 << 20, b'#');
    let file = File::new("longest.toml", &text);
    assert_eq!(Scenario::load(&file.0).unwrap().name, "long");
}

#[test]
fn every_scenario_of_the_catalogue_is_valid() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 24, "{}", files.len());
    for file in files {
        let scenario = Scenario::load(&file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(scenario.name.as_str()), file.file_stem().and_then(|stem| stem.to_str()));
    }
}
