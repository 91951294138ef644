//! `gleaner service`: lets systemd run `gleaner serve` for a user, and says whether it does.

use crate::args::collect::HomeArgs;
use crate::args::serve::{ServiceCommand, ServiceInstallArgs};
use crate::commands::schedule::service_line;
use crate::error::CliError;
use crate::terminal::output::Output;
use gleaner_base::atomic;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const UNIT: &str = "gleaner.service";
/// Whoever finds another first line has a unit that is not ours, and it is left alone.
const MARK: &str = "# Written by `gleaner service install`; `gleaner service uninstall` removes it.";

pub(crate) fn run(command: &ServiceCommand, out: &mut Output) -> Result<(), CliError> {
    match command {
        ServiceCommand::Install(args) => install(args, out),
        ServiceCommand::Uninstall(_) => uninstall(out),
        ServiceCommand::Status(home) => status(home, out),
    }
}

fn install(args: &ServiceInstallArgs, out: &mut Output) -> Result<(), CliError> {
    let app = args.home.app()?;
    let root = std::path::absolute(app.root()).map_err(|error| cannot(app.root(), &error))?;
    let unit = unit(app.executable()?, &root)?;
    if args.print {
        return Ok(out.line(unit.trim_end())?);
    }
    app.make_root()?;
    let path = unit_path()?;
    check_ours(&path)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| cannot(folder, &error))?;
    }
    atomic::replace(&path, unit.as_bytes()).map_err(|error| cannot(&path, &error))?;
    out.line(&format!("wrote {}", path.display()))?;
    if args.no_start {
        return Ok(out.line("enable and start it with: systemctl --user enable --now gleaner")?);
    }
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", "--now", UNIT])?;
    out.line(
        "the service runs, and begins with your session; `loginctl enable-linger` lets it begin with the machine",
    )?;
    Ok(())
}

fn uninstall(out: &mut Output) -> Result<(), CliError> {
    let path = unit_path()?;
    if !path.exists() {
        return Ok(out.line("the service is not installed")?);
    }
    check_ours(&path)?;
    // Where systemd is gone there is nothing to stop.
    if let Err(error) = systemctl(&["disable", "--now", UNIT]) {
        error.report();
    }
    fs::remove_file(&path).map_err(|error| cannot(&path, &error))?;
    Ok(out.line(&format!("removed {}; what was collected stays", path.display()))?)
}

fn status(home: &HomeArgs, out: &mut Output) -> Result<(), CliError> {
    let path = unit_path()?;
    let installed = if path.exists() { format!("installed: {}", path.display()) } else { "not installed".to_owned() };
    out.line(&installed)?;
    let service = home.app()?.serving()?;
    Ok(out.line(&service_line(service.as_ref()))?)
}

/// A file that somebody else wrote is not touched.
fn check_ours(path: &Path) -> Result<(), CliError> {
    match fs::read_to_string(path) {
        Ok(text) if text.lines().next() != Some(MARK) => Err(CliError::usage(
            format!("{} was not written by this program", path.display()),
            "move it away, or change it by hand; `gleaner service install --print` prints ours",
        )),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(cannot(path, &error)),
    }
}

fn unit_path() -> Result<PathBuf, CliError> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
    let nowhere = || CliError::usage("there is no home folder for the unit", "set HOME or XDG_CONFIG_HOME");
    Ok(config.ok_or_else(nowhere)?.join("systemd/user").join(UNIT))
}

fn systemctl(words: &[&str]) -> Result<(), CliError> {
    let hint = "start it by hand with `gleaner serve`, or see `systemctl --user status gleaner`";
    let failed = |why: String| CliError::failed(why, hint);
    let words = [&["--user"], words].concat();
    let output = Command::new("systemctl").args(&words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(format!("cannot run systemctl: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(format!("systemctl {} failed: {}", words.join(" "), said.trim())))
}

fn cannot(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(
        format!("{}: {error}", path.display()),
        "see whether you may write there; `gleaner service install --print` prints the unit",
    )
}

/// The unit of a user's own systemd. What would shut out a browser or a just-in-time compiler, which connectors may
/// be, is not among its bounds.
fn unit(program: &Path, root: &Path) -> Result<String, CliError> {
    let (program, root) = (quoted(program)?, quoted(root)?);
    Ok(format!(
        "{MARK}
[Unit]
Description=Gleaner collects your data

[Service]
Type=notify
NotifyAccess=main
ExecStart={program} serve --quiet --home {root}
Restart=on-failure
RestartSec=5
# The loop gives a sign of life twice in this time, or is started again.
WatchdogSec=60
# Runs finish their slices; the service itself needs 16 seconds at most.
TimeoutStopSec=30
KillMode=mixed
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
OOMPolicy=continue
Nice=5

[Install]
WantedBy=default.target
"
    ))
}

/// A word as systemd reads it.
fn quoted(path: &Path) -> Result<String, CliError> {
    let refused = || CliError::usage(format!("{} cannot stand in a unit", path.display()), "give a plain path");
    let text = path.to_str().filter(|text| !text.contains(char::is_control)).ok_or_else(refused)?;
    let escaped = text.chars().map(|c| match c {
        '\\' => "\\\\".to_owned(),
        '"' => "\\\"".to_owned(),
        '%' => "%%".to_owned(),
        '$' => "$$".to_owned(),
        other => other.to_string(),
    });
    Ok(format!("\"{}\"", escaped.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_whatever_is_in_it() {
        let quoted = |path: &str| quoted(Path::new(path)).unwrap();
        assert_eq!(quoted("/opt/my tools/gleaner"), "\"/opt/my tools/gleaner\"");
        assert_eq!(quoted("/a\"b\\c%d$e"), "\"/a\\\"b\\\\c%%d$$e\"");
        assert!(super::quoted(Path::new("/a\nExecStartPre=/bin/sh")).is_err(), "no line of its own");
    }

    #[test]
    fn the_unit_waits_longer_than_the_service_needs_and_notices_one_that_hangs() {
        let unit = unit(Path::new("/usr/bin/gleaner"), Path::new("/home/you/.pdpp")).unwrap();
        for line in ["Type=notify", "WatchdogSec=60", "TimeoutStopSec=30", "KillMode=mixed", "NoNewPrivileges=yes"] {
            assert!(unit.lines().any(|known| known == line), "{line}");
        }
        assert!(unit.contains("ExecStart=\"/usr/bin/gleaner\" serve --quiet --home \"/home/you/.pdpp\"\n"));
        assert!(unit.starts_with(MARK));
    }
}
