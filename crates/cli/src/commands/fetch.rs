//! `gleaner fetch`: a list of URLs, each host at its own pace, one JSON line per URL.

mod pages;

use crate::args::fetch::FetchArgs;
use crate::config::Config;
use crate::error::{CliError, EXIT_GAPS, EXIT_INTERRUPTED};
use crate::terminal::output::{Output, report_to_stderr};
use crate::terminal::stop_signals;
use gleaner_app::{AppError, ErrorKind};
use gleaner_base::live_line::LiveLine;
use gleaner_base::outside::one_line;
use gleaner_fetch::{Assignment, Event, FetchError, List, Progress, Settings, Stop, Summary, fetch};
use gleaner_http::governor::keyed::Domain;
use pages::Pages;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How often a line is written where nobody watches: a log of a day has some thousand of them.
const LOG_EVERY: Duration = Duration::from_secs(10);

pub(crate) fn run(mut args: FetchArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    Config::load(&args.home.app()?)?.fill_fetch(&mut args)?;
    let settings = settings(&args)?;
    let list = match args.list.as_path() {
        path if path == Path::new("-") => List::Pipe(Box::new(io::stdin())),
        path => List::File(path.to_owned()),
    };
    raise_open_files();
    let stop = Stop::default();
    let wish = stop.clone();
    let interrupted = stop_signals::watch(move || wish.stop());
    let runtime = Runtime::new()
        .map_err(|error| CliError::failed(format!("cannot start: {error}"), "free some memory or threads"))?;
    let (mut watch, mut pages) = (Watch::new(args.quiet), Pages::new(&args));
    let fetched = runtime.block_on(fetch(list, settings, stop, |event| match event {
        Event::Started(domains) => pages.begin(domains),
        Event::Line(_, json) => {
            watch.live.clear();
            out.line(json)
        }
        Event::Progress(progress) => {
            watch.show(progress);
            pages.write_if_due()
        }
    }));
    watch.live.clear();
    // A name that is still being looked up is nobody's to wait for.
    runtime.shutdown_background();
    let summary = fetched.map_err(|error| failed(error, &args))?;
    pages.write()?;
    if !args.quiet {
        report_to_stderr(&said(&summary, &args.out));
    }
    Ok(match summary {
        _ if interrupted.is_set() => ExitCode::from(EXIT_INTERRUPTED),
        Summary { failed: 0, .. } => ExitCode::SUCCESS,
        _ => ExitCode::from(EXIT_GAPS),
    })
}

fn settings(args: &FetchArgs) -> Result<Settings, CliError> {
    let mut settings = Settings::new(args.out.clone());
    settings.obeys_robots = !args.no_robots;
    settings.body_bytes_max = args.max_body.unwrap_or(settings.body_bytes_max);
    settings.concurrency = args.concurrency.map_or(settings.concurrency, usize::from);
    settings.wait_max = args.max_wait.map_or(settings.wait_max, Duration::from_secs);
    settings.allows_private_redirects = args.private_redirects;
    if let Some(name) = &args.user_agent {
        if name.is_empty() || name.chars().any(|c| c.is_control() || !c.is_ascii()) {
            return Err(CliError::usage("--user-agent: not a text that a header may have", "use plain ASCII"));
        }
        settings.user_agent.clone_from(name);
    }
    let governor = &mut settings.governor;
    let hint = "`gleaner config show` says where each value of fetch comes from";
    Assignment::apply(&args.settings, governor).map_err(|error| CliError::usage(format!("--set: {error}"), hint))?;
    if let Some(rate) = args.max_rate {
        let key = &mut governor.key;
        key.ceiling_interval = Duration::from_secs_f64(1.0 / rate);
        key.discovery_interval = key.discovery_interval.max(key.ceiling_interval);
        key.slowest_interval = key.slowest_interval.max(key.ceiling_interval);
    }
    for group in &args.groups {
        let domain = Domain::parse(group).ok().filter(|domain| !domain.as_str().contains(':'));
        let hint = "give the name alone: --group example.com";
        let domain = domain.ok_or_else(|| CliError::usage(format!("--group: {group:?} is no domain"), hint))?;
        governor.groups.insert(domain.as_str().into());
    }
    settings.governor.check().map_err(|error| CliError::usage(format!("--set: {error}"), hint))?;
    Ok(settings)
}

/// A connection is an open file, and the usual limit of 1024 is for programs with few. As many as we may.
fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Not allowed: then connections that do not fit fail one by one, and say so.
    let _raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn said(summary: &Summary, out: &Path) -> String {
    let Summary { fetched, unchanged, failed, is_complete, .. } = *summary;
    let unchanged = if unchanged > 0 { format!(" ({unchanged} unchanged)") } else { String::new() };
    let counts = format!("{fetched} fetched{unchanged}, {failed} failed");
    let out = one_line(&out.display().to_string());
    match is_complete {
        true => format!("{counts}; see {out}/results.jsonl"),
        false => format!("interrupted: {counts}; run the same command to resume"),
    }
}

fn failed(error: FetchError, args: &FetchArgs) -> CliError {
    let message = error.to_string();
    match error {
        FetchError::Listener(error) => error.into(),
        FetchError::List(_) => CliError::usage(
            format!("{}: {message}", args.list.display()),
            "give a file with one URL per line, or - for standard input",
        ),
        FetchError::Busy(_) => {
            CliError::App(AppError::new(ErrorKind::Held, message, "wait for it, or give another --out DIR"))
        }
        FetchError::Setting(_) => CliError::usage(message, "see `gleaner fetch --help`"),
        FetchError::Folder(_) => CliError::failed(
            format!("{}: {message}", args.out.display()),
            "see whether the disk is full, or give another --out DIR; what is finished is kept",
        ),
        _ => CliError::failed(message, "this is a bug; please report it"),
    }
}

/// How it goes, on stderr: one line that is drawn again where somebody watches, otherwise a log.
struct Watch {
    quiet: bool,
    live: LiveLine,
    last: (Instant, u64),
}

impl Watch {
    fn new(quiet: bool) -> Self {
        Self { quiet, live: LiveLine::new(!quiet), last: (Instant::now(), 0) }
    }

    fn show(&mut self, progress: &Progress) {
        let (at, requests) = self.last;
        let elapsed = at.elapsed();
        if self.quiet || (!self.live.is_shown() && elapsed < LOG_EVERY) {
            return;
        }
        let per_s = progress.requests.saturating_sub(requests) as f64 / elapsed.as_secs_f64().max(0.001);
        self.last = (Instant::now(), progress.requests);
        let text = line(progress, per_s);
        if self.live.is_shown() { self.live.show(|| text) } else { report_to_stderr(&text) }
    }
}

/// What is going on, in one line.
fn line(progress: &Progress, per_s: f64) -> String {
    let Progress { done, failed, found, all_found, hosts, refused, circuits_open, .. } = *progress;
    let more = if all_found { "" } else { "+" };
    format!(
        "{done}/{found}{more} done | {per_s:.1}/s | {hosts} hosts | {refused} refused | {circuits_open} circuits open | {failed} failed"
    )
}
