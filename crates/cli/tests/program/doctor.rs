//! `gleaner doctor`: each check is broken once, and says so by its name.

use crate::care::{Place, answer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Command;

/// The verdict, what was seen and the hint of each check, and the exit code.
struct Look {
    checks: BTreeMap<String, (String, String, String)>,
    code: i32,
}

fn look_with(command: &mut Command) -> Look {
    let answer = answer(command);
    let mut checks = BTreeMap::new();
    for line in answer.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        if line["message_type"] == "check" {
            let before = checks.insert(text("name"), (text("verdict"), text("what"), text("hint")));
            assert!(before.is_none(), "{} is there twice", text("name"));
        }
    }
    Look { checks, code: answer.code }
}

fn look(place: &Place) -> Look {
    look_with(
        place.command(&["doctor", "--json"]).env("SHOP_TOKEN", "c4n4ry").env("LANG", "C.UTF-8").env_remove("LC_ALL"),
    )
}

impl Look {
    fn expect(&self, name: &str, verdict: &str, part: &str) {
        let found = self.checks.get(name).unwrap_or_else(|| panic!("no check {name}: {:?}", self.checks.keys()));
        assert!(found.0 == verdict && found.1.contains(part), "{name}: {found:?}");
        assert!(verdict == "ok" || !found.2.is_empty(), "{name} gives no hint");
        assert!(self.checks.values().all(|(_, what, hint)| !what.contains("c4n4ry") && !hint.contains("c4n4ry")));
        let worst = self.checks.values().any(|(verdict, _, _)| verdict == "failed");
        assert_eq!(self.code, i32::from(worst));
    }
}

/// A data root with one connection that has run.
fn healthy(test: &str) -> Place {
    let place = Place::new(&format!("doctor-{test}"));
    place.script("record(1); slice(1); done(1)");
    let added = place.gleaner(&["add", "--manifest", "manifest.json", "--", "python3", "-u", "shop.py"]);
    assert_eq!(added.code, 0, "{added:?}");
    assert_eq!(place.gleaner(&["run", "shop"]).code, 0);
    place
}

