//! `openapi.json` as a judge: which operation an answer belongs to, and whether the answer is one that it describes.

use crate::client::Reply;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(crate) static DOCUMENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(gleaner_console::openapi()).expect("a description"));

/// Everything that is wrong with an answer, in words; nothing when it is as described.
pub(crate) fn fault(method: &str, path: &str, reply: &Reply) -> Option<String> {
    let (method, is_head) = if method == "HEAD" { ("GET", true) } else { (method, false) };
    let Some(operation) = operation(method, path) else {
        // What is not there is refused in the one shape.
        let allowed = [400, 401, 403, 404, 405, 421, 429, 431];
        return (!allowed.contains(&reply.status)).then(|| format!("{} for what is not described", reply.status));
    };
    let Some(described) = operation["responses"].get(reply.status.to_string()) else {
        return Some(format!("status {} is not described: {}", reply.status, reply.text()));
    };
    let described = resolve(described);
    let given = reply.header("content-type").unwrap_or_default().split(';').next().unwrap_or_default();
    let Some(content) = described.get("content") else {
        return (!reply.body.is_empty()).then(|| "a body where none is described".to_owned());
    };
    let Some(media) = content.get(given) else { return Some(format!("type {given:?} is not described")) };
    if is_head {
        return (!reply.body.is_empty()).then(|| "a body where only a head was asked for".to_owned());
    }
    let value = match given {
        "application/json" => reply.json(),
        _ => Value::String(reply.text().to_owned()),
    };
    invalid(&media["schema"], &value)
}

/// Why a value does not fit a schema of the document.
pub(crate) fn invalid(schema: &Value, value: &Value) -> Option<String> {
    let whole = json!({"allOf": [schema], "components": DOCUMENT["components"]});
    let validator = jsonschema::options().should_validate_formats(true).build(&whole).expect("a schema");
    let errors = validator.iter_errors(value).map(|error| format!("{} at {}", error, error.instance_path()));
    let errors = errors.collect::<Vec<_>>();
    (!errors.is_empty()).then(|| errors.join("; "))
}

fn resolve(described: &Value) -> &Value {
    let reference = described.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'));
    reference.map_or(described, |pointer| DOCUMENT.pointer(pointer).expect("a part of the document"))
}

fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap_or_default();
    let paths = DOCUMENT["paths"].as_object().expect("paths");
    let found = paths.iter().find(|(template, _)| {
        let (parts, given) = (template.split('/').collect::<Vec<_>>(), path.split('/').collect::<Vec<_>>());
        let fits = |(part, given): (&&str, &&str)| part == given || (part.starts_with('{') && !given.is_empty());
        parts.len() == given.len() && parts.iter().zip(&given).all(fits)
    });
    found?.1.get(method.to_ascii_lowercase())
}

/// Every operation of the document.
pub(crate) fn operations() -> BTreeMap<(String, String), &'static Value> {
    let paths = DOCUMENT["paths"].as_object().expect("paths");
    let of_path = |(path, methods): (&String, &'static Value)| {
        let methods = methods.as_object().expect("methods").iter();
        methods.map(|(method, operation)| ((method.to_ascii_uppercase(), path.clone()), operation)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}
