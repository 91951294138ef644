//! What a rehearsal shows: each exchange with what came out of it, and the account at its end.
//!
//! On a wide terminal the answer is on the left and the records on the right; on a narrow one they follow each
//! other. Everything from outside is made visible first, and cut to fit.

use super::pairing::pair;
use super::pretty::{broken, cut, fit, lines_of};
use crate::args::collect::CollectArgs;
use crate::error::CliError;
use crate::terminal::output::{Output, Tone, report_to_stderr};
use crate::terminal::run_view::exit_code;
use gleaner_app::{Item, ItemKind, NOT_RECORDED, Rehearsed, Sums};
use gleaner_base::outside::one_line;
use gleaner_protocol::TerminalReason;
use gleaner_runtime::Redactor;
use gleaner_sdk::exchanges::{Exchange, Message, Outcome};
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;

/// From here on two columns are wide enough to be read.
const WIDE: usize = 120;
/// What stands between them.
const BETWEEN: &str = " │ ";
/// Lines of one body, and of one record.
const BODY_LINES_MAX: usize = 24;
const RECORD_LINES_MAX: usize = 10;
/// How the SDK begins what it says about a record that does not fit.
const LEFT_OUT: &str = "a record was left out: ";
/// Headers of an answer that say something about what to do with it.
const TELLING: [&str; 10] = [
    "content-type",
    "content-range",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "set-cookie",
    "warning",
    "www-authenticate",
];

pub(super) fn show(
    name: &str,
    args: &CollectArgs,
    rehearsed: &Rehearsed,
    out: &mut Output,
) -> Result<ExitCode, CliError> {
    let (items, secrets) = (&rehearsed.items, &rehearsed.secrets);
    let exchanges = rehearsed.exchanges.as_deref().unwrap_or_default();
    if args.author.limit.is_some() {
        let numbers = pair(items, exchanges);
        // Before it could be stopped it may have asked for more, which nobody wants to see.
        let last = numbers.iter().flatten().max().filter(|_| rehearsed.had_enough);
        let shown = last.map_or(exchanges, |last| &exchanges[..=*last]);
        let page = Page { exchanges: shown, items, numbers: &numbers, secrets };
        if args.json {
            page.print_json(out)?
        } else {
            page.print(out)?
        }
        if exchanges.is_empty() && !args.json && !args.quiet {
            report_to_stderr(&format!("no HTTP exchange was recorded: {NOT_RECORDED}; here are its records alone"));
        }
    }
    account(name, args, rehearsed, out)
}

struct Page<'a> {
    exchanges: &'a [Exchange],
    items: &'a [Item],
    /// For each item the number of its exchange.
    numbers: &'a [Option<usize>],
    secrets: &'a Redactor,
}

