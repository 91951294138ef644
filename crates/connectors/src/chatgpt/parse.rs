//! What the service's answers mean: a list of conversations, one conversation with its messages, a session.
//!
//! Pure. Answers come from outside and change without notice, so what is not understood is left out or `null`, and
//! what cannot do without is a fault that names a place and never quotes the text.

use super::moment;
use gleaner_sdk::FetchError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// One conversation, as the list shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) id: String,
    /// When it was last changed: what the list is ordered by.
    pub(super) updated: String,
    /// The record, as far as the list tells.
    pub(super) record: Value,
}

/// One page of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ListAnswer {
    pub(super) items: Vec<Listed>,
    /// How many there are in all, if it says.
    pub(super) total: Option<u64>,
    /// How many a page has at most, if it says.
    pub(super) limit: Option<u64>,
    /// Items without an id or a time, which nobody could find again.
    pub(super) unreadable: usize,
}

/// One conversation with its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conversation {
    pub(super) record: Value,
    /// By key, the oldest first.
    pub(super) messages: Vec<(String, Value)>,
}

/// Reads one page of the list.
pub(super) fn list(body: &[u8]) -> Result<ListAnswer, FetchError> {
    let answer = object(body, "the list of conversations")?;
    let Some(items) = answer.get("items").and_then(Value::as_array) else {
        return Err(FetchError::unexpected("the list of conversations has no items"));
    };
    let read = items.iter().filter_map(listed).collect::<Vec<_>>();
    let unreadable = items.len() - read.len();
    let number = |name: &str| answer.get(name).and_then(Value::as_u64);
    Ok(ListAnswer { items: read, total: number("total"), limit: number("limit"), unreadable })
}

/// One item. Without an id or a time it has no place in a list.
pub(super) fn listed(item: &Value) -> Option<Listed> {
    let id = item["id"].as_str().filter(|id| is_id(id))?;
    let updated = moment::read(&item["update_time"]).or_else(|| moment::read(&item["create_time"]))?;
    let record = conversation_record(id, item, &Value::Null, updated);
    Some(Listed { id: id.to_owned(), updated: moment::text(updated), record })
}

/// An id goes into the path of an address, so it is held to what ids look like.
pub(super) fn is_id(id: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=128).contains(&id.len()) && id.bytes().all(is_part)
}

/// Reads one conversation. `listed` is what the list said about it, if that is known.
pub(super) fn conversation(id: &str, body: &[u8], listed: &Value) -> Result<Conversation, FetchError> {
    let answer = Value::Object(object(body, "a conversation")?);
    let Some(mapping) = answer["mapping"].as_object() else {
        return Err(FetchError::unexpected("a conversation has no messages where they are expected"));
    };
    let updated = [&answer["update_time"], &listed["update_time"], &answer["create_time"], &listed["create_time"]];
    let updated = updated.into_iter().find_map(moment::read);
    let updated = updated.ok_or_else(|| FetchError::unexpected("a conversation has no time"))?;
    let created = [&answer["create_time"], &listed["create_time"]].into_iter().find_map(moment::read);
    let branch = branch(mapping, answer["current_node"].as_str());
    let mut messages = mapping
        .iter()
        .filter_map(|(node, entry)| message(mapping, node, entry, id, created.unwrap_or(updated), &branch))
        .collect::<Vec<_>>();
    messages.sort_by(|(a_time, a_id, _), (b_time, b_id, _)| (a_time, a_id).cmp(&(b_time, b_id)));
    let shown = branch.iter().filter(|node| has_message(mapping, node)).count();
    let mut record = conversation_record(id, &answer, listed, updated);
    record["current_node"] = answer["current_node"].as_str().map_or(Value::Null, Value::from);
    record["message_count_on_current_branch"] = Value::from(shown);
    Ok(Conversation { record, messages: messages.into_iter().map(|(_, id, record)| (id, record)).collect() })
}

/// The token of a session, if somebody is signed in.
pub(super) fn token(body: &[u8]) -> Option<String> {
    let answer = serde_json::from_slice::<Value>(body).ok()?;
    answer["accessToken"].as_str().filter(|token| !token.is_empty()).map(ToOwned::to_owned)
}

fn object(body: &[u8], what: &str) -> Result<Map<String, Value>, FetchError> {
    // A sign-in page or a notice of somebody on the way is no JSON: nothing is known then, and nothing is concluded.
    serde_json::from_slice(body).map_err(|fault| {
        FetchError::unexpected(format!(
            "{what} is not JSON as expected, at line {}, column {}",
            fault.line(),
            fault.column()
        ))
    })
}

