//! `gleaner man`: the manual, a page per command.

use crate::args;
use crate::args::maintenance::ManArgs;
use crate::commands::visible_command;
use crate::error::CliError;
use crate::terminal::output::Output;
use clap::Command;
use clap_mangen::Man;
use gleaner_base::outside::one_line;
use std::fs;
use std::io;
use std::path::Path;

pub(crate) fn run(args: &ManArgs, out: &mut Output) -> Result<(), CliError> {
    let mut command = visible_command::of(&args::command());
    command.build();
    let Some(folder) = &args.dir else {
        return Ok(out.line(page(&command, "gleaner")?.trim_end())?);
    };
    let cannot = |error: io::Error| {
        CliError::failed(format!("{}: {error}", folder.display()), "give a folder that you may write to: --dir DIR")
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    let mut pages = Vec::new();
    collect(&command, "gleaner", &mut pages)?;
    for (name, text) in &pages {
        fs::write(folder.join(format!("{name}.1")), text).map_err(cannot)?;
    }
    Ok(out.line(&one_line(&format!("{} pages in {}", pages.len(), Path::new(folder).display())))?)
}

/// A command and those below it, as names and texts. As deep as the commands are: two.
fn collect(command: &Command, name: &str, pages: &mut Vec<(String, String)>) -> Result<(), CliError> {
    pages.push((name.to_owned(), page(command, name)?));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        collect(below, &format!("{name}-{}", below.get_name()), pages)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> Result<String, CliError> {
    let mut text = Vec::new();
    Man::new(command.clone()).title(name.to_uppercase()).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
