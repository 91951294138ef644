//! What `--set` and `--sweep` name: numbers of the law `gleaner`, and other values for them.

use crate::error::CliError;
use gleaner_app::nearest;
use gleaner_lab::{BadValue, Number, Tuning};

/// Values of one number to be compared.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) number: &'static Number,
    /// Each with all other numbers as `--set` wants them.
    pub(crate) tunings: Vec<&'static Tuning>,
}

/// The numbers that ship, but for what `--set` says. They live as long as the program: a few hundred bytes each.
pub(crate) fn tuning(set: &[String]) -> Result<&'static Tuning, CliError> {
    if set.is_empty() {
        return Ok(Tuning::SHIPPED);
    }
    let (mut tuning, mut seen) = (*Tuning::SHIPPED, Vec::new());
    for assignment in set {
        let (number, value) = parse("--set", assignment)?;
        if seen.contains(&number.name) {
            return Err(CliError::usage(format!("--set: {} is set twice", number.name), "give it one value"));
        }
        put("--set", number, value, &mut tuning)?;
        seen.push(number.name);
    }
    Ok(Box::leak(Box::new(tuning)))
}

/// One set of numbers per value of `--sweep`.
pub(crate) fn sweep(assignment: &str, set: &[String]) -> Result<Sweep, CliError> {
    let base = tuning(set)?;
    let (number, values) = parse("--sweep", assignment)?;
    if set.iter().any(|one| one.split('=').next().is_some_and(|name| name.trim() == number.name)) {
        let message = format!("--sweep: {} is also in --set", number.name);
        return Err(CliError::usage(message, "leave one of the two out"));
    }
    let mut tunings: Vec<&'static Tuning> = Vec::new();
    for value in values.split(',') {
        let mut tuning = *base;
        put("--sweep", number, value, &mut tuning)?;
        tunings.push(Box::leak(Box::new(tuning)));
    }
    Ok(Sweep { number, tunings })
}

/// What a number counts and may be, in words.
pub(crate) fn allowed(number: &Number) -> String {
    format!("{} to {} {}", number.min, number.max, number.unit)
}

/// A value as JSON: a number, or an array of them.
pub(crate) fn json(number: &Number, tuning: &Tuning) -> serde_json::Value {
    let text = number.text(tuning);
    let parse = |one: &str| serde_json::from_str(one).unwrap_or(serde_json::Value::Null);
    if text.contains(':') { text.split(':').map(parse).collect() } else { parse(&text) }
}

/// The numbers that are not as shipped, as `name=value`.
pub(crate) fn changed(tuning: &Tuning) -> impl Iterator<Item = (&'static Number, String)> {
    let values = Number::all().iter().map(|number| (number, number.text(tuning)));
    values.filter(|(number, text)| *text != number.text(Tuning::SHIPPED))
}

fn parse<'a>(option: &str, assignment: &'a str) -> Result<(&'static Number, &'a str), CliError> {
    let Some((name, value)) = assignment.split_once('=') else {
        let message = format!("{option}: \"{assignment}\" has no =");
        return Err(CliError::usage(
            message,
            format!("for example {option} climb=0.04; `gleaner lab tuning` lists all numbers"),
        ));
    };
    let name = name.trim();
    let number = Number::find(name).ok_or_else(|| {
        let hint = match nearest(name, Number::all().iter().map(|number| number.name)) {
            Some(near) => format!("did you mean {near}? `gleaner lab tuning` lists all numbers"),
            None => "`gleaner lab tuning` lists all numbers".to_owned(),
        };
        CliError::usage(format!("{option}: no number of the law is called \"{name}\""), hint)
    })?;
    Ok((number, value))
}

fn put(option: &str, number: &Number, value: &str, tuning: &mut Tuning) -> Result<(), CliError> {
    number.set(tuning, value).map_err(|problem| {
        let problem = match problem {
            BadValue::NotANumber => "is not a number",
            BadValue::NotWhole => "is not a whole number",
            BadValue::OutOfRange => "is out of range",
            BadValue::NotAscending => "is not a list of 1 to 32 values, each larger than the one before",
        };
        let message = format!("{option}: {}: \"{value}\" {problem}", number.name);
        CliError::usage(message, format!("allowed: {}; shipped: {}", allowed(number), number.text(Tuning::SHIPPED)))
    })
}
