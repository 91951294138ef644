//! What can be set other than by an option on the command line: in a file, or in the environment.
//!
//! The file says least, a variable more, an option most; each value remembers who said it, because the
//! first question about a wrong value is where it comes from. Each is held to the rules of its option,
//! by clap itself, so that there is one rule. Secrets are refused: the file is copied and shown.

mod file;
mod options;

use crate::args::ProxyArgs;
use crate::args::collect::{CollectArgs, HomeArgs, Interact};
use crate::args::fetch::FetchArgs;
use crate::args::maintenance::Colour;
use crate::args::serve::ServeArgs;
use clap::Parser;
use file::InFile;
use gleaner_app::{App, AppError, RunSpec};
use options::{FETCH_OPTIONS, OPTIONS};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// An option that has a name in the file and in the environment.
#[derive(Debug)]
pub(crate) struct Declared {
    /// In the file, with its section.
    pub(crate) key: &'static str,
    /// In the environment.
    pub(crate) variable: &'static str,
    /// On the command line.
    pub(crate) flag: &'static str,
    /// What holds if nobody says anything.
    pub(crate) default: &'static str,
    /// What it may look like in the file.
    pub(crate) example: &'static str,
    pub(crate) about: &'static str,
    of: Of,
}

/// Whose option it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Every,
    Run,
    Serve,
    Proxy,
    Fetch,
}

/// Every option, in the order in which they are shown.
pub(crate) fn options() -> impl Iterator<Item = &'static Declared> {
    OPTIONS.iter().chain(FETCH_OPTIONS)
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Default,
    File { path: PathBuf, line: usize },
    Environment(&'static str),
    Flag(&'static str),
}

/// What was said, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) source: Source,
}

/// What the file and the environment say.
#[derive(Debug)]
pub(crate) struct Config {
    said: BTreeMap<&'static str, Said>,
}

impl Config {
    /// Reads the file of a data root, if it is there, and the environment.
    pub(crate) fn load(app: &App) -> Result<Self, AppError> {
        Self::read(&app.config_path())
    }

    pub(crate) fn read(path: &Path) -> Result<Self, AppError> {
        Self::read_with(path, &|name| std::env::var_os(name))
    }

    fn read_with(path: &Path, environment: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, AppError> {
        let mut said = BTreeMap::new();
        for InFile { declared, text, line } in file::read(path)? {
            if let Err(fault) = declared.check(&text) {
                let hint = format!("correct {}; docs/configuration.md describes every key", path.display());
                return Err(AppError::usage(
                    format!("{} line {line}: {}: {fault}", path.display(), declared.key),
                    hint,
                ));
            }
            said.insert(declared.key, Said { text, source: Source::File { path: path.to_owned(), line } });
        }
        for declared in options() {
            let Some(value) = environment(declared.variable).filter(|value| !value.is_empty()) else { continue };
            let text = value.to_string_lossy().into_owned();
            if let Err(fault) = declared.check(&text) {
                let hint = format!("correct {}, or unset it", declared.variable);
                return Err(AppError::usage(format!("the variable {}: {fault}", declared.variable), hint));
            }
            said.insert(declared.key, Said { text, source: Source::Environment(declared.variable) });
        }
        Ok(Self { said })
    }

    /// What holds for an option unless it is typed.
    pub(crate) fn of(&self, declared: &Declared) -> Said {
        let default = || Said { text: declared.default.to_owned(), source: Source::Default };
        self.said.get(declared.key).cloned().unwrap_or_else(default)
    }

    /// What was said about the options of one command, as it would be typed.
    fn as_typed(&self, of: Of) -> Vec<String> {
        let of_command = options().filter(|declared| declared.of == of);
        of_command.filter_map(|declared| Some(declared.typed(&self.said.get(declared.key)?.text))).collect()
    }

    /// Fills in what was not typed: the budget of a run, and what happens to its questions.
    pub(crate) fn fill_run(&self, spec: &mut RunSpec, interact: &mut Option<Interact>) -> Result<(), AppError> {
        let said = parse::<RunLine>(RUN_NEEDS, &self.as_typed(Of::Run)).map_err(unexpected)?.args;
        *interact = interact.or(said.interact);
        spec.budget.max_requests = spec.budget.max_requests.or(said.max_requests);
        spec.budget.max_duration = spec.budget.max_duration.or(said.max_duration);
        Ok(())
    }

    /// The same for the service.
    pub(crate) fn fill_serve(&self, args: &mut ServeArgs) -> Result<(), AppError> {
        let said = parse::<ServeLine>(&[], &self.as_typed(Of::Serve)).map_err(unexpected)?.args;
        args.max_runs = args.max_runs.or(said.max_runs);
        args.listen = args.listen.or(said.listen);
        if args.allow_host.is_empty() {
            args.allow_host = said.allow_host;
        }
        args.tls_certificate = args.tls_certificate.take().or(said.tls_certificate);
        args.tls_key = args.tls_key.take().or(said.tls_key);
        args.behind_proxy = args.behind_proxy.or(said.behind_proxy);
        args.base_path = args.base_path.take().or(said.base_path);
        args.notify_desktop = args.notify_desktop.or(said.notify_desktop);
        args.notify_command = args.notify_command.take().or(said.notify_command);
        args.notify_webhook = args.notify_webhook.take().or(said.notify_webhook);
        Ok(())
    }

    /// The same for the sidecar.
    pub(crate) fn fill_proxy(&self, args: &mut ProxyArgs) -> Result<(), AppError> {
        let said = parse::<ProxyLine>(PROXY_NEEDS, &self.as_typed(Of::Proxy)).map_err(unexpected)?.args;
        args.listen = args.listen.or(said.listen);
        args.ceiling_interval_ms = args.ceiling_interval_ms.or(said.ceiling_interval_ms);
        args.max_in_flight = args.max_in_flight.or(said.max_in_flight);
        args.max_waiting = args.max_waiting.or(said.max_waiting);
        Ok(())
    }

    /// The same for a fetch: what is typed comes last, and counts.
    pub(crate) fn fill_fetch(&self, args: &mut FetchArgs) -> Result<(), AppError> {
        let mut said = parse::<FetchLine>(FETCH_NEEDS, &self.as_typed(Of::Fetch)).map_err(unexpected)?.args;
        said.settings.append(&mut args.settings);
        args.settings = said.settings;
        Ok(())
    }

    fn colour(&self) -> Option<Colour> {
        parse::<EveryLine>(&[], &self.as_typed(Of::Every)).ok().and_then(|line| line.colour)
    }
}

/// When to colour. A file with a fault says nothing here: whoever reads more of it refuses it, `doctor` and
/// `config show` name it, and what somebody asked for is printed all the same.
pub(crate) fn colour(typed: Option<Colour>, home: Option<PathBuf>) -> Colour {
    let said = || Config::load(&HomeArgs { home }.app().ok()?).ok()?.colour();
    typed.or_else(said).unwrap_or(Colour::Auto)
}

impl Declared {
    fn typed(&self, text: &str) -> String {
        // As one word, whatever is in it.
        format!("{}={text}", self.flag.replacen(' ', "=", 1))
    }

