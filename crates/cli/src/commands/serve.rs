//! `gleaner serve`: keeps every connection as fresh as its plan says, until it is told to stop.
//!
//! And `gleaner scheduled-run`, which nobody types: one run of the service's, in a process of its own that ends with it.

use super::run;
use crate::args::collect::Interact;
use crate::args::serve::{Listen, ScheduledRunArgs, ServeArgs, YesNo};
use crate::config::Config;
use crate::error::CliError;
use crate::terminal::log;
use crate::terminal::output::{Output, report_to_stderr};
use crate::terminal::run_view::Shown;
use crate::terminal::stop_signals;
use gleaner_app::{App, Channels, Handle, LogFile, RunSpec, ServiceConfig, Supervisor};
use gleaner_console::{BindPolicy, Console, ConsoleError, LISTEN_DEFAULT, Settings, TlsFiles};
use gleaner_schedule::Limits;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) fn run(mut args: ServeArgs) -> Result<(), CliError> {
    let app = args.home.app()?;
    Config::load(&app)?.fill_serve(&mut args)?;
    app.make_root()?;
    let folder = app.logs_path();
    let log = LogFile::open(&folder, "serve.log").map_err(|error| {
        let message = format!("cannot write the log in {}: {error}", folder.display());
        CliError::failed(message, "give a data root that you may write to, with room on its disk")
    })?;
    log::to_file(log, args.quiet);
    let default = Limits::default();
    let service = app.begin_service(ServiceConfig {
        limits: Limits { runs: args.max_runs.map_or(default.runs, usize::from), ..default },
        channels: Channels {
            desktop: args.notify_desktop != Some(YesNo::No),
            command: args.notify_command.clone(),
            webhook: args.notify_webhook.clone(),
        },
        supervisor: Supervisor::from_environment(|name| std::env::var_os(name)),
    })?;
    let handle = service.handle();
    stop_signals::listen(move || {
        handle.stop();
        true
    });
    let console = console(&args, app, service.handle())?;
    let served = service.serve();
    drop(console);
    Ok(served?)
}

/// The console, unless nobody wants one. Where nobody said where it listens, somebody else's being there already is no
/// reason not to collect.
fn console(args: &ServeArgs, app: App, service: Handle) -> Result<Option<Console>, CliError> {
    let listen = match args.listen {
        Some(Listen::Off) => return Ok(None),
        Some(Listen::At(address)) => address,
        None => LISTEN_DEFAULT,
    };
    let app = app.with_nudge(Arc::new(move || service.nudge()));
    let settings = Settings { listen, names: args.allow_host.clone(), policy: bind_policy(args)? };
    let refused = |error: ConsoleError| CliError::failed(error.to_string(), error.hint());
    let console = match Console::start(settings, app) {
        Ok(console) => console,
        Err(error @ ConsoleError::Listen { .. }) if args.listen.is_none() => {
            tracing::warn!("there is no console: {error}; {}", error.hint());
            return Ok(None);
        }
        Err(error) => return Err(refused(error)),
    };
    if !args.quiet {
        // Not into the log: whoever reads the link may open it.
        let link = console.new_link().map_err(refused)?;
        report_to_stderr(&format!("console: {link}\n(this link works once, within a quarter of an hour)"));
    }
    Ok(Some(console))
}

/// From where the console can be reached.
fn bind_policy(args: &ServeArgs) -> Result<BindPolicy, CliError> {
    let tls = match (&args.tls_certificate, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(TlsFiles { certificate: certificate.clone(), key: key.clone() }),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            let hint = "set both serve.tls_certificate and serve.tls_key, or neither";
            return Err(CliError::usage("TLS needs a certificate and its key, and one of the two is not given", hint));
        }
    };
    let behind_proxy = args.behind_proxy == Some(YesNo::Yes);
    Ok(BindPolicy { tls, behind_proxy, base: args.base_path.clone().unwrap_or_default() })
}

/// One run of the service's.
pub(crate) fn scheduled_run(args: &ScheduledRunArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    // Nothing goes on that nobody supervises: the next service goes on from what is durable.
    let tied = set_parent_process_death_signal(Some(Signal::KILL));
    let parent = getppid().map(rustix::process::Pid::as_raw_nonzero);
    let hint = "this command is for `gleaner serve`; use `gleaner run`";
    if tied.is_err() || parent.is_none_or(|pid| i64::from(pid.get()) != i64::from(args.parent)) {
        return Err(CliError::usage("the service that started this run is gone", hint));
    }
    let mut spec: RunSpec = serde_json::from_reader(std::io::stdin().lock())
        .map_err(|error| CliError::usage(format!("standard input is no specification of a run: {error}"), hint))?;
    let app = args.home.app()?;
    Config::load(&app)?.fill_run(&mut spec, &mut None)?;
    run::run_spec(&app, spec, Shown { json: false, quiet: true, interact: Interact::Park }, out)
}