/// The record of a conversation: what its own answer says, and otherwise what the list said.
fn conversation_record(id: &str, answer: &Value, listed: &Value, updated: Timestamp) -> Value {
    let either = |name: &str| [&answer[name], &listed[name]].into_iter().find(|value| !value.is_null());
    let text = |name: &str| either(name).and_then(Value::as_str);
    let flag = |name: &str| either(name).and_then(Value::as_bool);
    let created = either("create_time").and_then(moment::read).unwrap_or(updated);
    json!({
        "id": id,
        "title": text("title"),
        "create_time": moment::text(created),
        "update_time": moment::text(updated),
        "is_archived": flag("is_archived"),
        "is_starred": flag("is_starred"),
        "workspace_id": text("workspace_id"),
        "gizmo_id": text("gizmo_id"),
        "current_node": null,
        "message_count_on_current_branch": null,
    })
}

/// The nodes from the one that is shown up to the root. Links may lead in a ring: each node counts once.
fn branch<'m>(mapping: &'m Map<String, Value>, current: Option<&'m str>) -> BTreeSet<&'m str> {
    let mut seen = BTreeSet::new();
    let mut next = current;
    while let Some(node) = next.filter(|node| mapping.contains_key(*node)) {
        if !seen.insert(node) {
            break;
        }
        next = mapping[node]["parent"].as_str();
    }
    seen
}

fn has_message(mapping: &Map<String, Value>, node: &str) -> bool {
    mapping.get(node).is_some_and(|entry| entry["message"].is_object())
}

/// The key of the message of a node.
fn message_id<'m>(mapping: &'m Map<String, Value>, node: &'m str) -> Option<&'m str> {
    let message = mapping.get(node)?["message"].as_object()?;
    message.get("id").and_then(Value::as_str).filter(|id| !id.is_empty()).or(Some(node)).filter(|id| !id.is_empty())
}

fn message(
    mapping: &Map<String, Value>,
    node: &str,
    entry: &Value,
    conversation: &str,
    otherwise: Timestamp,
    branch: &BTreeSet<&str>,
) -> Option<(Timestamp, String, Value)> {
    let message = entry.get("message").filter(|message| message.is_object())?;
    let id = message_id(mapping, node)?;
    let created = moment::read(&message["create_time"]).unwrap_or(otherwise);
    let children = entry["children"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let children = children.filter_map(|child| message_id(mapping, child)).collect::<Vec<_>>();
    let (content, metadata) = (&message["content"], &message["metadata"]);
    let record = json!({
        "id": id,
        "conversation_id": conversation,
        "parent_id": entry["parent"].as_str().and_then(|parent| message_id(mapping, parent)),
        "children_ids": children,
        "role": message["author"]["role"].as_str().unwrap_or("unknown"),
        "content": text_of(content),
        "content_type": content["content_type"].as_str(),
        "model_slug": metadata["model_slug"].as_str(),
        "create_time": moment::text(created),
        "finish_reason": metadata["finish_details"]["type"].as_str(),
        "citations": metadata["citations"].as_array().cloned().unwrap_or_default(),
        "tool_calls": tool_calls(message),
        "attachment_ids": attachments(content, metadata),
        "on_current_branch": branch.contains(node),
    });
    Some((created, id.to_owned(), record))
}

/// The text of a message: its parts, or the one text that code and tool output have.
fn text_of(content: &Value) -> Option<String> {
    match content["parts"].as_array() {
        Some(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str()));
            let texts = texts.collect::<Vec<_>>();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        None => [&content["text"], &content["result"]].into_iter().find_map(Value::as_str).map(ToOwned::to_owned),
    }
}

/// A message that is not for everyone is a call of a tool.
fn tool_calls(message: &Value) -> Vec<Value> {
    let recipient = message["recipient"].as_str().filter(|recipient| *recipient != "all");
    recipient.map(|recipient| json!({"recipient": recipient})).into_iter().collect()
}

