//! `gleaner init`: makes the data root, the store and a file of settings, and leaves alone what is there.

use crate::args::care::InitArgs;
use crate::config;
use crate::error::CliError;
use crate::home::Home;
use crate::output::{Output, visible};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

pub(crate) fn run(args: &InitArgs, out: &mut Output) -> Result<ExitCode, CliError> {
    let home = Home::find(&args.home)?;
    let had_store = home.store_path().exists();
    drop(home.store()?);
    let made_config = write_config(&home)?;
    let word = |made: bool| if made { "made" } else { "was there" };
    out.line(&visible(&format!("{}  the data root", home.root().display())))?;
    out.line(&format!("  store.db     {}", word(!had_store)))?;
    out.line(&format!("  config.toml  {}", word(made_config)))?;
    out.line("next: gleaner add, or gleaner demo to see how it goes")?;
    Ok(ExitCode::SUCCESS)
}

/// Whether it was written: one that is there is its owner's.
fn write_config(home: &Home) -> Result<bool, CliError> {
    let path = home.config_path();
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match written.and_then(|mut file| file.write_all(config::template().as_bytes())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(CliError::Failed {
            message: format!("{}: {error}", path.display()),
            hint: "give a folder that you may write to: --home DIR, or GLEANER_HOME".to_owned(),
        }),
    }
}
