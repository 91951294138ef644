//! What runs ask the owner: codes, passwords, steps to do by hand, each with the time that is left.
//!
//! An answer goes from the form to the run and nowhere else: it is not stored, not logged, not shown again, and in no
//! error.

use super::address;
use super::change::fields;
use super::escape::short;
use super::frame::{Frame, Part};
use super::screenshot::is_named;
use crate::problem::Problem;
use crate::server::extract::{UrlPath, UrlQuery};
use askama::Template;
use gleaner_app::{App, Look, Reply, is_collected, parse_manifest, usual_fields};
use gleaner_protocol::{Assistance, InteractionKind, RawJson};
use gleaner_store::{OpenQuestion, Reader};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Fields that a form may have: more than anybody would fill in.
const FIELDS_MAX: usize = 20;
/// Before the name of a field, so that it cannot be one of ours.
const FIELD: &str = "field.";

#[derive(Template)]
#[template(path = "inbox.html")]
pub(super) struct InboxPage {
    frame: Frame,
    questions: Vec<QuestionView>,
    /// What is asked for and blocks nothing, by connection.
    help: Vec<(String, Assistance)>,
}

struct QuestionView {
    question: OpenQuestion,
    kind: &'static str,
    fields: Vec<FieldView>,
    /// Whether there is a picture of what the page looked like that waits for the owner.
    has_picture: bool,
}

struct FieldView {
    name: String,
    label: String,
    hint: String,
    is_secret: bool,
    is_code: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InboxWanted {
    done: Option<String>,
}

pub(super) fn page(reader: &Reader, UrlQuery(wanted): UrlQuery<InboxWanted>) -> Result<InboxPage, Problem> {
    let look = Look::new(reader)?;
    let frame = Frame::new("Inbox", Part::Inbox, "/inbox".to_owned(), &look).after(wanted.done.as_deref());
    let (now, questions) = (look.now, look.waiting.into_iter());
    let questions = questions.map(|question| QuestionView::of(reader, question)).collect::<Result<_, _>>()?;
    let mut help = Vec::new();
    for connection in reader.connections()?.into_iter().filter(|known| is_collected(known.state)) {
        let asked = reader.open_help(&connection.name, now)?;
        help.extend(asked.into_iter().map(|help| (connection.name.clone(), help)));
    }
    Ok(InboxPage { frame, questions, help })
}

impl QuestionView {
    fn of(reader: &Reader, question: OpenQuestion) -> Result<Self, Problem> {
        let kind = InteractionKind::from_code(&question.kind).unwrap_or(InteractionKind::ManualAction);
        let names = names(reader, &question, kind)?;
        Ok(Self {
            kind: match kind {
                InteractionKind::Otp => "a code",
                InteractionKind::Credentials => "a sign-in",
                InteractionKind::MissingCredentials => "credentials",
                InteractionKind::ManualAction => "something to do",
            },
            has_picture: is_named(&question),
            fields: names.into_iter().map(|(name, schema)| FieldView::of(&name, &schema, kind)).collect(),
            question,
        })
    }
}

/// What is asked for: the properties of the schema, or what questions of this kind need. Nothing means that something
/// is to be done, and no value is wanted.
fn names(reader: &Reader, question: &OpenQuestion, kind: InteractionKind) -> Result<Vec<(String, Value)>, Problem> {
    let schema = question.schema.as_deref().and_then(|schema| serde_json::from_str::<Value>(schema).ok());
    let properties = schema.as_ref().and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let named = properties.into_iter().flatten().take(FIELDS_MAX);
    let named = named.map(|(name, schema)| (name.clone(), schema.clone())).collect::<Vec<_>>();
    if !named.is_empty() {
        return Ok(named);
    }
    let manifest = parse_manifest(&reader.manifest_text(&question.connection)?).ok();
    // Of several names for one thing the first is asked for.
    let required = manifest.and_then(|manifest| manifest.auth).map(|auth| auth.required).unwrap_or_default();
    let variables = required.into_iter().filter_map(|names| names.into_iter().next()).collect();
    Ok(usual_fields(kind, variables).into_iter().take(FIELDS_MAX).map(|name| (name, Value::Null)).collect())
}

impl FieldView {
    fn of(name: &str, schema: &Value, kind: InteractionKind) -> Self {
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        let title = text("title");
        let plain = ["user", "email", "account", "name", "phone", "url", "host"];
        let lower = name.to_lowercase();
        let is_code = kind == InteractionKind::Otp;
        Self {
            name: name.to_owned(),
            label: short(if title.is_empty() { name } else { title }, 80),
            hint: short(text("description"), 300),
            // What is not clearly plain is hidden.
            is_secret: !is_code && (text("format") == "password" || !plain.iter().any(|word| lower.contains(word))),
            is_code,
        }
    }
}

/// Takes an answer, or that there will be none, and hands it on.
pub(super) fn answer(app: &App, UrlPath(question): UrlPath<i64>, form: &[u8]) -> Result<String, Problem> {
    let (answer, done) = read(&fields(form))?;
    app.answer(question, answer)?;
    Ok(format!("/inbox?done={done}"))
}

fn read(fields: &BTreeMap<String, String>) -> Result<(Reply, &'static str), Problem> {
    if fields.contains_key("decline") {
        return Ok((Reply::Declined, "declined"));
    }
    let given = fields.iter().filter_map(|(name, value)| name.strip_prefix(FIELD).map(|name| (name, value)));
    let mut answer = given
        .take(FIELDS_MAX)
        .map(|(name, value)| (name.to_owned(), Value::from(value.as_str())))
        .collect::<Map<_, _>>();
    if answer.values().any(|value| value == "") {
        return Err(Problem::bad_request("a field was left empty", "go back and fill it in, or decline the question"));
    }
    if answer.is_empty() {
        answer.insert("done".to_owned(), Value::Bool(true));
    }
    let raw = RawJson::new(Value::Object(answer).to_string()).ok();
    let raw = raw.ok_or_else(|| Problem::bad_request("the answer cannot be handed on", "type it again"))?;
    Ok((Reply::Given(raw), "answered"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(form: &str) -> String {
        match read(&fields(form.as_bytes())) {
            Ok((Reply::Given(raw), _)) => raw.as_str().to_owned(),
            Ok((Reply::Declined, _)) => "declined".to_owned(),
            Err(_) => "refused".to_owned(),
        }
    }

    #[test]
    fn an_answer_is_an_object_of_what_was_typed_and_of_nothing_else() {
        assert_eq!(given("field.code=12+34&other=x"), r#"{"code":"12 34"}"#);
        assert_eq!(given("field.a=%22%7D&field.b=%00"), r#"{"a":"\"}","b":"\u0000"}"#);
        assert_eq!(given(""), r#"{"done":true}"#);
        assert_eq!(given("field.code=1&decline=yes"), "declined");
        assert_eq!(given("field.code="), "refused");
    }
}
