//! Drivers that are not what they should be, and what of our surroundings gets into one that is.

#![cfg(feature = "patchright")]
#![expect(clippy::unwrap_used, reason = "a test whose parts cannot be built has failed")]

mod engines;
mod processes;
mod site;

use gleaner_browser::{BrowserError, EngineChoice, EngineKind, Notice, acquire_isolated_browser, outlook};
use site::{SOON, Site, request};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A folder that looks like a driver, and whose program is this.
fn imitation(folder: &Path, version: &str, script: &str) -> PathBuf {
    let driver = folder.join("driver");
    fs::create_dir_all(driver.join("package")).unwrap();
    fs::write(driver.join("package/cli.js"), "").unwrap();
    let text = format!(r#"{{"name": "patchright-core", "version": "{version}"}}"#);
    fs::write(driver.join("package/package.json"), text).unwrap();
    fs::write(driver.join("node"), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(driver.join("node"), fs::Permissions::from_mode(0o755)).unwrap();
    driver
}

#[test]
fn a_driver_that_does_not_do_its_work_is_named_and_the_profile_is_not_suspected() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profiles/shop");
    fs::create_dir_all(&profile).unwrap();
    fs::write(profile.join("of the owner"), "x").unwrap();
    let mut asked = request(EngineChoice::Patchright, &folder.path().join("profiles"), "shop");
    let cases = [
        ("1.64.0", "echo it is broken >&2; exit 3", "ended with code 3; it said: it is broken"),
        ("1.64.0", "exec sleep 1001", "did not start its driver within"),
        // A length, and less than that.
        ("1.64.0", "printf '\\377\\000\\000\\000garbage'; exec sleep 1001", "did not start its driver within"),
        // An answer, and nothing that could start a browser.
        ("1.64.0", "printf '\\021\\000\\000\\000{\"id\":1,\"result\":7}'; exec sleep 1001", "does not answer"),
        ("1.65.0", "exec sleep 1001", "is version 1.65.0"),
    ];
    for (version, script, expected) in cases {
        asked.driver = Some(imitation(folder.path(), version, script));
        asked.start_within = Duration::from_millis(800);
        let began = Instant::now();
        let error = acquire_isolated_browser(&asked).unwrap_err();
        assert!(matches!(&error, BrowserError::Driver { .. }), "{error}");
        assert!(error.to_string().contains(expected), "{script}: {error}");
        assert!(error.to_string().contains("PDPP_PATCHRIGHT_DRIVER"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(15));
        assert_eq!(processes::described(&profile), Vec::<String>::new());
    }
    assert!(profile.join("of the owner").exists());
    assert_eq!(fs::read_dir(folder.path().join("profiles")).unwrap().count(), 2, "the profile and its lock");
}

#[test]
fn a_driver_that_fails_once_does_not_cost_the_owner_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profiles/shop");
    fs::create_dir_all(&profile).unwrap();
    let mut asked = request(EngineChoice::Patchright, &folder.path().join("profiles"), "shop");
    let real = engines::driver().expect("the driver that scripts/test installs");
    let flag = folder.path().join("failed once");
    let script = format!(
        "[ -e '{flag}' ] || {{ : >'{flag}'; exit 3; }}; exec '{real}/node' '{real}/package/cli.js' run-driver",
        flag = flag.display(),
        real = real.display()
    );
    asked.driver = Some(imitation(folder.path(), "1.64.0", &script));
    assert!(matches!(acquire_isolated_browser(&asked), Err(BrowserError::Driver { .. })));
    let browser = acquire_isolated_browser(&asked).unwrap();
    assert!(!browser.notices().iter().any(|notice| matches!(notice, Notice::ProfileQuarantined(_))));
}

#[test]
fn auto_takes_the_driver_that_was_named_and_nothing_else_when_it_is_unfit() {
    let folder = tempfile::tempdir().unwrap();
    let mut asked = request(EngineChoice::Auto, folder.path(), "shop");
    assert_eq!(outlook(&asked).unwrap().engine, EngineKind::Patchright, "{asked:?}");
    asked.driver = Some(imitation(folder.path(), "1.50.0", ""));
    assert!(matches!(outlook(&asked), Err(BrowserError::Driver { .. })));
    asked.engine = EngineChoice::Pipe;
    assert_eq!(outlook(&asked).unwrap().engine, EngineKind::Pipe);
}

#[test]
fn auto_passes_over_an_unfit_driver_that_happens_to_be_there_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    // As a Python would have it, whose packages are looked at because of its environment.
    let packages = folder.path().join("lib/python3.99/site-packages/patchright");
    fs::create_dir_all(&packages).unwrap();
    imitation(&packages, "1.50.0", "exit 1");
    let mut command = Command::new(processes::driver());
    command.env("VIRTUAL_ENV", folder.path()).env("PDPP_BROWSER_ENGINE", "auto").env_remove("PDPP_PATCHRIGHT_DRIVER");
    command.arg("alone").arg(folder.path().join("profiles")).args(["shop", "about:blank", "close"]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.contains("driven by pipe") && said.contains("1.50.0"), "{said}");
    let mut command = Command::new(processes::driver());
    command.env("VIRTUAL_ENV", folder.path()).env("PDPP_BROWSER_ENGINE", "patchright");
    command.env_remove("PDPP_PATCHRIGHT_DRIVER");
    command.arg("alone").arg(folder.path().join("profiles")).args(["shop", "about:blank", "close"]);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success() && said.contains("is version 1.50.0; supported: 1.64.*"), "{said}");
}

#[test]
fn what_would_open_a_port_or_write_down_what_is_typed_does_not_reach_the_driver() {
    let (site, folder) = (Site::start(), tempfile::tempdir().unwrap());
    let mut command = Command::new(processes::driver());
    command.env("NODE_OPTIONS", "--inspect=127.0.0.1:0").env("DEBUG", "pw:*").env("PWDEBUG", "1");
    command
        .env("PDPP_BROWSER_ENGINE", "patchright")
        .env("PDPP_PATCHRIGHT_DRIVER", engines::driver().unwrap_or_default());
    command.arg("alone").arg(folder.path().join("profiles")).args(["shop", &site.at("/"), "hang"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while site.asked().is_empty() {
        assert!(began.elapsed() < SOON, "it did not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let driver = processes::driver_of(&folder.path().join("profiles/shop"));
    let variables = String::from_utf8_lossy(&fs::read(format!("/proc/{driver}/environ")).unwrap()).into_owned();
    let names = variables.split('\0').filter_map(|one| one.split_once('=')).map(|(name, _)| name).collect::<Vec<_>>();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(names.contains(&"PATH"), "{names:?}");
    for unwanted in ["NODE_OPTIONS", "DEBUG", "PWDEBUG"] {
        assert!(!names.contains(&unwanted), "{unwanted}");
    }
    processes::wait_gone(&folder.path().join("profiles/shop"));
}