fn attachments(content: &Value, metadata: &Value) -> Vec<String> {
    let named = metadata["attachments"].as_array().into_iter().flatten().filter_map(|one| one["id"].as_str());
    let parts = content["parts"].as_array().into_iter().flatten();
    let shown = parts.filter_map(|part| part["asset_pointer"].as_str());
    named.chain(shown).map(ToOwned::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &[u8] = include_bytes!("fixtures/list.json");
    const CONVERSATION: &[u8] = include_bytes!("fixtures/conversation.json");

    #[test]
    fn a_list_is_read_and_items_without_a_place_are_counted() {
        let answer = list(LIST).unwrap();
        let shown = answer.items.iter().map(|item| (item.id.as_str(), item.updated.as_str())).collect::<Vec<_>>();
        assert_eq!(shown, [("6a-first", "2026-01-25T10:00:00.500000Z"), ("6b-second", "2026-01-24T09:00:00.000000Z"),]);
        assert_eq!((answer.total, answer.unreadable), (Some(5), 3), "no id, no time, and an id that is a path");
        assert_eq!(answer.items[0].record["title"], "Gardening");
        assert_eq!(answer.items[0].record["current_node"], Value::Null);
    }

    #[test]
    fn a_conversation_becomes_its_messages_with_the_branch_that_is_shown() {
        let listed = json!({"is_starred": true, "update_time": "2026-01-25T10:00:00.500000Z"});
        let read = conversation("6a-first", CONVERSATION, &listed).unwrap();
        assert_eq!(read.record["message_count_on_current_branch"], 3);
        assert_eq!((&read.record["current_node"], &read.record["is_starred"]), (&json!("n4"), &json!(true)));
        let ids = read.messages.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>();
        assert_eq!(ids, ["m1", "m5", "m2", "m3", "m4"], "the oldest first; the root has none");
        let of = |id: &str| &read.messages.iter().find(|(known, _)| known == id).unwrap().1;
        assert_eq!(of("m1")["parent_id"], Value::Null, "the root is no message");
        assert_eq!(of("m1")["children_ids"], json!(["m2", "m3"]));
        assert_eq!(
            (of("m2")["on_current_branch"].clone(), of("m3")["on_current_branch"].clone()),
            (json!(false), json!(true))
        );
        assert_eq!(of("m1")["content"], "what grows in\nthe shade?");
        assert_eq!(of("m1")["attachment_ids"], json!(["file-1", "sediment://file-2"]));
        assert_eq!(of("m3")["tool_calls"], json!([{"recipient": "web"}]));
        assert_eq!(
            (of("m3")["content"].clone(), of("m3")["content_type"].clone()),
            (json!("search('ferns')"), json!("code"))
        );
        assert_eq!(
            (of("m4")["finish_reason"].clone(), of("m4")["model_slug"].clone()),
            (json!("stop"), json!("model-1"))
        );
        assert_eq!(of("m5")["create_time"], "2026-01-25T09:00:00.000000Z", "without a time it has the conversation's");
    }

    #[test]
    fn every_record_fits_the_schema_of_its_stream() {
        let manifest = serde_json::from_str::<Value>(super::super::CHATGPT.manifest).unwrap();
        let read = conversation("6a-first", CONVERSATION, &Value::Null).unwrap();
        let listed = list(LIST).unwrap().items.remove(0).record;
        let fields = |stream: usize| manifest["streams"][stream]["schema"]["properties"].as_object().unwrap();
        for (stream, record) in [(0, &read.record), (0, &listed), (1, &read.messages[0].1)] {
            let names = record.as_object().unwrap().keys().collect::<BTreeSet<_>>();
            assert_eq!(names, fields(stream).keys().collect(), "the manifest declares what is sent, and nothing else");
        }
    }

    #[test]
    fn nonsense_is_a_fault_that_quotes_nothing_and_never_panics() {
        for body in ["", "<html>my diary</html>", "[]", "{}", r#"{"items":{}}"#, r#"{"items":"my diary"}"#] {
            let fault = list(body.as_bytes()).unwrap_err();
            assert!(!fault.to_string().contains("diary"), "{fault}");
        }
        for body in ["", "null", "{}", r#"{"mapping":[]}"#, r#"{"mapping":{}}"#] {
            assert!(conversation("a", body.as_bytes(), &Value::Null).is_err(), "{body}");
        }
        let ring = r#"{"create_time":1,"current_node":"a","mapping":{
            "a":{"message":{"id":"a"},"parent":"b","children":["b",7,"gone"]},"b":{"message":{"id":""},"parent":"a","children":null},
            "c":{"message":"text"},"d":7}}"#;
        let read = conversation("ring", ring.as_bytes(), &Value::Null).unwrap();
        assert_eq!(read.record["message_count_on_current_branch"], 2);
        assert_eq!(read.messages.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn an_id_never_leaves_its_place_in_an_address() {
        assert!(is_id("6a1b2c3d-0000-4000-8000-000000000006"));
        for id in ["", "../secret", "a/b", "a?b", "a#b", "a b", "é", "a\n", &"x".repeat(129)] {
            assert!(!is_id(id), "{id:?}");
        }
    }

    #[test]
    fn only_a_session_with_a_token_is_one() {
        assert_eq!(token(br#"{"user":{},"accessToken":"abc"}"#).as_deref(), Some("abc"));
        for body in ["{}", "", "null", r#"{"accessToken":""}"#, r#"{"accessToken":7}"#, "<html>"] {
            assert_eq!(token(body.as_bytes()), None, "{body}");
        }
    }
}
