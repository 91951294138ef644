//! `gleaner run`: one run of one connection, shown while it goes on, accounted for at its end.

use crate::args::collect::{CollectArgs, Interact};
use crate::collect_view::{View, finished};
use crate::connection::{Settings, parse_manifest, read_manifest};
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, report_to_stderr, visible};
use crate::scope;
use crate::stop_signals;
use gleaner_engine::{CatchUp, CooldownPolicy, Permission, Rest, Steady, Trigger};
use gleaner_protocol::{CollectionMode, Manifest, RawJson, RunBudget};
use gleaner_runtime::{Environment, Launch, Redactor, RunError, RunReport, RunRequest};
use gleaner_store::{HeldBy, Store};
use gleaner_vault::Vault;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a connector may go on after its time: what one request may take.
const OVERRUN: Duration = Duration::from_secs(30);
/// The one grant of a connection, until there are several.
const GRANT: &str = "owner";

pub(crate) fn run(args: &CollectArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    let mut store = home.store()?;
    let (name, manifest, settings) = find_connection(args, &home, &mut store)?;
    let recovery_only = check_rest(args, &home, &mut store, &name, &manifest)?;
    let request = request(args, &home, &name, manifest, &settings, recovery_only)?;
    let (orders, control) = channel();
    let interrupted = stop_signals::forward(&orders);
    let mut view = View::new(&name, args, orders);
    let report = if args.catch_up {
        gleaner_runtime::run::<CatchUp>(&mut store, request, control, &mut view)
    } else {
        gleaner_runtime::run::<Steady>(&mut store, request, control, &mut view)
    };
    drop(view);
    let report: RunReport = report.map_err(|error| refused(error, &name))?;
    drop(store);
    finished(&home.reader()?, &name, &report, args, interrupted.is_set(), out)
}

/// A connection that was added, or one that is described on the command line.
fn find_connection(
    args: &CollectArgs,
    home: &Home,
    store: &mut Store,
) -> Result<(String, Manifest, Settings), CliError> {
    let Some(file) = &args.manifest else {
        let name = args.connection.clone().unwrap_or_default();
        let reader = home.reader()?;
        let text = reader.manifest_text(&name)?;
        let manifest = parse_manifest(&text).map_err(|faults| CliError::Failed {
            message: format!("the stored manifest of {name:?} is no longer valid: {faults}"),
            hint: "add the connector again with `gleaner add`".to_owned(),
        })?;
        let mut settings = Settings::from_json(&reader.settings(&name)?);
        if !args.command.is_empty() {
            settings = Settings { set: settings.set, ..Settings::new(&args.command, &[])? };
        }
        return Ok((name, manifest, settings));
    };
    let (text, manifest) = read_manifest(file)?;
    let name = args.name.clone().unwrap_or_else(|| manifest.connector_key.clone());
    let settings = Settings::new(&args.command, &[])?;
    store.register(&name, &text, &manifest, dates::now())?;
    store.set_settings(&name, &settings.to_json())?;
    Ok((name, manifest, settings))
}

/// Whether the connection rests. What is not pressure may be recovered meanwhile; answers whether that is all.
fn check_rest(
    args: &CollectArgs,
    home: &Home,
    store: &mut Store,
    name: &str,
    manifest: &Manifest,
) -> Result<bool, CliError> {
    let policy = CooldownPolicy::of(None, manifest.refresh_policy.as_ref());
    let rest = store.rest(name, policy, dates::now())?;
    let reader = home.reader()?;
    let pending = reader.streams(name)?.iter().map(|stream| stream.gaps_pending).sum::<u64>();
    let other_gaps = pending > reader.pressure_backlog(name)?.total();
    let trigger = if args.now { Trigger::OwnerNow } else { Trigger::Owner };
    match rest.permits(trigger, other_gaps) {
        Permission::Full => Ok(false),
        Permission::RecoveryOnly => Ok(true),
        Permission::Refused => {
            let until = match rest {
                Rest::Until { until, .. } => format!("until {}", dates::rfc3339(until)),
                Rest::NeedsAttention { cycles, .. } => format!("after {cycles} rests in a row"),
                Rest::No => String::new(),
            };
            let message = format!("{} rests {until}: its service pushed back", visible(name));
            Err(CliError::Resting { message, hint: "wait, or say --now to ask all the same".to_owned() })
        }
    }
}

