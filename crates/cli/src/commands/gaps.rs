//! `gleaner gaps`: what is known and not here, and why; and the records that do not fit their schema. What the owner says
//! about one gap is done by the same functions as in the console.

use crate::args::inspect::{GapsArgs, GapsCommand, RetryArgs};
use crate::error::CliError;
use crate::terminal::output::{Output, Tone, counted};
use gleaner_app::{MissingRecord, MissingSums, dates, is_collected};
use gleaner_base::outside::{one_line, shortened};
use gleaner_store::{
    GapCause, GapCount, GapFilter, GapSummary, GapsMeant, LeftOpen, Listing, QuarantinedRecord, Reader,
};
use serde_json::{Value, json};

/// As many as a screen has room for.
const SHOWN: u64 = 20;

/// Characters of a key that are shown. --json has all of it.
const KEY_CHARS: usize = 200;

/// Digits of an id that are shown: enough for a million gaps, and few enough to be typed.
const ID_SHOWN: usize = 10;

pub(crate) fn run(args: &GapsArgs, out: &mut Output) -> Result<(), CliError> {
    match (&args.what, &args.connection) {
        (Some(what), _) => say(what, out),
        (None, Some(connection)) => list(args, connection, out),
        // clap asks for one of them.
        (None, None) => Err(CliError::usage("which connection is not said", "name it: gleaner gaps CONNECTION")),
    }
}

/// Says something about one gap.
fn say(what: &GapsCommand, out: &mut Output) -> Result<(), CliError> {
    let (one, note) = match what {
        GapsCommand::Ignore(args) => (&args.gap, Some(&args.note)),
        GapsCommand::TakeBack(args) => (args, None),
        GapsCommand::Retry(args) => return retry(args, out),
    };
    let app = one.home.app()?;
    let (connection, gap_id) = app.meant_gap(&one.id)?;
    let name = one_line(&connection);
    let line = if let Some(note) = note {
        app.ignore_gap(&connection, &gap_id, note)?;
        let short = &gap_id[..ID_SHOWN];
        format!("{name} does without it; it stays on record, `gleaner gaps take-back {short}` takes that back")
    } else {
        app.take_back_gap(&connection, &gap_id)?;
        format!("it is wanted again; the next run of {name} tries it")
    };
    Ok(out.line(&line)?)
}

/// Lets one gap be tried again, or all that fit.
fn retry(args: &RetryArgs, out: &mut Output) -> Result<(), CliError> {
    let app = args.home.app()?;
    let reader = app.reader()?;
    let known = reader.connections()?.into_iter().filter(|one| is_collected(one.state));
    let known = known.map(|one| one.name).collect::<Vec<_>>();
    let names = match &args.what {
        None => known,
        Some(name) if known.contains(name) => vec![name.clone()],
        Some(id) => {
            let (connection, gap_id) = app.meant_gap(id)?;
            app.retry_gap(&connection, &gap_id)?;
            return Ok(out.line(&format!("the next run of {} tries it", one_line(&connection)))?);
        }
    };
    for name in names {
        // With --all, not every connection has the stream.
        let has = |stream: &String| reader.streams(&name).is_ok_and(|all| all.iter().any(|one| one.name == *stream));
        if args.all && !args.stream.as_ref().is_none_or(has) {
            continue;
        }
        let meant = GapsMeant { stream: args.stream.as_deref(), reason: args.reason.as_deref() };
        let count = app.retry_gaps(&name, meant)?;
        out.line(&format!("{}: {}", one_line(&name), retried(&reader, &name, meant, count)?))?;
    }
    Ok(())
}

