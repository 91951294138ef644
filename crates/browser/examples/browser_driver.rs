//! A browser in a process of its own, with or without the runtime around it: what the tests of clean-up start and kill.
//!
//! ```text
//! browser_driver alone PROFILES NAME URL ENDING            a connector that was started by hand
//! browser_driver runtime FOLDER PROFILES NAME URL ENDING   the same under the runtime, with its guard
//! ```
//!
//! It opens the address, and then ends as it was told: `close`, `drop`, `panic`, or `hang`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for tests, its output is its interface")]

use gleaner_browser::{BrowserError, BrowserRequest, ProfileName, Window, acquire_isolated_browser};
use gleaner_engine::{RunScope, WallTime};
use gleaner_protocol::{Manifest, ManifestOrigin, Scope, StreamScope};
use gleaner_runtime::{Environment, Launch, RunRequest, Unobserved};
use gleaner_sdk::{Collect, Connector, Stop, run_connector};
use gleaner_store::Store;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

const MANIFEST: &str = r#"{"connector_id":"t","connector_key":"t","version":"1","display_name":"T",
    "streams":[{"name":"ids","semantics":"mutable_state","primary_key":"id","schema":{"type":"object"}}]}"#;
const SOON: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).collect::<Vec<_>>();
    let Some((first, rest)) = words.split_first() else { return ExitCode::from(2) };
    let ended = match first.to_str() {
        Some("guard") => return code(gleaner_runtime::guard_main(rest)),
        Some("exec") => return code(gleaner_runtime::exec_main(rest)),
        Some("connector") => return run_connector(MANIFEST, &Browsing(rest.to_vec())),
        Some("alone") => browse(rest).map_err(|error| error.to_string()),
        Some("runtime") => run(rest).map_err(|error| error.to_string()),
        _ => return ExitCode::from(2),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn browse(words: &[OsString]) -> Result<(), BrowserError> {
    let [profiles, name, url, ending] = words else { panic!("PROFILES NAME URL ENDING") };
    let mut request = BrowserRequest::new("t", None, &|name| std::env::var(name).ok())?;
    request.profiles = Path::new(profiles).to_owned();
    request.profile = ProfileName::new(&name.to_string_lossy())?;
    request.window = Window::Headless;
    let browser = acquire_isolated_browser(&request)?;
    println!("driven by {}", browser.engine());
    for notice in browser.notices() {
        println!("{notice}");
    }
    let page = browser.new_page(SOON)?;
    page.navigate(&url.to_string_lossy(), SOON)?;
    println!("ready");
    match ending.to_str() {
        Some("close") => browser.close(SOON)?,
        Some("drop") => return Err(BrowserError::Replaced),
        Some("panic") => panic!("as it was told"),
        _ => loop {
            std::thread::sleep(SOON);
        },
    }
    Ok(())
}

/// The same as a connector.
struct Browsing(Vec<OsString>);

impl Connector for Browsing {
    fn collect(&self, _: &mut Collect<'_>) -> Result<(), Stop> {
        browse(&self.0).map_err(|error| Stop::failed(error.to_string()))
    }
}

fn run(words: &[OsString]) -> Result<(), Box<dyn std::error::Error>> {
    let [folder, of_connector @ ..] = words else { return Err("FOLDER".into()) };
    let manifest =
        Manifest::parse(MANIFEST.as_bytes(), ManifestOrigin::Foreign).map_err(|error| format!("{error:?}"))?;
    let mut store = Store::open(&Path::new(folder).join("store.db"))?;
    store.register("c", MANIFEST, &manifest, WallTime::default())?;
    let ourselves = std::env::current_exe()?.into_os_string();
    let started = |word: &str| vec![ourselves.clone(), OsString::from(word)];
    let launch = Launch {
        command: [started("connector"), of_connector.to_vec()].concat(),
        environment: Environment::for_connector(
            std::env::vars_os(),
            &["PDPP_BROWSER_ENGINE", "PDPP_PATCHRIGHT_DRIVER"].map(String::from),
        ),
        folder: None,
        guard: started("guard"),
        exec: started("exec"),
    };
    let scope = RunScope::ordinary(Scope::new(vec![StreamScope::all_of("ids")])?);
    let request = RunRequest::new("c", Arc::new(manifest), scope, launch);
    let (_orders, control) = std::sync::mpsc::channel();
    let report = gleaner_runtime::run(&mut store, request, control, &mut Unobserved)?;
    println!("{:?}", report.outcome);
    Ok(())
}
