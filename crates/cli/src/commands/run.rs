//! `gleaner run`: one run of one connection, shown while it goes on, accounted for at its end.

use crate::args::collect::{CollectArgs, Interact};
use crate::bindings;
use crate::collect_view::{Cooldowns, View, finished, not_begun};
use crate::connection::{Settings, read_manifest, stored};
use crate::credentials::Credentials;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, visible};
use crate::recorded;
use crate::rehearsal;
use crate::scope;
use crate::stop_signals;
use gleaner_engine::{CooldownPolicy, Permission, Refusal, Rest, RunPurpose, Trigger, WallTime};
use gleaner_protocol::{CollectionMode, Manifest, RunBudget};
use gleaner_runtime::{Environment, Launch, Redactor, RunError, RunReport, RunRequest};
use gleaner_schedule::Kind;
use gleaner_sdk::exchanges::RECORD_VARIABLE;
use gleaner_sdk::{ACCOUNT_VARIABLE, PACING_VARIABLE};
use gleaner_store::{ConnectionState, HeldBy, LeaseOn, Store};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a connector may go on after its time: what one request may take.
const OVERRUN: Duration = Duration::from_secs(30);
/// After so long without any news a connector that nobody watches is taken for stuck. Nobody is asked to wait longer
/// than five minutes, and nothing that is worth waiting for takes an hour for one request.
const SILENCE_MAX: Duration = Duration::from_secs(3600);
/// The one grant of a connection, until there are several.
const GRANT: &str = "owner";

pub(crate) fn run(args: &CollectArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let ended = collect(args, out);
    if let (true, Err(error)) = (args.json, &ended) {
        // Whoever reads the lines waits for the last one, also when there was no run.
        not_begun(error, out)?;
    }
    ended
}

fn collect(args: &CollectArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    if args.author.is_rehearsal() {
        return rehearsal::run(args, out);
    }
    let recording = args.author.record.as_deref().map(recorded::place).transpose()?;
    let home = Home::find(&args.home)?;
    let mut store = home.store()?;
    let (name, manifest, settings) = find_connection(args, &home, &mut store)?;
    check_state(args, &home, &name)?;
    let interval = interval(&home, &name, &manifest)?;
    let policy = CooldownPolicy::of(interval, manifest.refresh_policy.as_ref());
    let (purpose, rest) = purpose(args, &home, &mut store, &name, policy)?;
    let credentials = Credentials::find(&manifest, &home, &name)?;
    let missing = credentials.missing_names();
    let asks = interact(args);
    let mut request = request(args, &home, &name, manifest, &settings, &credentials)?;
    (request.purpose, request.interval) = (purpose, interval);
    if let Some(file) = &recording {
        request.launch.environment.set(RECORD_VARIABLE, file);
    }
    let (orders, control) = channel();
    stop_signals::forward(&orders);
    let mut view = View::new(&name, args, asks, missing.clone(), orders);
    let report = gleaner_runtime::run(&mut store, request, control, &mut view);
    drop(view);
    let report: RunReport = report.map_err(|error| refused(error, &name))?;
    let cooldown = Cooldowns { before: rest, after: store.rest(&name, policy, dates::now())? };
    drop(store);
    let code = finished(&home.reader()?, &name, &report, args, &missing, cooldown, out)?;
    if let Some(file) = &recording {
        recorded::check(file, &Redactor::new(credentials.secrets()), args.quiet)?;
    }
    Ok(code)
}

/// What happens to questions.
fn interact(args: &CollectArgs) -> Interact {
    let watched = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    args.interact.unwrap_or(if watched { Interact::Prompt } else { Interact::None })
}

/// A connection that was added, or one that is described on the command line.
fn find_connection(
    args: &CollectArgs,
    home: &Home,
    store: &mut Store,
) -> Result<(String, Manifest, Settings), CliError> {
    let Some(file) = &args.manifest else {
        let name = args.connection.clone().unwrap_or_default();
        let (text, manifest, settings) = stored(home, &name)?;
        if settings.first_party.is_some() && home.reader()?.manifest_text(&name)? != text {
            store.register(&name, &text, &manifest, dates::now())?;
        }
        return Ok((name, manifest, settings.started_by(&args.command)?));
    };
    let (text, manifest) = read_manifest(file)?;
    let name = args.name.clone().unwrap_or_else(|| manifest.connector_key.clone());
    store.register(&name, &text, &manifest, dates::now())?;
    // What its owner said about it before still holds, the end of the permission above all.
    let settings = Settings::from_json(&home.reader()?.settings(&name)?).started_by(&args.command)?;
    store.set_settings(&name, &settings.to_json())?;
    Ok((name, manifest, settings))
}

