//! `gleaner check`: whether a connection works, found out with one call that stores nothing.

use super::run::warn;
use crate::args::manage::CheckArgs;
use crate::error::CliError;
use crate::terminal::output::Output;
use crate::terminal::prompt;
use gleaner_app::{Credentials, Verdict, how_to_give};
use gleaner_base::outside::one_line;
use serde_json::json;
use std::io::IsTerminal;

pub(crate) fn run(args: &CheckArgs, out: &mut Output) -> Result<(), CliError> {
    let (app, name) = (args.home.app()?, args.connection.as_str());
    warn(&app.manifest_warnings(name)?);
    if args.sign_in && !std::io::stdin().is_terminal() {
        let hint = "sign in at a terminal, or set the variables of the connector";
        return Err(CliError::usage("there is no terminal to ask on", hint));
    }
    let mut ask = prompt::secret;
    let checked = app.check(name, args.max_duration, if args.sign_in { Some(&mut ask) } else { None })?;
    let (verdict, credentials) = (checked.verdict, checked.credentials);
    warn(&credentials.warnings);
    prompt::say_where(checked.key_place.as_deref());
    print(args, &verdict, &credentials, out)?;
    let name = one_line(name);
    let for_owner = match &verdict {
        Verdict::Missing(_) => how_to_give(&name, &credentials.missing_names()),
        _ => format!("`gleaner check {name} --sign-in` asks for new ones"),
    };
    verdict.into_result(&format!("{name} does not work"), for_owner, "")?;
    Ok(())
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
        out.line(&format!("{} comes from {}", one_line(&known.name), one_line(&known.source)))?;
    }
    if *verdict == Verdict::Works {
        out.line(&format!("{} works", one_line(&args.connection)))?;
    }
    Ok(())
}