    /// Holds a value to the rules of its option.
    fn check(&self, text: &str) -> Result<(), String> {
        let typed = [self.typed(text)];
        match self.of {
            Of::Every => parse::<EveryLine>(&[], &typed).map(drop),
            Of::Run => parse::<RunLine>(RUN_NEEDS, &typed).map(drop),
            Of::Serve => parse::<ServeLine>(&[], &typed).map(drop),
            Of::Proxy => parse::<ProxyLine>(PROXY_NEEDS, &typed).map(drop),
            Of::Fetch => parse::<FetchLine>(FETCH_NEEDS, &typed).map(drop),
        }
    }
}

#[derive(Parser)]
struct EveryLine {
    #[arg(long = "color", value_enum)]
    colour: Option<Colour>,
}

#[derive(Parser)]
struct RunLine {
    #[command(flatten)]
    args: CollectArgs,
}

/// What `run` does not go without.
const RUN_NEEDS: &[&str] = &["connection"];

#[derive(Parser)]
struct ServeLine {
    #[command(flatten)]
    args: ServeArgs,
}

#[derive(Parser)]
struct ProxyLine {
    #[command(flatten)]
    args: ProxyArgs,
}

/// What `proxy` does not go without.
const PROXY_NEEDS: &[&str] = &["--upstream=http://127.0.0.1"];

#[derive(Parser)]
struct FetchLine {
    #[command(flatten)]
    args: FetchArgs,
}

/// What `fetch` does not go without.
const FETCH_NEEDS: &[&str] = &["list"];

fn parse<P: Parser>(needs: &[&str], typed: &[String]) -> Result<P, String> {
    let words = std::iter::once("gleaner").chain(needs.iter().copied()).chain(typed.iter().map(String::as_str));
    P::try_parse_from(words).map_err(|error| {
        let text = error.to_string();
        // What clap says before it explains how to use the program.
        let lines = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim);
        lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
    })
}

/// Every value was checked by itself before.
fn unexpected(fault: String) -> AppError {
    AppError::usage(fault, "`gleaner config show` says where each value comes from")
}