impl<'a> Page<'a> {
    /// What came out of this exchange, or of none.
    fn items_of(&self, number: Option<usize>) -> impl Iterator<Item = &'a Item> {
        self.items.iter().zip(self.numbers).filter(move |(_, of)| **of == number).map(|(item, _)| item)
    }

    fn print(&self, out: &mut Output) -> io::Result<()> {
        let width = out.width();
        for (number, exchange) in self.exchanges.iter().enumerate() {
            // A URL is what its author looks for, so it is not cut.
            for line in broken(&title(number, exchange), width) {
                out.line(&out.paint(Tone::Strong, &line))?;
            }
            let answer = answer_lines(exchange);
            let items = self.items_of(Some(number)).flat_map(|item| self.item_lines(item)).collect::<Vec<_>>();
            if width >= WIDE && !items.is_empty() {
                beside(&answer, &items, width, out)?;
            } else {
                one_after_the_other(&answer, &items, width, out)?;
            }
            out.line("")?;
        }
        let rest = self.items_of(None).flat_map(|item| self.item_lines(item)).collect::<Vec<_>>();
        if rest.is_empty() {
            return Ok(());
        }
        if !self.exchanges.is_empty() {
            out.line(&out.paint(Tone::Strong, "of no exchange"))?;
        }
        one_after_the_other(&[], &rest, width, out)?;
        out.line("")
    }

    fn item_lines(&self, item: &Item) -> Vec<Line> {
        let name = self.secrets.mask(&format!("=> {} {}", item.stream, item.key));
        let (head, tone, why) = match &item.kind {
            ItemKind::Record => (name, Tone::Accepted, None),
            ItemKind::Deleted => (format!("{name}: deleted"), Tone::Accepted, None),
            ItemKind::Rejected(why) => (format!("{name}: rejected"), Tone::Bad, Some(why)),
            ItemKind::Gap(why) => (format!("{name}: a gap: {}", one_line(why)), Tone::Limit, None),
        };
        // On a line of its own, without what is said already: the place of a fault stands at its end.
        let why = why.map(|why| why.strip_prefix(LEFT_OUT).unwrap_or(why));
        let why = why.map(|why| Line { text: one_line(&self.secrets.mask(why)), tone });
        let head = Line { text: one_line(&head), tone };
        let data = cut(lines_of(&self.secrets.mask(&item.data)), RECORD_LINES_MAX);
        [head].into_iter().chain(why).chain(data.into_iter().map(Line::plain)).collect()
    }

    fn print_json(&self, out: &mut Output) -> io::Result<()> {
        for (number, exchange) in self.exchanges.iter().enumerate() {
            let records = self.items_of(Some(number)).map(|item| self.item_json(item)).collect::<Vec<_>>();
            out.line(&exchange_json(number, exchange, &records).to_string())?;
        }
        for item in self.items_of(None) {
            let mut line = self.item_json(item);
            line["message_type"] = "item".into();
            out.line(&line.to_string())?;
        }
        Ok(())
    }

    fn item_json(&self, item: &Item) -> Value {
        let (kind, why) = match &item.kind {
            ItemKind::Record => ("record", None),
            ItemKind::Deleted => ("deleted", None),
            ItemKind::Rejected(why) => ("rejected", Some(self.secrets.mask(why))),
            ItemKind::Gap(why) => ("gap", Some(why.clone())),
        };
        let data = serde_json::from_str::<Value>(&self.secrets.mask(&item.data)).unwrap_or_default();
        json!({"kind": kind, "stream": item.stream, "key": self.secrets.mask(&item.key), "data": data, "why": why})
    }
}

/// A line of what is shown.
struct Line {
    text: String,
    tone: Tone,
}

impl Line {
    const fn plain(text: String) -> Self {
        Self { text, tone: Tone::Plain }
    }

    const fn quiet(text: String) -> Self {
        Self { text, tone: Tone::Quiet }
    }
}

fn title(number: usize, exchange: &Exchange) -> String {
    one_line(&format!("{}  {} {}", number + 1, exchange.method, exchange.url))
}

/// What went out with a request, and what came back.
fn answer_lines(exchange: &Exchange) -> Vec<Line> {
    let mut lines = headers('>', exchange.request.headers.iter());
    let body = cut(body_lines(&exchange.request), BODY_LINES_MAX);
    lines.extend(body.into_iter().map(|line| Line::plain(format!("> {line}"))));
    let took = exchange.took_ms.map(|took| format!(" in {took} ms")).unwrap_or_default();
    match &exchange.outcome {
        Outcome::NoAnswer(_) => {
            let why = exchange.outcome.no_answer().unwrap_or_default();
            lines.push(Line { text: format!("< no answer: {why}{took}"), tone: Tone::Bad });
        }
        Outcome::Answered { status, message, .. } => {
            let tone = if *status >= 400 { Tone::Bad } else { Tone::Accepted };
            let bytes = message.body.len();
            lines.push(Line { text: format!("< {status}{took}, {bytes} bytes"), tone });
            let tells = |name: &str| TELLING.contains(&name) || name.contains("ratelimit");
            lines.extend(headers('<', message.headers.iter().filter(|(name, _)| tells(name))));
            lines.extend(cut(body_lines(message), BODY_LINES_MAX).into_iter().map(Line::plain));
        }
    }
    lines
}

fn headers<'h>(mark: char, headers: impl Iterator<Item = &'h (String, String)>) -> Vec<Line> {
    let line = |(name, value): &(String, String)| one_line(&format!("{mark} {name}: {value}"));
    headers.map(|header| Line::quiet(line(header))).collect()
}

fn body_lines(message: &Message) -> Vec<String> {
    match std::str::from_utf8(&message.body) {
        Ok(text) => lines_of(text),
        Err(_) => vec![format!("{} bytes that are no text", message.body.len())],
    }
}

