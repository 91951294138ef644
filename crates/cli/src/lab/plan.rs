//! From what was typed to what is run: scenarios, laws, workers and seeds, in the order of the output.

use crate::error::CliError;
use gleaner_app::nearest;
use gleaner_lab::builtin;
use gleaner_lab::laws::LawName;
use gleaner_lab::scenario::{Scenario, ScenarioError};
use std::path::{Path, PathBuf};

/// Runs to be made.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The providers, each once.
    pub(crate) scenarios: Vec<Scenario>,
    /// The laws, ours first.
    pub(crate) laws: Vec<LawName>,
    /// The runs, by scenario, workers, law and seed.
    pub(crate) jobs: Vec<Job>,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    /// Which of the plan's scenarios.
    pub(crate) scenario: usize,
    pub(crate) workers: usize,
    pub(crate) law: LawName,
    pub(crate) seed: u64,
}

impl Plan {
    /// Every law on every scenario; `workers` says with how many.
    pub(crate) fn new(
        scenarios: Vec<Scenario>,
        laws: Vec<LawName>,
        seeds: u64,
        workers: impl Fn(&Scenario) -> Vec<usize>,
    ) -> Self {
        let mut jobs = Vec::new();
        for (index, scenario) in scenarios.iter().enumerate() {
            for workers in workers(scenario) {
                for &law in &laws {
                    jobs.extend((1..=seeds).map(|seed| Job { scenario: index, workers, law, seed }));
                }
            }
        }
        Self { scenarios, laws, jobs }
    }

    /// The provider of a job, met by the job's workers.
    pub(crate) fn scenario(&self, job: &Job) -> Scenario {
        self.scenarios[job.scenario].with_workers(job.workers)
    }
}

/// The scenarios that the arguments of `lab run` name.
pub(crate) fn scenarios(arguments: &[String]) -> Result<Vec<Scenario>, CliError> {
    if arguments.is_empty() {
        return Ok(builtin::all()?);
    }
    let mut scenarios = Vec::new();
    for argument in arguments {
        let path = Path::new(argument);
        if path.is_dir() {
            for file in scenario_files(path)? {
                scenarios.push(Scenario::load(&file)?);
            }
        } else {
            scenarios.push(scenario(argument)?);
        }
    }
    Ok(scenarios)
}

/// A built-in scenario or a file. A built-in name wins; `./name` is always a file.
pub(crate) fn scenario(argument: &str) -> Result<Scenario, CliError> {
    if let Some(found) = builtin::find(argument) {
        return Ok(found?);
    }
    let path = Path::new(argument);
    let meant_as_a_file = path.components().count() > 1 || path.extension().is_some() || path.exists();
    if meant_as_a_file {
        return Ok(Scenario::load(path)?);
    }
    let hint = match nearest(argument, builtin::names()) {
        Some(name) => format!("did you mean {name}? `gleaner lab list` prints all names; a file is also possible"),
        None => "`gleaner lab list` prints all names; a file is also possible".to_owned(),
    };
    Err(CliError::usage(format!("no scenario is called \"{argument}\""), hint))
}

fn scenario_files(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let read_error = |source| ScenarioError::Read { file: folder.display().to_string(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(read_error)? {
        let path = entry.map_err(read_error)?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    if files.is_empty() {
        let message = format!("{}: holds no .toml file", folder.display());
        return Err(CliError::usage(message, "give a scenario file or a folder with some"));
    }
    files.sort();
    Ok(files)
}

/// The laws that were named, ours first; `default` when none was.
pub(crate) fn laws(names: &[String], default: &[LawName]) -> Result<Vec<LawName>, CliError> {
    if names.is_empty() {
        return Ok(default.to_vec());
    }
    let wanted = names.iter().map(|name| law(name)).collect::<Result<Vec<_>, _>>()?;
    Ok(LawName::ALL.into_iter().filter(|law| wanted.contains(law)).collect())
}

/// The law called `name`.
pub(crate) fn law(name: &str) -> Result<LawName, CliError> {
    let known = || LawName::ALL.into_iter().map(LawName::as_str);
    LawName::parse(name).ok_or_else(|| {
        let allowed = known().collect::<Vec<_>>().join(", ");
        let hint = nearest(name, known()).map_or_else(
            || "give one or several of them: --law gleaner,aimd".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        CliError::usage(format!("--law: no law is called \"{name}\"\nallowed: {allowed}"), hint)
    })
}