/// What becomes of gaps that are to be retried. During a cooldown the provider is not asked for what it refused.
fn retried(reader: &Reader, name: &str, meant: GapsMeant<'_>, count: u64) -> Result<String, CliError> {
    let until = reader.cooldown(name)?.map(|cooldown| cooldown.until).filter(|until| *until > dates::now());
    let is_meant = |gap: &GapCount| {
        GapCause::of_count(gap).origin() == "source"
            && meant.stream.is_none_or(|stream| gap.stream == stream)
            && meant.reason.is_none_or(|reason| gap.reason.as_deref() == Some(reason))
    };
    let Some(until) = until else { return Ok(format!("the next run tries {}", counted(count, "gap", "gaps"))) };
    let streams = reader.coverage(name)?;
    let refused = streams.iter().flat_map(|stream| &stream.gaps).filter(|gap| is_meant(gap)).map(|gap| gap.count);
    let refused = refused.sum::<u64>().min(count);
    let tried = format!("the next run tries {}", counted(count - refused, "gap", "gaps"));
    Ok(match refused {
        0 => tried,
        _ => format!(
            "{tried}; {} that the provider refused when the cooldown ends at {} (`gleaner run {} --now` does not wait)",
            counted(refused, "gap", "gaps"),
            dates::rfc3339(until),
            one_line(name)
        ),
    })
}

fn list(args: &GapsArgs, connection: &str, out: &mut Output) -> Result<(), CliError> {
    let limit = args.limit.unwrap_or(if args.print.json { u64::MAX } else { SHOWN });
    let filter = GapFilter { stream: args.stream.as_deref(), closed_too: args.recovered };
    let missing = args.print.home.app()?.missing(connection, filter, limit, |row| {
        let line = match (row, args.print.json) {
            (MissingRecord::Gap(gap), true) => gap_json(gap),
            (MissingRecord::Gap(gap), false) => gap_text(gap),
            (MissingRecord::Quarantined(record), true) => record_json(record).to_string(),
            (MissingRecord::Quarantined(record), false) => record_text(record),
        };
        Ok::<_, CliError>(out.line(&line)?)
    })?;
    let MissingSums { streams, left_open: open, unfinished, shown } = missing;
    if args.print.json {
        for stream in streams {
            if let Some(listing) = stream.listing.filter(|listing| listing.unaccounted > 0) {
                out.line(&unaccounted_json(&stream.summary.name, &listing).to_string())?;
            }
        }
        for one in &open {
            out.line(&left_open_json(one).to_string())?;
        }
        if let Some(why) = &unfinished {
            out.line(&json!({"kind": "unfinished", "message": why}).to_string())?;
        }
        return Ok(());
    }
    let (mut all, mut unaccounted, mut empty) = (0, 0, 0);
    for stream in streams {
        empty += stream.summary.gaps_empty;
        let recovered = if args.recovered { stream.summary.gaps_recovered } else { 0 };
        all += stream.missing() + recovered;
        if let Some(listing) = stream.listing.filter(|listing| listing.unaccounted > 0) {
            unaccounted += listing.unaccounted;
            out.line(&unaccounted_text(&stream.summary.name, &listing))?;
        }
    }
    for one in &open {
        out.line(&one_line(&one.to_string()))?;
    }
    // A gap whose record is in quarantine has two lines and is missing once.
    let shown = shown + unaccounted;
    let line = match (all, &unfinished) {
        (0, Some(why)) => format!("no gap is on record, but {}", one_line(why)),
        (0, None) if !open.is_empty() => "no gap is open, but the account is not complete".to_owned(),
        (0, None) if empty > 0 => format!("nothing is missing; {empty} listed keys are empty (--recovered lists them)"),
        (0, None) => "nothing is missing".to_owned(),
        (all, None) => format!("{} of {all} shown", shown.min(all)),
        (all, Some(why)) => format!("{} of {all} shown; more may be missing: {}", shown.min(all), one_line(why)),
    };
    Ok(out.line(&out.paint(Tone::Quiet, &line))?)
}

fn left_open_json(one: &LeftOpen) -> Value {
    json!({
        "kind": one.kind.code(), "stream": one.stream, "message": one.text, "asked_for": one.asked_for,
        "helps": one.helps,
    })
}