/// Whether its owner wants it to run.
pub(crate) fn check_state(args: &CollectArgs, home: &Home, name: &str) -> Result<(), CliError> {
    let (what, hint) = match home.reader()?.connection(name)?.state {
        ConnectionState::Paused if !args.now => {
            ("paused", "`gleaner resume` lets it run again; --now runs it once all the same")
        }
        ConnectionState::Removed => ("removed", "`gleaner add` adds it again; it goes on where it stopped"),
        ConnectionState::Active | ConnectionState::Paused | ConnectionState::Purging => return Ok(()),
    };
    Err(CliError::NeedsOwner { message: format!("{} is {what}", visible(name)), hint: hint.to_owned() })
}

/// How often it runs by itself, if it does: the base of its rests.
fn interval(home: &Home, name: &str, manifest: &Manifest) -> Result<Option<Duration>, CliError> {
    let reader = home.reader()?;
    let state = reader.connection(name)?.state;
    // What cannot be read is not heeded, and `gleaner schedule` says so.
    let wish = gleaner_app::wish(&reader.schedule(name)?, state).unwrap_or_default();
    let plan = gleaner_app::plan_of(Some(manifest), &wish, state);
    Ok(plan.held_back.is_none().then(|| plan.cadence.length(dates::now(), &plan.zone)))
}

/// What the run is for, and the rest because of which an owner's run is not for everything. While the connection rests,
/// what is not pressure may be recovered.
pub(crate) fn purpose(
    args: &CollectArgs,
    home: &Home,
    store: &mut Store,
    name: &str,
    policy: CooldownPolicy,
) -> Result<(RunPurpose, Rest), CliError> {
    match args.scheduled {
        Some(Kind::Probe) => return Ok((RunPurpose::Probe, Rest::No)),
        Some(Kind::RecoveryOnly) => return Ok((RunPurpose::RecoveryOnly, Rest::No)),
        Some(Kind::Full | Kind::CatchUp) | None => {}
    }
    let now = dates::now();
    let rest = store.rest(name, policy, now)?;
    let other_gaps = rest != Rest::No && home.reader()?.has_gaps_beside_pressure(name, now)?;
    let trigger = match args.scheduled {
        Some(_) => Trigger::Schedule,
        None if args.now => Trigger::OwnerNow,
        None => Trigger::Owner,
    };
    match rest.permits(trigger, other_gaps) {
        Permission::Full => Ok((RunPurpose::Full, Rest::No)),
        Permission::RecoveryOnly => Ok((RunPurpose::RecoveryOnly, rest)),
        Permission::Refused => {
            let until = rest_text(rest).unwrap_or_default();
            let message = format!("{} rests {until}: its service pushed back", visible(name));
            let hint = "wait, or say --now to ask all the same".to_owned();
            Err(CliError::Resting { message, hint, until: end_of(rest) })
        }
    }
}

/// When a rest ends, where that is known.
pub(crate) const fn end_of(rest: Rest) -> Option<WallTime> {
    match rest {
        Rest::Until { until, .. } => Some(until),
        Rest::NeedsAttention { .. } | Rest::No => None,
    }
}

/// How long a rest lasts, for people; `None` without one.
pub(crate) fn rest_text(rest: Rest) -> Option<String> {
    match rest {
        Rest::Until { until, .. } => Some(format!("until {}", dates::rfc3339(until))),
        Rest::NeedsAttention { cycles, .. } => Some(format!("after {cycles} rests in a row")),
        Rest::No => None,
    }
}

fn request(
    args: &CollectArgs,
    home: &Home,
    name: &str,
    manifest: Manifest,
    settings: &Settings,
    credentials: &Credentials,
) -> Result<RunRequest, CliError> {
    let catch_up_until = if args.catch_up { home.reader()?.first_run(name)? } else { None };
    let budget = budget(args, |name| std::env::var(name).ok());
    Ok(RunRequest {
        connection: name.to_owned(),
        scope: scope::of(args, &manifest, catch_up_until)?,
        mode: if args.full_refresh { CollectionMode::FullRefresh } else { CollectionMode::Incremental },
        purpose: RunPurpose::Full,
        grant: GRANT.to_owned(),
        grant_expires_at: settings.expires_at(),
        launch: launch(home, name, &manifest, settings, credentials, budget)?,
        bindings: bindings::offered(home, name, &manifest, interact(args) != Interact::None)?,
        budget: (budget != RunBudget::default()).then_some(budget),
        overrun: OVERRUN,
        credential: credentials.account(&manifest, home)?,
        redactor: Redactor::new(credentials.secrets()),
        interval: None,
        silence_max: args.scheduled.map(|_| SILENCE_MAX),
        control: Some(home.control_folder()),
        manifest: Arc::new(manifest),
    })
}