fn chmod(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn everything_is_well_at_first_and_the_foreign_connector_is_named() {
    let place = healthy("well");
    let look = look(&place);
    // How full the disk is, is not up to us.
    let checks = look.checks.iter().filter(|(name, _)| *name != "free space");
    let bad = checks.filter(|(_, (verdict, _, _))| verdict != "ok").collect::<Vec<_>>();
    assert!(bad.is_empty(), "{bad:?}");
    assert!(look.checks.len() >= 20, "{}", look.checks.len());
    look.expect("connectors run with your rights", "ok", "not part of Gleaner, and can do what you can: shop");
    let text = place.gleaner(&["doctor"]);
    assert!(text.stdout.starts_with(&format!("gleaner {}, SQLite 3.", env!("CARGO_PKG_VERSION"))), "{text:?}");
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{text:?}");
}

#[test]
fn the_data_root_and_its_files() {
    let place = healthy("root");
    chmod(&place.at(""), 0o750);
    look(&place).expect("data root", "failed", "has mode 750");
    chmod(&place.at(""), 0o700);
    chmod(&place.at("store.db"), 0o644);
    look(&place).expect("file modes", "failed", "store.db has mode 644");
    chmod(&place.at("store.db"), 0o600);
    let nowhere = place.root.join("nowhere");
    let absent = look_with(&mut place.command(&["doctor", "--json", "--home", nowhere.to_str().unwrap()]));
    absent.expect("data root", "failed", "No such file");
    absent.expect("store", "warning", "there is no store");
    assert!(!nowhere.exists(), "a look makes nothing");
}

#[test]
fn settings() {
    let place = healthy("settings");
    fs::write(place.at("config.toml"), "run.max_request = 1\n").unwrap();
    look(&place).expect("settings", "failed", "line 1: there is no option run.max_request");
}

#[test]
fn a_store_that_is_not_ours_broken_or_older() {
    let place = healthy("store");
    let good = fs::read(place.at("store.db")).unwrap();
    fs::write(place.at("store.db"), "something else, which is no database but long enough to be looked at as one....")
        .unwrap();
    look(&place).expect("store", "failed", "is not a Gleaner store");
    // A page in the middle of the file.
    let mut broken = good.clone();
    let page = 4096 * 3;
    broken[page..page + 4096].fill(0x5a);
    fs::write(place.at("store.db"), &broken).unwrap();
    let broken = look(&place);
    assert!(
        ["store", "store pages"].iter().any(|name| broken.checks.get(*name).is_some_and(|check| check.0 == "failed")),
        "{:?}",
        broken.checks
    );
    fs::write(place.at("store.db"), &good).unwrap();
    place.sql("PRAGMA user_version = 99");
    look(&place).expect("store", "failed", "newer Gleaner");
    fs::write(place.at("store.db"), &good).unwrap();
    assert_eq!(place.gleaner(&["run", "shop"]).code, 0);
    fs::write(place.at("store.db"), &good).unwrap();
    look(&place).expect("older copy", "failed", "restored from an older copy");
    assert_eq!(place.gleaner(&["restore", "--accept"]).code, 0);
    look(&place).expect("older copy", "ok", "");
}

#[test]
fn a_log_that_grew_and_a_clock_that_went_back() {
    let place = healthy("log");
    let log = fs::File::create(place.at("store.db-wal")).unwrap();
    chmod(&place.at("store.db-wal"), 0o600);
    log.set_len(300 * 1024 * 1024).unwrap();
    look(&place).expect("store log", "warning", "307200 KiB");
    fs::remove_file(place.at("store.db-wal")).unwrap();
    place.sql("UPDATE runs SET started_at = 4102444800000");
    look(&place).expect("clock", "failed", "a run was stored at 2100-01-01");
}

#[test]
fn leases_of_the_dead_and_of_the_living() {
    let place = healthy("leases");
    place.script("record(2); slice(2)\nwhile True: time.sleep(1)");
    let mut command = place.command(&["run", "shop", "--json"]);
    let mut run = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(run.stdout.as_mut().unwrap()), &mut line).unwrap();
    look(&place).expect("leases", "ok", &format!("process {} holds connection shop", run.id()));
    run.kill().unwrap();
    run.wait().unwrap();
    look(&place).expect("leases", "warning", "without giving back: connection shop");
}

#[test]
fn questions_that_wait() {
    let place = healthy("questions");
    place.sql(
        "INSERT INTO interactions (run, request_id, kind, message, asked_at, state)
         VALUES (1, 'q', 'otp', 'code?', 1, 'open')",
    );
    look(&place).expect("questions", "warning", "1 wait for you: shop");
}

#[test]
fn the_key_of_the_credentials_is_where_it_says_and_nobody_elses() {
    let place = healthy("key");
    let key = place.at("secrets/key");
    // The keyring of a machine may have it; then there is only a note.
    let well = look(&place);
    well.expect("credential key", "ok", "the key is in the");
    chmod(&key, 0o644);
    look(&place).expect("credential key", "failed", "secrets/key");
    chmod(&key, 0o600);
    fs::write(&key, "broken").unwrap();
    look(&place).expect("credential key", "failed", "key");
    fs::remove_file(&key).unwrap();
    fs::write(place.at("secrets/x.sealed"), "sealed").unwrap();
    chmod(&place.at("secrets/x.sealed"), 0o600);
    look(&place).expect("credential key", "failed", "");
}

