//! The connections: can each be started, does it get its credentials, and what may it do.

use super::{Check, all_well, failed, warning, well};
use crate::app::App;
use crate::connection::settings::{Settings, parse_manifest};
use crate::view::connection_view::is_collected;
use gleaner_protocol::{Auth, Manifest};
use gleaner_store::Reader;
use gleaner_vault::Vault;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A connection, as far as it can be read.
struct Found {
    name: String,
    executable: Option<PathBuf>,
    manifest: Result<Manifest, String>,
    settings: Settings,
}

impl Found {
    /// The words that start it.
    fn command(&self) -> Vec<String> {
        let manifest = self.manifest.as_ref().ok();
        let words = manifest.and_then(|known| self.settings.start_words(known, self.executable.as_deref()));
        words.unwrap_or_default().into_iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    fn folder(&self) -> PathBuf {
        self.settings.folder.clone().or_else(|| std::env::current_dir().ok()).unwrap_or_default()
    }

    /// The file of the program, if it can be started.
    fn program(&self) -> Result<PathBuf, String> {
        let command = self.command();
        let Some(word) = command.first() else { return Err("nothing says how to start it".to_owned()) };
        if self.settings.folder.as_ref().is_some_and(|folder| !folder.is_dir()) {
            return Err(format!("its folder {} is gone", self.folder().display()));
        }
        let is_program =
            |path: &PathBuf| path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
        if word.contains('/') {
            let path = self.folder().join(word);
            return if is_program(&path) { Ok(path) } else { Err(format!("{word} is no program that can be started")) };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).map(|folder| folder.join(word)).find(is_program);
        found.ok_or_else(|| format!("{word} is not in PATH"))
    }

    /// The script that an interpreter is told to run, if that is how it is started.
    fn script(&self) -> Option<PathBuf> {
        let command = self.command();
        let program = Path::new(command.first()?).file_name()?.to_str()?;
        if !INTERPRETERS.iter().any(|known| program.starts_with(known)) {
            return None;
        }
        let mut words = command.iter().skip(1);
        let script = words.find(|word| !word.starts_with('-') || ["-m", "-c", "-e"].contains(&word.as_str()))?;
        (!script.starts_with('-')).then(|| self.folder().join(script))
    }
}

/// Programs that run a file which is named after them.
const INTERPRETERS: [&str; 8] = ["python", "node", "ruby", "perl", "bash", "sh", "deno", "php"];

pub(super) fn checks(reader: &Reader, app: &App) -> Vec<Check> {
    let connections = match reader.connections() {
        Ok(connections) => connections,
        Err(error) => return vec![failed("connections", error.to_string(), "run: gleaner verify")],
    };
    // Those that run no more need nothing.
    let there = connections.iter().filter(|connection| is_collected(connection.state));
    let found = there
        .filter_map(|connection| {
            let manifest = parse_manifest(&reader.manifest_text(&connection.name).ok()?);
            let settings = Settings::from_json(&reader.settings(&connection.name).ok()?);
            let executable = app.program.executable.clone();
            Some(Found { name: connection.name.clone(), executable, manifest, settings })
        })
        .collect::<Vec<_>>();
    vec![manifests(&found), commands(&found), python(&found), credentials(&found, app), rights(&found)]
}

fn manifests(found: &[Found]) -> Check {
    let fault = |found: &Found| found.manifest.as_ref().err().map(|fault| format!("{}: {fault}", found.name));
    let faults = found.iter().filter_map(fault).collect::<Vec<_>>();
    let hint = "add the connector again with `gleaner add`";
    all_well("manifests", &faults, format!("all are valid, of {} connections", found.len()), hint)
}

fn commands(found: &[Found]) -> Check {
    let mut faults = Vec::new();
    for found in found {
        match (found.program(), found.script()) {
            (Err(fault), _) => faults.push(format!("{}: {fault}", found.name)),
            (Ok(_), Some(script)) if !script.is_file() => {
                faults.push(format!("{}: {} is not there", found.name, script.display()));
            }
            (Ok(_), _) => {}
        }
    }
    let hint = "install what is missing, or add the connector again with its new command";
    all_well("commands", &faults, "every connector can be started", hint)
}

fn python(found: &[Found]) -> Check {
    const NAME: &str = "python3";
    let needs = |found: &&Found| {
        let command = found.command();
        let program = command.first().and_then(|word| Path::new(word).file_name()).and_then(|name| name.to_str());
        program.is_some_and(|program| program.starts_with("python"))
            || found.program().ok().and_then(|file| first_line(&file)).is_some_and(|line| line.contains("python"))
    };
    let users = found.iter().filter(needs).map(|found| found.name.as_str()).collect::<Vec<_>>();
    if users.is_empty() {
        return well(NAME, "no connector needs it");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|folder| folder.join("python3").is_file());
    if there {
        return well(NAME, format!("it is there, for {}", users.join(", ")));
    }
    failed(NAME, format!("it is not in PATH; {} needs it", users.join(", ")), "install Python 3")
}

/// `#!…`, if the file begins so.
fn first_line(file: &Path) -> Option<String> {
    use std::io::Read;
    let mut start = [0; 128];
    let length = fs::File::open(file).ok()?.read(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start[..length]).into_owned();
    text.starts_with("#!").then(|| text.lines().next().unwrap_or_default().to_owned())
}

/// Whether each gets what it signs in with. Values are looked up and dropped.
fn credentials(found: &[Found], app: &App) -> Check {
    const NAME: &str = "credentials";
    // Opening makes it, and a look should not.
    let vault = app.root().join("secrets/key").exists().then(|| Vault::open(app.root()));
    let mut faults = Vec::new();
    for found in found {
        let Some(auth) = found.manifest.as_ref().ok().and_then(|manifest| manifest.auth.as_ref()) else { continue };
        let missing = match &vault {
            Some(Ok(vault)) => {
                let resolved = gleaner_vault::resolve(auth, &found.name, vault, &|name| std::env::var_os(name));
                resolved.map(|resolution| resolution.missing).map_err(|error| error.to_string())
            }
            Some(Err(error)) => Err(error.to_string()),
            None => Ok(not_in_environment(auth)),
        };
        match missing {
            Ok(missing) => faults.extend(missing.iter().map(|group| format!("{}: {}", found.name, group.join(" or ")))),
            Err(error) => faults.push(format!("{}: {error}", found.name)),
        }
    }
    let hint = "set the variable (NAME, NAME_FILE or NAME_COMMAND), or run `gleaner add` again, which asks";
    let faults = if faults.is_empty() { faults } else { vec![format!("missing: {}", faults.join("; "))] };
    all_well(NAME, &faults, "every connection has what it signs in with", hint)
}

/// Groups of which no name is set in any of the three ways.
fn not_in_environment(auth: &Auth) -> Vec<Vec<String>> {
    let is_set = |name: &String| {
        ["", "_FILE", "_COMMAND"]
            .iter()
            .any(|way| std::env::var_os(format!("{name}{way}")).is_some_and(|value| !value.is_empty()))
    };
    auth.required.iter().filter(|group| !group.iter().any(is_set)).cloned().collect()
}

/// Said plainly, because nothing keeps a connector from what its user may do.
fn rights(found: &[Found]) -> Check {
    const NAME: &str = "connectors run with your rights";
    if found.is_empty() {
        return well(NAME, "there is none yet; one that you add can do what you can");
    }
    let names = found.iter().map(|found| found.name.as_str()).collect::<Vec<_>>();
    let what = format!("not part of Gleaner, and can do what you can: {}", names.join(", "));
    let changeable = found.iter().flat_map(|found| found.program().ok().into_iter().chain(found.script()));
    let changeable = changeable.filter(|file| fs::metadata(file).is_ok_and(|found| found.mode() & 0o022 != 0));
    let changeable = changeable.map(|file| file.display().to_string()).collect::<Vec<_>>();
    if changeable.is_empty() {
        return Check { hint: Some("run those that you trust".to_owned()), ..well(NAME, what) };
    }
    let what = format!("{what}; others may change {}", changeable.join(", "));
    warning(NAME, what, "run: chmod go-w on these files")
}