/// What the run may use: by option or setting, and by the variables that connectors know. The least counts.
fn budget(args: &CollectArgs, variable: impl Fn(&str) -> Option<String>) -> RunBudget {
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok().filter(|&number| number > 0);
    let least = |one: Option<u64>, other: Option<u64>| one.into_iter().chain(other).min();
    let duration = args.max_duration.and_then(|duration| u64::try_from(duration.as_millis()).ok());
    RunBudget {
        max_requests: least(args.max_requests, number("GLEANER_MAX_REQUESTS")),
        max_duration_ms: least(duration, number("GLEANER_MAX_DURATION_MS")),
    }
}

/// This program, for processes of ours.
pub(crate) fn ourselves() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|error| CliError::Failed {
        message: format!("cannot find this program: {error}"),
        hint: "start gleaner by its full path".to_owned(),
    })
}

/// How the connector is started, and what it finds around it.
pub(crate) fn launch(
    home: &Home,
    name: &str,
    manifest: &Manifest,
    settings: &Settings,
    credentials: &Credentials,
    budget: RunBudget,
) -> Result<Launch, CliError> {
    let ourselves = ourselves()?;
    let guard = |word: &str| vec![ourselves.clone().into_os_string(), OsString::from(word)];
    let mut environment = Environment::for_connector(std::env::vars_os(), &manifest.environment_variables);
    // What an owner may bound needs no leave of the connector's.
    for name in gleaner_sdk::variable_names(&manifest.connector_key) {
        if let Some(value) = std::env::var_os(&name) {
            environment.set(name, value);
        }
    }
    for (name, value) in &settings.set {
        environment.set(name, value);
    }
    if let Some(requests) = budget.max_requests {
        environment.set("GLEANER_MAX_REQUESTS", requests.to_string());
    }
    if let Some(millis) = budget.max_duration_ms {
        environment.set("GLEANER_MAX_DURATION_MS", millis.to_string());
    }
    environment.set(PACING_VARIABLE, home.pacing_folder());
    environment.set(ACCOUNT_VARIABLE, name);
    credentials.put_into(&mut environment);
    Ok(Launch {
        command: settings.start_words(manifest).unwrap_or_default(),
        environment,
        folder: settings.folder.clone(),
        guard: guard("guard"),
        exec: guard("guard-exec"),
    })
}

pub(crate) fn refused(error: RunError, name: &str) -> CliError {
    match error {
        RunError::Held(by) => held(&by, name),
        RunError::Refused(Refusal::GrantExpired) => CliError::NeedsOwner {
            message: format!("the permission to collect {} is over", visible(name)),
            hint: renew(name),
        },
        RunError::Control { .. } => CliError::Failed {
            message: error.to_string(),
            hint: "the folder must be yours alone, on a file system that has sockets".to_owned(),
        },
        RunError::Store(error) => error.into(),
        RunError::Refused(refusal @ Refusal::UnreadableTime { .. }) => {
            CliError::usage(refusal.to_string(), "give a date or a time, as in 2031-01-31 or 2031-01-31T12:00:00Z")
        }
        RunError::Refused(refusal) => CliError::usage(refusal.to_string(), refusal.reason().wording().next),
        RunError::Schema(fault) => CliError::usage(fault.to_string(), "correct the manifest, or ask its author to"),
        RunError::Launch(error) => CliError::usage(error.to_string(), "check the command after `--`"),
    }
}

/// Who is at work: on this connection, or on another one that signs in with the same account.
fn held(by: &HeldBy, name: &str) -> CliError {
    let (is_itself, name) = (by.is_on(LeaseOn::Connection(name)), visible(name));
    let what = if is_itself { "is being collected" } else { "shares its account with what is being collected" };
    let (pid, since, until) = (by.pid, dates::rfc3339(by.since), dates::rfc3339(by.until));
    CliError::Held {
        message: format!("{name} {what} by process {pid}, since {since} and until {until} if it gives no sign"),
        hint: if is_itself {
            format!("wait for it, or stop it with `gleaner cancel {name}`")
        } else {
            "wait for it; `gleaner status` shows which connection is at work".to_owned()
        },
    }
}

/// How a permission that is over is renewed.
pub(crate) fn renew(name: &str) -> String {
    format!("renew it with `gleaner resume {} --expires TIME`, or --expires never", visible(name))
}
