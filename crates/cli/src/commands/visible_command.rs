//! The commands that people type, without those that the program starts by itself.
//!
//! Hiding them from the help does not keep them out of completions and manuals, so a command without
//! them is made.

use clap::Command;

/// The same command without what is hidden. Options and commands below are kept.
pub(crate) fn of(command: &Command) -> Command {
    let visible = command.get_subcommands().filter(|below| !below.is_hide_set()).map(of).collect::<Vec<_>>();
    let mut bare = Command::new(command.get_name().to_owned());
    if let Some(version) = command.get_version() {
        bare = bare.version(version.to_owned());
    }
    bare = bare.args(command.get_arguments().filter(|argument| !argument.is_hide_set()).cloned());
    for (text, set) in [
        (command.get_about(), Command::about as fn(Command, clap::builder::StyledStr) -> Command),
        (command.get_long_about(), Command::long_about),
        (command.get_after_help(), Command::after_help),
    ] {
        if let Some(text) = text {
            bare = set(bare, text.clone());
        }
    }
    // `help` has no page of its own.
    bare.disable_help_subcommand(true).subcommands(visible)
}
