//! `gleaner completions`: what a shell needs to complete our commands.

use crate::args;
use crate::args::maintenance::CompletionsArgs;
use crate::commands::visible_command;
use crate::error::CliError;
use crate::terminal::output::Output;

pub(crate) fn run(args: &CompletionsArgs, out: &mut Output) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible_command::of(&args::command()), "gleaner", &mut script);
    Ok(out.line(String::from_utf8_lossy(&script).trim_end())?)
}
