//! `gleaner connectors`: what can be added by name, what it collects and what it needs.

use crate::args::collect::PrintArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, Tone, report_to_stderr, wrap};
use gleaner_app::{Connector, Origin, setting_names};
use gleaner_base::outside::{self, one_line};
use serde_json::{Value, json};

/// Lines are wrapped here, so that they fit beside the words in front of them.
const WIDTH: usize = 68;

pub(crate) fn run(args: &PrintArgs, out: &mut Output) -> Result<(), CliError> {
    let app = args.home.app()?;
    let catalog = app.catalog();
    for connector in &catalog.connectors {
        if args.json { out.line(&as_json(connector).to_string())? } else { print(connector, out)? }
    }
    for faulty in &catalog.faulty {
        if args.json {
            let line = json!({"message_type": "fault", "file": faulty.file, "what": faulty.what});
            out.line(&line.to_string())?;
        } else {
            let warning = format!("warning: left out: {}", faulty.what);
            report_to_stderr(&one_line(&warning));
        }
    }
    if !args.json {
        let folder = app.connectors_path();
        out.line(&format!("These come with the program or are in {}.", one_line(&folder.to_string_lossy())))?;
        out.line("Any other: put a folder with a manifest.json there, or: gleaner add --manifest FILE -- COMMAND")?;
    }
    Ok(())
}

fn print(connector: &Connector, out: &mut Output) -> Result<(), CliError> {
    let manifest = &connector.manifest;
    let key = out.paint(Tone::Strong, &manifest.connector_key);
    out.line(&format!("{key}  {}, version {}", one_line(&manifest.display_name), one_line(&manifest.version)))?;
    let streams = manifest.streams.iter().map(|stream| stream.name.clone()).collect::<Vec<_>>();
    fact(out, "streams", &streams.join(", "))?;
    fact(out, "needs", &connector.needs())?;
    let settings = setting_names(manifest);
    if !settings.is_empty() {
        let shown = settings.iter().map(|(key, variable)| match key == variable {
            true => format!("{key}=…"),
            false => format!("{key}=… ({variable})"),
        });
        fact(out, "--set", &shown.collect::<Vec<_>>().join(", "))?;
    }
    let is_started = manifest.command.is_some() || matches!(connector.origin, Origin::Program(_));
    let command = if is_started { "" } else { " -- COMMAND" };
    fact(out, "add with", &format!("gleaner add {}{command}", manifest.connector_key))
}

fn fact(out: &mut Output, word: &str, text: &str) -> Result<(), CliError> {
    let text = if text.is_empty() { "nothing" } else { text };
    for (at, line) in wrap(&outside::lines(text), WIDTH).iter().enumerate() {
        let word = if at == 0 { word } else { "" };
        out.line(&format!("  {word:<9} {line}"))?;
    }
    Ok(())
}

fn as_json(connector: &Connector) -> Value {
    let manifest = &connector.manifest;
    let bindings = manifest.bindings.iter().map(|binding| json!({"name": binding.name, "required": binding.required}));
    let (folder, needs) = match &connector.origin {
        Origin::Program(known) => (None, Some(known.needs)),
        Origin::Folder(folder) => (Some(folder), None),
    };
    let settings = setting_names(manifest).into_iter().map(|(key, variable)| json!({"key": key, "variable": variable}));
    json!({
        "message_type": "connector", "connector": manifest.connector_key, "connector_id": manifest.connector_id,
        "display_name": manifest.display_name, "version": manifest.version, "folder": folder, "needs": needs,
        "streams": manifest.streams.iter().map(|stream| &stream.name).collect::<Vec<_>>(),
        "credentials": manifest.auth.as_ref().map_or(&[][..], |auth| &auth.required),
        "bindings": bindings.collect::<Vec<_>>(), "environment_variables": manifest.environment_variables,
        "settings": settings.collect::<Vec<_>>(), "command": manifest.command,
    })
}
