//! `gleaner resume`: lets a connection run again, and renews the owner's permission if it says until when.

use crate::args::manage::ResumeArgs;
use crate::commands::run::renew;
use crate::connection::Settings;
use crate::dates;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, visible};
use gleaner_store::ConnectionState;
use std::process::ExitCode;

pub(crate) fn run(args: &ResumeArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let (home, name) = (Home::find(&args.home)?, args.connection.as_str());
    let reader = home.reader()?;
    if reader.connection(name)?.state == ConnectionState::Removed {
        let message = format!("{} is removed, and does not run", visible(name));
        return Err(CliError::NeedsOwner { message, hint: "`gleaner add` adds it again".to_owned() });
    }
    let mut settings = Settings::from_json(&reader.settings(name)?);
    let mut store = home.store()?;
    if let Some(expires) = args.expires {
        settings.set_expires(expires);
        store.set_settings(name, &settings.to_json())?;
    }
    store.set_paused(name, false)?;
    let (name, end) = (visible(name), settings.expires_at());
    let until = end.map(|end| format!(" until {}", dates::rfc3339(end))).unwrap_or_default();
    if end.is_some_and(|end| end <= dates::now()) {
        let message = format!("{name} is not paused, but its permission is over: it may run{until}");
        return Err(CliError::NeedsOwner { message, hint: renew(&name) });
    }
    out.line(&format!("{name} may run{until}; collect with: gleaner run {name}"))?;
    Ok(ExitCode::SUCCESS)
}