fn beside(left: &[Line], right: &[Line], width: usize, out: &mut Output) -> io::Result<()> {
    let column = (width - BETWEEN.chars().count()) / 2;
    for number in 0..left.len().max(right.len()) {
        let (left, right) = (left.get(number), right.get(number));
        let text = left.map(|line| fit(&line.text, column)).unwrap_or_default();
        let room = " ".repeat(column - text.chars().count());
        let text = out.paint(left.map_or(Tone::Plain, |line| line.tone), &text);
        let other = right.map(|line| out.paint(line.tone, &fit(&line.text, column))).unwrap_or_default();
        out.line(format!("{text}{room}{}{other}", out.paint(Tone::Quiet, BETWEEN)).trim_end())?;
    }
    Ok(())
}

fn one_after_the_other(answer: &[Line], items: &[Line], width: usize, out: &mut Output) -> io::Result<()> {
    let shift = if answer.is_empty() { "" } else { "  " };
    for line in answer {
        out.line(&out.paint(line.tone, &fit(&line.text, width)))?;
    }
    for line in items {
        let text = fit(&format!("{shift}{}", line.text), width);
        out.line(&out.paint(line.tone, &text))?;
    }
    Ok(())
}

fn exchange_json(number: usize, exchange: &Exchange, items: &[Value]) -> Value {
    let headers = |message: &Message| json!(message.headers);
    let body = |message: &Message| match std::str::from_utf8(&message.body) {
        Ok(text) => json!(text),
        Err(_) => Value::Null,
    };
    let (status, answer) = match &exchange.outcome {
        Outcome::Answered { status, message, .. } => (Some(*status), Some(message)),
        Outcome::NoAnswer(_) => (None, None),
    };
    json!({
        "message_type": "exchange", "number": number + 1, "at": exchange.at, "took_ms": exchange.took_ms,
        "method": exchange.method, "url": exchange.url, "request_headers": headers(&exchange.request),
        "request_body": body(&exchange.request), "status": status, "no_answer": exchange.outcome.no_answer(),
        "response_headers": answer.map(headers), "response_body": answer.map(body), "items": items,
    })
}

/// How it ended, and with which code the program does.
fn account(name: &str, args: &CollectArgs, rehearsed: &Rehearsed, out: &mut Output) -> Result<ExitCode, CliError> {
    let Rehearsed { report, sums, had_enough, exchanges, .. } = rehearsed;
    let outcome = &report.outcome;
    let reason = if *had_enough { TerminalReason::Succeeded } else { outcome.reason };
    let is_missing_something = sums.values().any(|sums| sums.rejected + sums.gaps > 0);
    let code = exit_code(reason, is_missing_something, report.was_told_to_stop);
    let violation = outcome.violation.as_ref().map(ToString::to_string);
    let why = outcome.ended(violation.as_deref(), None).cause();
    let why = Some(why).filter(|_| reason != TerminalReason::Succeeded);
    if args.json {
        let streams = sums.iter().map(|(stream, sums)| (stream.clone(), json!(sums)));
        let line = json!({
            "message_type": "rehearsal_finished", "stored": false, "limit_reached": *had_enough,
            "reason": reason.code(), "error": why, "exchanges": exchanges.as_ref().map(Vec::len),
            "streams": streams.collect::<serde_json::Map<_, _>>(),
        });
        out.line(&line.to_string())?;
        return Ok(ExitCode::from(code));
    }
    let tone = if reason == TerminalReason::Succeeded { Tone::Strong } else { Tone::Bad };
    let what = if *had_enough { "There were enough records." } else { reason.wording().what };
    out.line(&out.paint(tone, &format!("{}: {what} Nothing was stored.", name)))?;
    for (stream, sums) in sums {
        let Sums { records, rejected, gaps } = sums;
        out.line(&format!("  {}: {records} records, {rejected} rejected, {gaps} gaps", one_line(stream)))?;
    }
    if let Some(why) = why {
        out.line(&format!("  {}", one_line(&why)))?;
        for line in report.errors.lines().rev().take(5).collect::<Vec<_>>().into_iter().rev() {
            out.line(&out.paint(Tone::Quiet, &format!("  | {}", one_line(line))))?;
        }
    }
    Ok(ExitCode::from(code))
}
