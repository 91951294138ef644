//! `gleaner schedule`: when connections run by themselves, what comes next and why; and the way to set it.

use crate::args::serve::ScheduleArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, Tone};
use gleaner_app::{ConnectionView, Outlook, Overview, ScheduleChange, Setting, dates, kind_code};
use gleaner_base::outside::one_line;
use gleaner_engine::WallTime;
use gleaner_schedule::{Held, Next};
use gleaner_store::HeldBy;
use serde_json::{Value, json};

pub(crate) fn run(args: &ScheduleArgs, out: &mut Output) -> Result<(), CliError> {
    let app = args.home.app()?;
    let change = change(args);
    if let Some(name) = &args.connection
        && !change.is_empty()
    {
        app.set_schedule(name, &change)?;
    }
    let Overview { views, service, .. } = app.overview(args.connection.as_deref())?;
    for outlook in views.iter().map(ConnectionView::outlook) {
        if args.json { out.line(&as_json(&outlook).to_string())? } else { print(&outlook, out)? }
    }
    if !args.json {
        out.line(&out.paint(Tone::Quiet, &service_line(service.as_ref())))?;
    }
    Ok(())
}

fn change(args: &ScheduleArgs) -> ScheduleChange {
    fn of<T: Clone>(setting: Option<&Setting<T>>) -> Setting<T> {
        setting.map_or(Setting::Keep, Clone::clone)
    }
    ScheduleChange {
        mode: of(args.mode.as_ref()),
        every: of(args.every.as_ref()),
        cron: of(args.cron.as_ref()),
        quiet: of(args.quiet.as_ref()),
        zone: of(args.zone.as_ref()),
    }
}

pub(crate) fn service_line(service: Option<&HeldBy>) -> String {
    match service {
        Some(by) => format!("process {} serves this data root since {}", by.pid, dates::rfc3339(by.since)),
        None => "no service is running, so no run starts automatically: gleaner serve, or gleaner service install"
            .to_owned(),
    }
}

fn print(outlook: &Outlook, out: &mut Output) -> Result<(), CliError> {
    let name = out.paint(Tone::Strong, &one_line(&outlook.connection));
    out.line(&format!("{name}  {}", one_line(&how(outlook))))?;
    out.line(&format!("  next: {}", next_text(outlook, dates::now())))?;
    if let Next::Run { at, .. } = outlook.history {
        let when = outlook.plan.zone.show(at.max(dates::now()));
        out.line(&format!("  history: a part of it is left; the next one from {when} on"))?;
    }
    if let Some(todo) = outlook.what_to_do() {
        out.line(&format!("  to do: {}", one_line(&todo)))?;
    }
    if let Some(fault) = &outlook.setting_fault {
        let fault = one_line(fault);
        out.line(&out.paint(Tone::Bad, &format!("  what you set cannot be read, and is not heeded: {fault}")))?;
    }
    Ok(())
}

/// How it is run, in a few words.
fn how(outlook: &Outlook) -> String {
    match outlook.next {
        Next::Held(Held::Back(_)) => format!("no automatic run: {}", outlook.why()),
        Next::Run { .. } | Next::Held(_) => outlook.cadence(),
    }
}

/// What comes next, in a line.
pub(crate) fn next_text(outlook: &Outlook, now: WallTime) -> String {
    let running =
        outlook.running.as_ref().map(|by| format!("process {} runs it now; then ", by.pid)).unwrap_or_default();
    let what = match outlook.next {
        Next::Held(_) => format!("no automatic run: {}", outlook.why()),
        Next::Run { at, .. } if at <= now => format!("now: {}", outlook.why()),
        Next::Run { at, .. } => format!("{}: {}", outlook.plan.zone.show(at), outlook.why()),
    };
    one_line(&format!("{running}{what}"))
}

pub(crate) fn as_json(outlook: &Outlook) -> Value {
    let kind = match outlook.next {
        Next::Run { kind, .. } => Some(kind_code(kind)),
        Next::Held(_) => None,
    };
    let set = &outlook.set;
    json!({
        "connection": outlook.connection, "by_itself": !matches!(outlook.next, Next::Held(Held::Back(_))),
        "cadence": outlook.cadence(), "next_at": outlook.at().map(dates::rfc3339), "kind": kind,
        "code": outlook.code(), "why": outlook.why(), "to_do": outlook.what_to_do(),
        "history_left": matches!(outlook.history, Next::Run { .. }),
        "running": outlook.running.as_ref().map(|by| json!({"pid": by.pid, "since": dates::rfc3339(by.since)})),
        "set": {
            "mode": set.mode, "every_seconds": set.every.map(|every| every.as_secs()), "cron": set.cron,
            "quiet": set.quiet, "zone": set.zone,
        },
        "setting_fault": outlook.setting_fault,
    })
}