fn gap_text(gap: &GapSummary) -> String {
    let key = gap.record_key.as_deref().unwrap_or("(a part of the list)");
    let what = GapCause::of(gap).wording().map_or("it is missing, and no reason was given", |wording| wording.what);
    // The connector's own words come first, where it has any.
    let own = error_field(gap, "message").map(|message| one_line(&message));
    let what = own.as_deref().unwrap_or(what);
    let state = match gap.state.as_str() {
        "terminal" => "given up",
        "in_progress" => "is being fetched",
        "recovered" if gap.confirmed_by.as_deref() == Some("empty") => "closed as empty",
        "recovered" => "recovered",
        "ignored" => "ignored by you",
        _ => "waits",
    };
    let tries = match gap.attempts {
        0 => "not retried yet".to_owned(),
        tries => counted(u64::from(tries), "retry", "retries"),
    };
    let since = dates::rfc3339(gap.since);
    let not_before = gap.not_before.map(|time| format!(", not before {}", dates::rfc3339(time))).unwrap_or_default();
    let note = gap.ignored.as_ref().map(|ignored| format!("\n    \"{}\"", one_line(&ignored.note))).unwrap_or_default();
    let (id, stream, key) = (&gap.gap_id[..ID_SHOWN], one_line(&gap.stream), shortened(key, KEY_CHARS));
    format!("{stream} {key}  {state}, {tries}, since {since}{not_before}{note}\n    {what} ({id})")
}

/// Locator and last error are not parsed: what a number looked like is how it is printed.
fn gap_json(gap: &GapSummary) -> String {
    let cause = GapCause::of(gap);
    let known = json!({
        "kind": "gap", "gap_id": gap.gap_id, "stream": gap.stream, "parent_stream": gap.parent_stream,
        "record_key": gap.record_key, "state": gap.state, "reason": gap.reason, "class": error_field(gap, "class"),
        "origin": cause.origin(), "run_cap": gap.run_cap, "http_status": gap.http_status,
        "terminal_reason": gap.terminal_reason, "attempts": gap.attempts, "since": dates::rfc3339(gap.since),
        "ignored": gap.ignored.as_ref().map(|by| json!({"note": by.note, "at": dates::rfc3339(by.at)})),
        "not_before": gap.not_before.map(dates::rfc3339), "message": cause.wording().map(|wording| wording.what),
        "closed_by": gap.confirmed_by,
    });
    let known = known.to_string();
    let raw = |text: &Option<String>| text.clone().unwrap_or_else(|| "null".to_owned());
    let known = known.strip_suffix('}').unwrap_or_default();
    format!("{known},\"last_error\":{},\"locator\":{}}}", raw(&gap.last_error), raw(&gap.locator))
}

/// A field of the last error, in the connector's words.
fn error_field(gap: &GapSummary, name: &str) -> Option<String> {
    let error = serde_json::from_str::<Value>(gap.last_error.as_ref()?).ok()?;
    Some(error.get(name)?.as_str()?.to_owned())
}

fn record_text(record: &QuarantinedRecord) -> String {
    let (stream, key, since) =
        (one_line(&record.stream), shortened(&record.key, KEY_CHARS), dates::rfc3339(record.stored_at));
    let pointer = if record.pointer.is_empty() { "the whole record" } else { &record.pointer };
    let reason = if record.reason.is_empty() { "it does not fit" } else { &record.reason };
    let (pointer, reason) = (one_line(pointer), one_line(reason));
    format!("{stream} {key}  in quarantine since {since}\n    does not fit its schema at {pointer}: {reason}")
}

/// Keys of a list without an outcome. Only the first of them are on record.
fn unaccounted_text(stream: &str, listing: &Listing) -> String {
    let keys = listing.waiting.iter().map(|key| one_line(key)).collect::<Vec<_>>().join(", ");
    let more = listing.unaccounted.saturating_sub(listing.waiting.len() as u64);
    let more = if more > 0 && !keys.is_empty() { format!(" and {more} more") } else { String::new() };
    let count = listing.unaccounted;
    format!("{} {keys}{more}  listed, without an outcome ({count}), by run {}", one_line(stream), listing.run_id)
}

fn unaccounted_json(stream: &str, listing: &Listing) -> Value {
    json!({
        "kind": "unaccounted", "stream": stream, "count": listing.unaccounted, "first_keys": listing.waiting,
        "run_id": listing.run_id,
    })
}

fn record_json(record: &QuarantinedRecord) -> Value {
    json!({
        "kind": "quarantine", "stream": record.stream, "record_key": record.key, "pointer": record.pointer,
        "reason": record.reason,
        "since": dates::rfc3339(record.stored_at),
    })
}
