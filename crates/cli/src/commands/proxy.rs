//! `gleaner proxy`: the sidecar as a program, with signals, a line to watch, and a memory.

use crate::args::ProxyArgs;
use crate::config;
use crate::error::{CliError, EXIT_INTERRUPTED};
use crate::terminal::live;
use crate::terminal::output::report_to_stderr;
use gleaner_app::App;
use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::one_line;
use gleaner_egress::{Config, LISTEN, Proxy, ProxyError, Upstream, UpstreamError};
use gleaner_http::{Governors, MemoryError};
use std::error::Error;
use std::io;
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing::Level;

pub(crate) fn run(mut args: ProxyArgs) -> Result<ExitCode, CliError> {
    let app = args.home.app()?;
    config::Config::load(&app)?.fill_proxy(&mut args)?;
    let live = Arc::new(LiveLine::new(!args.quiet));
    crate::terminal::log::show(if args.verbose { Level::DEBUG } else { Level::WARN }, Arc::clone(&live));
    let config = config(&args, &app)?;
    // Tasks are short and many; the number of threads is that of the cores.
    let runtime = Runtime::new().map_err(|error| failed("cannot start", &error, "free some memory or threads"))?;
    runtime.block_on(serve(&args, config, &live))
}

async fn serve(args: &ProxyArgs, config: Config, live: &LiveLine) -> Result<ExitCode, CliError> {
    let mut signals = Signals::watch()?;
    let upstream = config.upstream.to_string();
    let proxy = Proxy::bind(config).await?;
    greet(args, &proxy, &upstream);
    let governors = proxy.governors().clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let mut serving = pin!(proxy.serve(async { drop(stopped.await) }));
    let code = tokio::select! {
        () = &mut serving => ExitCode::SUCCESS,
        code = signals.next() => code,
        never = live::follow(live, &governors) => match never {},
    };
    live.clear();
    drop(stop);
    // Who asks a second time does not want to wait.
    tokio::select! {
        () = &mut serving => {}
        _ = signals.next() => report_to_stderr("ended at once; requests that were out were cut off"),
    }
    Ok(code)
}

fn greet(args: &ProxyArgs, proxy: &Proxy, upstream: &str) {
    let listen = proxy.local_addr();
    if !args.quiet {
        report_to_stderr(&one_line(&format!("gleaner proxy: http://{listen} stands for {upstream}; Ctrl-C ends it")));
    }
    if !listen.ip().is_loopback() {
        report_to_stderr(&format!("warning: {listen} is open to other machines; whoever reaches it can use it"));
    }
}

/// What ends the program: Ctrl-C, or a service manager.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn watch() -> Result<Self, CliError> {
        let fail = |error: io::Error| failed("cannot watch for signals", &error, "free some file handles");
        let watch = |kind| signal(kind).map_err(fail);
        Ok(Self { interrupt: watch(SignalKind::interrupt())?, terminate: watch(SignalKind::terminate())? })
    }

    /// The exit code of the next one. To be stopped is what a server expects; to be interrupted is what a
    /// script that started it should see.
    async fn next(&mut self) -> ExitCode {
        tokio::select! {
            _ = self.interrupt.recv() => ExitCode::from(EXIT_INTERRUPTED),
            _ = self.terminate.recv() => ExitCode::SUCCESS,
        }
    }
}

fn config(args: &ProxyArgs, app: &App) -> Result<Config, CliError> {
    let mut config = Config::new(Upstream::parse(&args.upstream)?);
    config.governors = Governors::remembering(&app.pacing_folder())?;
    config.listen = args.listen.unwrap_or(LISTEN);
    config.per_authorization = args.per_authorization;
    config.allow_insecure_upstream = args.allow_insecure_upstream;
    let settings = &mut config.settings;
    if let Some(ceiling) = args.ceiling_interval_ms {
        settings.config.ceiling_interval = Duration::from_millis(ceiling);
    }
    settings.config.max_concurrency = args.max_in_flight.unwrap_or(settings.config.max_concurrency);
    settings.max_waiting = args.max_waiting.map_or(settings.max_waiting, |waiting| waiting as usize);
    Ok(config)
}

fn failed(what: &str, error: &dyn Error, hint: impl Into<String>) -> CliError {
    let cause = error.source().map(|source| format!(": {source}")).unwrap_or_default();
    let what = if what.is_empty() { error.to_string() } else { format!("{what}: {error}") };
    CliError::failed(format!("{what}{cause}"), hint)
}

impl From<UpstreamError> for CliError {
    fn from(error: UpstreamError) -> Self {
        let hint = match &error {
            UpstreamError::Credentials => {
                "leave it out; your program sends its own Authorization, and it passes as it is"
            }
            _ => "give an origin and, if need be, a base path: --upstream https://api.example.com/v2",
        };
        Self::usage(format!("--upstream: {error}"), hint)
    }
}

impl From<MemoryError> for CliError {
    fn from(error: MemoryError) -> Self {
        failed("", &error, "give a folder that you may write to: --home DIR, or GLEANER_HOME")
    }
}

impl From<ProxyError> for CliError {
    fn from(error: ProxyError) -> Self {
        match &error {
            ProxyError::InsecureUpstream(_) => {
                let hint = "use https, or say --allow-insecure-upstream if the way there is trusted";
                Self::usage(format!("--upstream: {error}"), hint)
            }
            ProxyError::UpstreamIsSelf(_) => Self::usage(format!("--upstream: {error}"), "give another --listen"),
            ProxyError::Listen { source, .. } => failed("", &error, listen_hint(source)),
            ProxyError::Tls(_) => failed("", &error, "install the certificates of your system (ca-certificates)"),
            ProxyError::Key(_) => failed("", &error, "this is a bug; please report it"),
        }
    }
}

fn listen_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::AddrInUse => {
            "another program, or another sidecar, listens there; give another --listen 127.0.0.1:PORT"
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 are not for everyone; give another --listen 127.0.0.1:PORT"
        }
        _ => "give an address of this machine: --listen 127.0.0.1:PORT",
    }
}