fn request(
    args: &CollectArgs,
    home: &Home,
    name: &str,
    manifest: Manifest,
    settings: &Settings,
    recovery_only: bool,
) -> Result<RunRequest, CliError> {
    let command = if settings.command.is_empty() { manifest.command.clone() } else { Some(settings.command.clone()) };
    let (environment, secrets, credential) = environment(&manifest, settings, args, home, name)?;
    let interactive = match args.interact {
        Some(Interact::Prompt) => true,
        Some(Interact::None) => false,
        None => std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
    };
    let catch_up_until = if args.catch_up { home.reader()?.first_run(name)? } else { None };
    let scope = scope::of(args, &manifest, catch_up_until)?;
    let ourselves = std::env::current_exe().map_err(|error| CliError::Failed {
        message: format!("cannot find this program: {error}"),
        hint: "start gleaner by its full path".to_owned(),
    })?;
    let guard = |word: &str| vec![ourselves.clone().into_os_string(), OsString::from(word)];
    Ok(RunRequest {
        connection: name.to_owned(),
        scope,
        mode: if args.full_refresh { CollectionMode::FullRefresh } else { CollectionMode::Incremental },
        recovery_only,
        grant: GRANT.to_owned(),
        grant_expires_at: None,
        launch: Launch {
            command: command.unwrap_or_default().into_iter().map(OsString::from).collect(),
            environment,
            folder: settings.folder.clone(),
            guard: guard("guard"),
            exec: guard("guard-exec"),
        },
        bindings: bindings(&manifest, interactive),
        budget: budget(args),
        overrun: OVERRUN,
        credential,
        redactor: Redactor::new(secrets),
        interval: None,
        silence_max: None,
        manifest: Arc::new(manifest),
    })
}

/// What the connector finds around it, which of it is secret, and whose limit it shares.
type Surroundings = (Environment, Vec<String>, Option<(String, String)>);

fn environment(
    manifest: &Manifest,
    settings: &Settings,
    args: &CollectArgs,
    home: &Home,
    name: &str,
) -> Result<Surroundings, CliError> {
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
    if let Some(requests) = args.max_requests {
        environment.set("GLEANER_MAX_REQUESTS", requests.to_string());
    }
    if let Some(duration) = args.max_duration {
        environment.set("GLEANER_MAX_DURATION_MS", duration.as_millis().to_string());
    }
    let Some(auth) = &manifest.auth else { return Ok((environment, Vec::new(), None)) };
    let vault = Vault::open(home.root())?;
    let found = gleaner_vault::resolve(auth, name, &vault, &|name| std::env::var_os(name))?.found;
    let mut secrets = Vec::new();
    for found in &found {
        if let Some(warning) = found.source.warning() {
            report_to_stderr(&format!("warning: {}", visible(&warning)));
        }
        environment.set(&found.name, found.secret.expose());
        secrets.push(found.secret.expose().to_owned());
    }
    let provider = manifest.provider.clone().unwrap_or_else(|| manifest.connector_id.clone());
    let hash = vault.credential_hash(&provider, found.iter().map(|found| &found.secret));
    let credential = (!found.is_empty()).then_some((provider, hash));
    Ok((environment, secrets, credential))
}

/// What was asked for and can be had, and what every connector gets.
fn bindings(manifest: &Manifest, interactive: bool) -> Vec<(String, RawJson<'static>)> {
    let mut names = vec!["network".to_owned(), "filesystem".to_owned()];
    let asked = manifest.bindings.iter().map(|binding| binding.name.clone());
    names.extend(asked.filter(|name| matches!(name.as_str(), "loopback_listen")));
    names.extend(interactive.then(|| "interactive".to_owned()));
    names.dedup();
    let empty = || RawJson::new("{}").unwrap_or_default();
    names.into_iter().map(|name| (name, empty())).collect()
}

fn budget(args: &CollectArgs) -> Option<RunBudget> {
    let max_duration_ms = args.max_duration.and_then(|duration| u64::try_from(duration.as_millis()).ok());
    let budget = RunBudget { max_requests: args.max_requests, max_duration_ms };
    (budget != RunBudget::default()).then_some(budget)
}

fn refused(error: RunError, name: &str) -> CliError {
    match error {
        RunError::Held(HeldBy { pid, since, until, .. }) => CliError::Held {
            message: format!(
                "{} is being collected by process {pid}, since {} and until {} if it gives no sign",
                visible(name),
                dates::rfc3339(since),
                dates::rfc3339(until)
            ),
            hint: "wait for it, or end that process".to_owned(),
        },
        RunError::Store(error) => error.into(),
        RunError::Refused(refusal) => CliError::usage(refusal.to_string(), refusal.reason().wording().next),
        RunError::Schema(fault) => CliError::usage(fault.to_string(), "correct the manifest, or ask its author to"),
        RunError::Launch(error) => CliError::usage(error.to_string(), "check the command after `--`"),
    }
}