#[test]
fn credentials_that_are_nowhere() {
    let place = healthy("credentials");
    let absent = look_with(place.command(&["doctor", "--json"]).env_remove("SHOP_TOKEN"));
    absent.expect("credentials", "failed", "missing: shop: SHOP_TOKEN");
    let file =
        look_with(place.command(&["doctor", "--json"]).env_remove("SHOP_TOKEN").env("SHOP_TOKEN_FILE", "/nowhere"));
    file.expect("credentials", "failed", "SHOP_TOKEN_FILE");
    fs::remove_dir_all(place.at("secrets")).unwrap();
    let absent = look_with(place.command(&["doctor", "--json"]).env_remove("SHOP_TOKEN"));
    absent.expect("credentials", "failed", "missing: shop: SHOP_TOKEN");
    look(&place).expect("credentials", "ok", "");
    assert!(!place.at("secrets").exists(), "a look makes nothing");
}

#[test]
fn commands_that_cannot_be_started() {
    let place = healthy("commands");
    fs::remove_file(place.root.join("shop.py")).unwrap();
    look(&place).expect("commands", "failed", "shop.py is not there");
    let add = |words: &[&str]| {
        let mut arguments = vec!["add", "--manifest", "manifest.json", "--"];
        arguments.extend(words);
        assert_eq!(place.gleaner(&arguments).code, 0);
        look(&place)
    };
    add(&["no-such-program-anywhere"]).expect("commands", "failed", "shop: no-such-program-anywhere is not in PATH");
    fs::write(place.root.join("plain"), "text").unwrap();
    add(&["./plain"]).expect("commands", "failed", "./plain is no program that can be started");
    add(&["python3", "-m", "shop"]).expect("commands", "ok", "");
    let mut command = place.command(&["doctor", "--json"]);
    let without = look_with(command.env("PATH", place.root.join("empty")));
    without.expect("python3", "failed", "it is not in PATH; shop needs it");
}

#[test]
fn manifests_that_are_no_longer_valid() {
    let place = healthy("manifests");
    place.sql("UPDATE connections SET manifest = '{}'");
    look(&place).expect("manifests", "failed", "shop: ");
    place.sql("UPDATE connections SET state = 'removed'");
    look(&place).expect("manifests", "ok", "of 0 connections");
}

#[test]
fn a_connector_in_the_folder_with_a_fault() {
    let place = healthy("connector-folder");
    fs::create_dir_all(place.at("connectors/bad")).unwrap();
    fs::write(place.at("connectors/bad/manifest.json"), "{}").unwrap();
    look(&place).expect("connector folder", "warning", "connector_id");
}

#[test]
fn a_connector_that_others_may_change() {
    let place = healthy("rights");
    chmod(&place.root.join("shop.py"), 0o666);
    look(&place).expect("connectors run with your rights", "warning", "others may change");
}

#[test]
fn leftovers_and_dead_sockets() {
    let place = healthy("leftovers");
    fs::write(place.at("store.db.4194999.unfinished-wal"), "").unwrap();
    fs::write(place.at("store.db.seen.4194998"), "").unwrap();
    // A socket's path is short, and this folder's may be long.
    let short = std::env::temp_dir().join(format!("gleaner-doctor-{}", std::process::id()));
    drop(UnixListener::bind(&short).unwrap());
    fs::create_dir_all(place.at("run")).unwrap();
    fs::rename(&short, place.at("run/dead.sock")).unwrap();
    let found = look(&place);
    for name in ["store.db.4194999.unfinished-wal", "store.db.seen.4194998", "dead.sock"] {
        found.expect("leftovers", "warning", name);
    }
}

#[test]
fn few_file_handles_and_a_locale_without_utf_8() {
    let place = healthy("machine");
    let script = format!("ulimit -n 64; exec '{}' doctor --json", env!("CARGO_BIN_EXE_gleaner"));
    let mut command = Command::new("bash");
    command.args(["-c", &script]).env("GLEANER_HOME", place.at("")).env("SHOP_TOKEN", "x").current_dir(&place.root);
    let few = look_with(command.env("LC_ALL", "POSIX"));
    few.expect("file handles", "warning", "64 may be open");
    few.expect("locale", "warning", "POSIX is not UTF-8");
    assert_eq!(few.code, 0, "warnings are no failure");
}
