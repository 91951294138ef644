//! The console and a run as programs, without the rest of Gleaner: what the tests start, ask and kill.
//!
//! ```text
//! console-driver serve ROOT LISTEN [BASE]
//! console-driver run ROOT CONNECTION MANIFEST -- COMMAND…
//! ```
//!
//! `serve` prints its address, and ends with its input. `run` is one run of a connector, which can be answered and
//! stopped by other processes.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for tests, its output is its interface")]

use gleaner_app::OwnerActions;
use gleaner_console::{BasePath, Console, Reach, Settings};
use gleaner_engine::{RunPurpose, RunScope, WallTime};
use gleaner_protocol::{CollectionMode, Manifest, ManifestOrigin, RawJson, Scope, StreamScope};
use gleaner_runtime::{Environment, Launch, Observer, Redactor, RunRequest};
use gleaner_store::Store;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let words = std::env::args_os().skip(1).collect::<Vec<_>>();
    let done = match words.split_first() {
        Some((word, rest)) if word == "guard" => return code(gleaner_runtime::guard_main(rest)),
        Some((word, rest)) if word == "exec" => return code(gleaner_runtime::exec_main(rest)),
        Some((word, rest)) if word == "run" => run(rest),
        Some((word, rest)) if word == "serve" => serve(rest),
        _ => Err("serve or run".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

fn serve(words: &[OsString]) -> Fallible<()> {
    let (root, listen, base) = match words {
        [root, listen] => (root, listen, ""),
        [root, listen, base] => (root, listen, base.to_str().ok_or("no path")?),
        _ => return Err("serve ROOT LISTEN [BASE]".into()),
    };
    let reach = Reach { base: BasePath::new(base).ok_or("no base path")?, ..Reach::default() };
    let root = Path::new(root);
    let listen = listen.to_str().ok_or("no address")?.parse()?;
    let store = root.join("store.db");
    let actions = Arc::new(OwnerActions::new(store.clone(), root.join("run")));
    let settings = Settings { listen, names: Vec::new(), root: root.to_owned(), store, reach };
    let console = Console::start(settings, actions)?;
    println!("{}", console.address());
    println!("{}", console.new_link()?);
    let _bytes = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    console.stop();
    Ok(())
}

fn run(words: &[OsString]) -> Fallible<()> {
    let split = words.iter().position(|word| word == "--").ok_or("no command")?;
    let [root, connection, manifest] = &words[..split] else { return Err("run ROOT CONNECTION MANIFEST".into()) };
    let (root, connection) = (Path::new(root), connection.to_str().ok_or("no name")?);
    let text = std::fs::read_to_string(manifest)?;
    let manifest = Manifest::parse(text.as_bytes(), ManifestOrigin::Foreign).map_err(|error| format!("{error:?}"))?;
    let mut store = Store::open(&root.join("store.db"))?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    store.register(connection, &text, &manifest, WallTime::from_unix_millis(u64::try_from(since.as_millis())?))?;
    let request = request(root, connection, manifest, &words[split + 1..])?;
    let (_orders, control) = channel();
    let report = gleaner_runtime::run(&mut store, request, control, &mut Silent)?;
    println!("{}", report.outcome.reason);
    Ok(())
}

struct Silent;

impl Observer for Silent {}

fn request(root: &Path, connection: &str, manifest: Manifest, command: &[OsString]) -> Fallible<RunRequest> {
    let ourselves = std::env::current_exe()?.into_os_string();
    let streams = manifest.streams.iter().map(|stream| StreamScope::all_of(&stream.name)).collect();
    let binding =
        |name: &str| Ok::<_, String>((name.to_owned(), RawJson::new("{}").map_err(|fault| fault.to_string())?));
    let bindings = ["network", "filesystem", "interactive"].map(binding).into_iter().collect::<Result<_, _>>()?;
    Ok(RunRequest {
        connection: connection.to_owned(),
        scope: RunScope::ordinary(Scope::new(streams)?),
        mode: CollectionMode::Incremental,
        purpose: RunPurpose::Full,
        grant: "all".to_owned(),
        grant_expires_at: None,
        launch: Launch {
            command: command.to_vec(),
            environment: Environment::for_connector(std::env::vars_os(), &manifest.environment_variables),
            folder: None,
            guard: vec![ourselves.clone(), "guard".into()],
            exec: vec![ourselves, "exec".into()],
        },
        manifest: Arc::new(manifest),
        bindings,
        budget: None,
        overrun: Duration::from_secs(1),
        credential: None,
        redactor: Redactor::new(Vec::new()),
        interval: None,
        silence_max: None,
        control: Some(root.join("run")),
    })
}
