//! `gleaner config show`: every option, its value, and who said so.

use crate::args::collect::PrintArgs;
use crate::args::maintenance::Colour;
use crate::config::{Config, Declared, Said, Source, options};
use crate::error::CliError;
use crate::terminal::output::{Output, Tone};
use clap::ValueEnum;
use gleaner_base::outside::one_line;
use serde_json::json;

pub(crate) fn run(args: &PrintArgs, colour: Option<Colour>, out: &mut Output) -> Result<(), CliError> {
    let app = args.home.app()?;
    let config = Config::load(&app)?;
    let root = Said { text: app.root().display().to_string(), source: home_source(args) };
    print(args, "home", ("GLEANER_HOME", "--home"), &root, out)?;
    for declared in options() {
        let typed = colour.filter(|_| declared.key == "colour").and_then(|colour| colour.to_possible_value());
        let said = match typed {
            Some(value) => Said { text: value.get_name().to_owned(), source: Source::Flag(declared.flag) },
            None => config.of(declared),
        };
        let Declared { key, variable, flag, .. } = declared;
        print(args, key, (variable, flag), &said, out)?;
    }
    Ok(())
}

fn home_source(args: &PrintArgs) -> Source {
    if args.home.home.is_some() {
        return Source::Flag("--home");
    }
    let set = std::env::var_os("GLEANER_HOME").is_some_and(|value| !value.is_empty());
    if set { Source::Environment("GLEANER_HOME") } else { Source::Default }
}

fn print(
    args: &PrintArgs,
    key: &str,
    (variable, flag): (&str, &str),
    said: &Said,
    out: &mut Output,
) -> Result<(), CliError> {
    let (source, place, line) = match &said.source {
        Source::Default => ("default", None, None),
        Source::File { path, line } => ("file", Some(path.display().to_string()), Some(*line)),
        Source::Environment(variable) => ("environment", Some((*variable).to_owned()), None),
        Source::Flag(flag) => ("flag", Some((*flag).to_owned()), None),
    };
    if args.json {
        let line = json!({
            "key": key, "value": said.text, "source": source, "place": place, "line": line,
            "variable": variable, "flag": flag,
        });
        return Ok(out.line(&line.to_string())?);
    }
    let place = place.map(|place| format!(" {place}")).unwrap_or_default();
    let at = line.map(|line| format!(" line {line}")).unwrap_or_default();
    let source = out.paint(Tone::Quiet, &one_line(&format!("{source}{place}{at}")));
    Ok(out.line(&format!("{key:<26} {:<20} {source}", one_line(&said.text)))?)
}