/// The file as `init` writes it: everything is there, nothing is set.
pub(crate) fn template() -> String {
    let mut text = "# Settings of Gleaner. A variable of the environment says more than this file, an option on\n\
                    # the command line says most; `gleaner config show` says which it is.\n\
                    # No secrets here: `gleaner add` asks for them and stores them encrypted.\n"
        .to_owned();
    let mut last_section = "";
    for declared in options() {
        let (section, name) = declared.key.split_once('.').unwrap_or(("", declared.key));
        if section != last_section {
            text.push_str(&format!("\n[{section}]\n"));
            last_section = section;
        }
        let Declared { about, default, variable, flag, example, .. } = declared;
        text.push_str(&format!("\n# {about}\n# {variable}, {flag} [default: {default}]\n# {name} = {example}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_egress::{Config as Proxy, LISTEN, Upstream};

    fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        let lookup = |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        Config::read_with(&path, &lookup).map_err(|error| format!("{error:?}"))
    }

    fn declared(key: &str) -> &'static Declared {
        options().find(|declared| declared.key == key).unwrap()
    }

    #[test]
    fn a_variable_says_more_than_the_file_and_both_are_remembered() {
        let config =
            load("[run]\nmax_requests = 5\ninteract = \"none\"\n", &[("GLEANER_RUN_MAX_REQUESTS", "7")]).unwrap();
        let requests = config.of(declared("run.max_requests"));
        assert_eq!(requests, Said { text: "7".into(), source: Source::Environment("GLEANER_RUN_MAX_REQUESTS") });
        let interact = config.of(declared("run.interact"));
        assert!(matches!(interact.source, Source::File { line: 3, .. }), "{interact:?}");
        assert_eq!(config.of(declared("colour")).source, Source::Default);
    }

    #[test]
    fn what_was_typed_says_most() {
        let config = load("run.max_requests = 5\nproxy.max_waiting = 3\n", &[]).unwrap();
        for (typed, expected) in [(vec!["--max-requests=9".to_owned()], 9), (Vec::new(), 5)] {
            let mut spec = parse::<RunLine>(RUN_NEEDS, &typed).unwrap().args.spec();
            config.fill_run(&mut spec, &mut None).unwrap();
            assert_eq!(spec.budget.max_requests, Some(expected));
        }
        let mut proxy = parse::<ProxyLine>(PROXY_NEEDS, &[]).unwrap().args;
        config.fill_proxy(&mut proxy).unwrap();
        assert_eq!((proxy.max_waiting, proxy.listen), (Some(3), None));
    }

    #[test]
    fn values_are_held_to_the_rules_of_their_option() {
        for (text, part) in [
            ("run.max_requests = 0", "line 1: run.max_requests: invalid value '0'"),
            ("run.max_duration = \"soon\"", "for example 10m"),
            ("\nrun.interact = \"yes\"", "line 2: run.interact: invalid value 'yes'"),
            ("proxy.listen = \"here\"", "proxy.listen: invalid value"),
            ("proxy.max_in_flight = 5000", "1..=1024"),
            ("serve.base_path = \"gleaner\"", "give a path of plain letters"),
            ("serve.behind_proxy = \"maybe\"", "serve.behind_proxy: invalid value"),
            ("serve.allow_host = \"a b\"", "serve.allow_host: invalid value"),
            ("colour = \"blue\"", "possible values: auto, always, never"),
            ("[fetch]\nmax_per_s = 0", "line 2: fetch.max_per_s: invalid value 'max_per_s=0'"),
            ("fetch.open_for = 5", "use a time such as 500ms, 30s, 10m or 2h"),
            ("fetch.enabled = \"perhaps\"", "use true or false"),
            ("fetch.max_per_sec = 1", "did you mean fetch.max_per_s?"),
        ] {
            let error = load(text, &[]).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let error = load("", &[("GLEANER_PROXY_LISTEN", "x")]).unwrap_err();
        assert!(error.contains("the variable GLEANER_PROXY_LISTEN: invalid value 'x'"), "{error}");
        assert!(load("", &[("GLEANER_PROXY_LISTEN", "")]).unwrap().said.is_empty(), "empty is as good as unset");
    }

    #[test]
    fn every_example_is_allowed_and_the_template_sets_nothing() {
        let template = template();
        assert!(load(&template, &[]).unwrap().said.is_empty());
        let uncommented =
            |line| str::strip_prefix(line, "# ").filter(|rest: &&str| rest.contains(" = ")).unwrap_or(line);
        let set = template.lines().map(uncommented).collect::<Vec<_>>();
        assert_eq!(load(&set.join("\n"), &[]).unwrap().said.len(), options().count());
    }

    #[test]
    fn the_defaults_are_those_of_the_service() {
        assert_eq!(declared("serve.max_runs").default, gleaner_schedule::Limits::default().runs.to_string());
        assert_eq!(declared("serve.listen").default, gleaner_console::LISTEN_DEFAULT.to_string());
    }

    #[test]
    fn the_defaults_are_those_of_the_sidecar() {
        let proxy = Proxy::new(Upstream::parse("http://127.0.0.1").unwrap());
        let real = [
            ("proxy.listen", LISTEN.to_string()),
            ("proxy.ceiling_interval_ms", proxy.settings.config.ceiling_interval.as_millis().to_string()),
            ("proxy.max_in_flight", proxy.settings.config.max_concurrency.to_string()),
            ("proxy.max_waiting", proxy.settings.max_waiting.to_string()),
        ];
        for (key, value) in real {
            assert_eq!(declared(key).default, value, "{key}");
        }
    }

    #[test]
    fn the_page_about_it_has_every_name() {
        let page = include_str!("../../../docs/configuration.md");
        for Declared { key, variable, flag, default, .. } in options() {
            let row = page.lines().find(|line| line.starts_with(&format!("| `{key}`"))).unwrap_or_default();
            for part in [variable, flag, default] {
                assert!(row.contains(*part), "{key}: {part} is missing in {row:?}");
            }
        }
    }
}
