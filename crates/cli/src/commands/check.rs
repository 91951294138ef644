//! `gleaner check`: whether a connection works, found out with one call that stores nothing.

use crate::args::manage::CheckArgs;
use crate::connection::stored;
use crate::credentials::{Credentials, how_to_give, say_where};
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, report_to_stderr, visible};
use crate::trial::{self, Trial};
use gleaner_app::Verdict;
use gleaner_engine::{CooldownPolicy, Rest};
use gleaner_protocol::Manifest;
use serde_json::json;
use std::io::IsTerminal;
use std::process::ExitCode;

pub(crate) fn run(args: &CheckArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let (home, name) = (Home::find(&args.home)?, args.connection.as_str());
    let (text, manifest, settings) = stored(&home, name)?;
    for warning in &manifest.warnings {
        report_to_stderr(&format!("warning: {}", visible(&warning.to_string())));
    }
    if args.sign_in && !std::io::stdin().is_terminal() {
        let hint = "sign in at a terminal, or set the variables of the connector";
        return Err(CliError::usage("there is no terminal to ask on", hint));
    }
    let credentials =
        if args.sign_in { Credentials::ask_for_all(&manifest) } else { Credentials::find(&manifest, &home, name)? };
    check_rest(&home, name, &manifest)?;
    let trial = Trial {
        home: &home,
        name,
        manifest_text: &text,
        manifest: &manifest,
        settings: &settings,
        credentials: &credentials,
        max: args.max_duration,
    };
    let verdict = trial.run()?;
    if verdict == Verdict::Works {
        say_where(credentials.store_new(&home, name)?);
    }
    print(args, &verdict, &credentials, out)?;
    let name = visible(name);
    let for_owner = match &verdict {
        Verdict::Missing(_) => how_to_give(&name, &credentials.missing_names()),
        _ => format!("`gleaner check {name} --sign-in` asks for new ones"),
    };
    trial::into_result(verdict, &format!("{name} does not work"), for_owner, "")?;
    Ok(ExitCode::SUCCESS)
}

/// A service that pushed back is left alone, by a check too.
fn check_rest(home: &Home, name: &str, manifest: &Manifest) -> Result<(), CliError> {
    let policy = CooldownPolicy::of(None, manifest.refresh_policy.as_ref());
    match home.store()?.rest(name, policy, dates::now())? {
        Rest::Until { until, .. } => Err(CliError::Resting {
            until: Some(until),
            message: format!("{} rests until {}: its service pushed back", visible(name), dates::rfc3339(until)),
            hint: "check it then".to_owned(),
        }),
        Rest::No | Rest::NeedsAttention { .. } => Ok(()),
    }
}

fn print(args: &CheckArgs, verdict: &Verdict, credentials: &Credentials, out: &mut Output) -> Result<(), CliError> {
    if args.json {
        let sources = credentials.known.iter().map(|known| json!({"name": known.name, "source": known.source}));
        let value = json!({
            "connection": args.connection, "verdict": verdict.word(), "detail": verdict.detail(),
            "credentials": sources.collect::<Vec<_>>(), "missing": credentials.missing_names(),
        });
        return Ok(out.line(&value.to_string())?);
    }
    for known in &credentials.known {
        out.line(&format!("{} comes from {}", visible(&known.name), visible(&known.source)))?;
    }
    if *verdict == Verdict::Works {
        out.line(&format!("{} works", visible(&args.connection)))?;
    }
    Ok(())
}
