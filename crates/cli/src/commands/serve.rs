//! `gleaner serve`: keeps every connection as fresh as its plan says, until it is told to stop.
//!
//! And `gleaner scheduled-run`, which nobody types: one run of the service's, in a process of its own that ends with it.

use crate::args::author::AuthorArgs;
use crate::args::collect::{CollectArgs, HomeArgs, Interact};
use crate::args::serve::{Listen, ScheduledRunArgs, ServeArgs, YesNo};
use crate::commands::run;
use crate::connection::stored;
use crate::console_setup::ConsoleSetup;
use crate::credentials::Credentials;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::log;
use crate::output::{Output, report_to_stderr};
use crate::stop_signals;
use gleaner_app::{Channels, Handle, LogFile, Nudge, OwnerActions, ServeError, Service, ServiceConfig, Supervisor};
use gleaner_console::{Console, ConsoleError, LISTEN_DEFAULT, Reach, Settings, TlsFiles};
use gleaner_schedule::{Kind, Limits};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) fn run(args: &ServeArgs) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    home.make_root()?;
    let folder = home.logs_path();
    let log = LogFile::open(&folder, "serve.log").map_err(|error| CliError::Failed {
        message: format!("cannot write the log in {}: {error}", folder.display()),
        hint: "give a data root that you may write to, with room on its disk".to_owned(),
    })?;
    log::to_file(log, args.quiet);
    let service = Service::begin(config(args, &home)?).map_err(refused)?;
    let handle = service.handle();
    stop_signals::each(move || {
        handle.stop();
        true
    });
    let console = console(args, &home, service.handle())?;
    let served = service.serve().map_err(refused);
    drop(console);
    served?;
    Ok(ExitCode::SUCCESS)
}

/// The console, unless nobody wants one. Where nobody said where it listens, somebody else's being there already is no
/// reason not to collect.
fn console(args: &ServeArgs, home: &Home, service: Handle) -> Result<Option<Console>, CliError> {
    let listen = match args.listen {
        Some(Listen::Off) => return Ok(None),
        Some(Listen::At(address)) => address,
        None => LISTEN_DEFAULT,
    };
    let actions = OwnerActions::new(home.store_path(), home.control_folder());
    let nudge: Nudge = Arc::new(move || service.nudge());
    let setup = ConsoleSetup { home: home.clone(), nudge: Arc::clone(&nudge) };
    let actions = actions.with_nudge(nudge).with_setup(Arc::new(setup));
    let (root, store, names) = (home.root().to_owned(), home.store_path(), args.allow_host.clone());
    let settings = Settings { listen, names, root, store, reach: reach(args)? };
    let console = match Console::start(settings, Arc::new(actions)) {
        Ok(console) => console,
        Err(error @ ConsoleError::Listen { .. }) if args.listen.is_none() => {
            tracing::warn!("there is no console: {error}; {}", error.hint());
            return Ok(None);
        }
        Err(error) => return Err(CliError::Failed { message: error.to_string(), hint: error.hint() }),
    };
    if !args.quiet {
        // Not into the log: whoever reads the link may open it.
        let link = console.new_link();
        let link = link.map_err(|error| CliError::Failed { message: error.to_string(), hint: error.hint() })?;
        report_to_stderr(&format!("console: {link}\n(this link works once, within a quarter of an hour)"));
    }
    Ok(Some(console))
}

/// From where the console can be reached.
fn reach(args: &ServeArgs) -> Result<Reach, CliError> {
    let tls = match (&args.tls_certificate, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            let hint = "set both serve.tls_certificate and serve.tls_key, or neither";
            return Err(CliError::usage("TLS needs a certificate and its key, and one of the two is not given", hint));
        }
    };
    let behind_proxy = args.behind_proxy == Some(YesNo::Yes);
    Ok(Reach { tls, behind_proxy, base: args.base_path.clone().unwrap_or_default() })
}

fn config(args: &ServeArgs, home: &Home) -> Result<ServiceConfig, CliError> {
    let ourselves = run::ourselves()?;
    let mut root = OsString::from("--root=");
    root.push(home.root());
    let parent = format!("--parent={}", std::process::id());
    let default = Limits::default();
    let find_in = home.clone();
    Ok(ServiceConfig {
        store: home.store_path(),
        secrets: home.root().join("secrets"),
        run: vec![ourselves.into_os_string(), "scheduled-run".into(), parent.into(), root],
        limits: Limits { runs: args.max_runs.map_or(default.runs, usize::from), ..default },
        channels: Channels {
            desktop: args.notify_desktop != Some(YesNo::No),
            command: args.notify_command.clone(),
            webhook: args.notify_webhook.clone(),
        },
        supervisor: Supervisor::from_environment(|name| std::env::var_os(name)),
        find_credential: Arc::new(move |name| {
            let (_, manifest, _) = stored(&find_in, name).ok()?;
            let credentials = Credentials::find(&manifest, &find_in, name).ok()?;
            Some(credentials.account(&manifest, &find_in).ok()??.1)
        }),
    })
}

fn refused(error: ServeError) -> CliError {
    match error {
        ServeError::Held(by) => {
            let (pid, since, until) = (by.pid, dates::rfc3339(by.since), dates::rfc3339(by.until));
            CliError::Held {
                message: format!(
                    "process {pid} serves this data root since {since}, and until {until} if it gives no sign"
                ),
                hint: format!("one service is enough; to end that one: kill {pid}, or gleaner service uninstall"),
            }
        }
        ServeError::Store(error) => error.into(),
        ServeError::Thread(_) => CliError::Failed {
            message: error.to_string(),
            hint: "the system has too many threads or too little memory".to_owned(),
        },
    }
}

/// One run of the service's.
pub(crate) fn scheduled_run(args: ScheduledRunArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    // Nothing goes on that nobody supervises: what is durable is gone on with by the next service.
    let tied = set_parent_process_death_signal(Some(Signal::KILL));
    let parent = getppid().map(rustix::process::Pid::as_raw_nonzero);
    if tied.is_err() || parent.is_none_or(|pid| i64::from(pid.get()) != i64::from(args.parent)) {
        let hint = "this command is for `gleaner serve`; use `gleaner run`";
        return Err(CliError::usage("the service that started this run is gone", hint));
    }
    let mut collect = CollectArgs {
        connection: Some(args.connection),
        manifest: None,
        name: None,
        streams: Vec::new(),
        resources: Vec::new(),
        since: None,
        full_refresh: false,
        catch_up: args.kind == Kind::CatchUp,
        max_requests: None,
        max_duration: None,
        interact: Some(Interact::Park),
        now: false,
        json: false,
        quiet: true,
        author: AuthorArgs::default(),
        home: HomeArgs { home: Some(args.root) },
        command: Vec::new(),
        scheduled: Some(args.kind),
    };
    crate::config::Config::load(&Home::find(&collect.home)?)?.fill_run(&mut collect)?;
    if args.kind == Kind::Probe {
        collect.max_requests = Some(1);
    }
    run::run(&collect, out)
}
