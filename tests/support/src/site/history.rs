//! The owner's conversations, newest first, as the service shows them in lists and one by one.

use serde_json::{Value, json};

/// 2026-01-01T00:00:00Z, when the newest conversation was last changed.
const NEWEST: i64 = 1_767_225_600;
/// A conversation is a minute older than the one before it.
const STEP: i64 = 60;

/// One conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversation {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// When it was last changed, in seconds since 1970.
    pub updated: i64,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// In any order: the site shows the newest first.
    pub conversations: Vec<Conversation>,
}

impl History {
    /// So many, a minute apart.
    #[must_use]
    pub fn of(count: usize) -> Self {
        let one = |number: usize| Conversation {
            id: id(number),
            title: format!("conversation {number}"),
            updated: NEWEST - STEP * i64::try_from(number).unwrap_or(i64::MAX / STEP),
        };
        Self { conversations: (0..count).map(one).collect() }
    }

    pub(crate) fn page(&self, offset: usize, limit: usize) -> Value {
        let mut all = self.conversations.iter().collect::<Vec<_>>();
        all.sort_by_key(|conversation| (std::cmp::Reverse(conversation.updated), conversation.id.clone()));
        let items = all.iter().skip(offset).take(limit).map(|conversation| {
            json!({
                "id": conversation.id, "title": conversation.title,
                "create_time": time(conversation.updated - 5), "update_time": time(conversation.updated),
                "is_archived": false, "is_starred": null, "workspace_id": null, "gizmo_id": null,
            })
        });
        json!({"items": items.collect::<Vec<_>>(), "total": all.len(), "limit": limit, "offset": offset})
    }

    /// One question, and two answers of which the second is shown.
    pub(crate) fn detail(&self, id: &str) -> Option<Value> {
        let conversation = self.conversations.iter().find(|conversation| conversation.id == id)?;
        let node = |name: &str| format!("{name}-{id}");
        let message = |name: &str, role: &str, text: String, after: i64| {
            json!({
                "id": node(name), "author": {"role": role}, "create_time": conversation.updated as f64 - 5.0 + after as f64,
                "content": {"content_type": "text", "parts": [text]}, "metadata": {"model_slug": "model-1"},
            })
        };
        let question = message("q", "user", format!("what about {}?", conversation.title), 0);
        let mapping = json!({
            "root": {"id": "root", "message": null, "parent": null, "children": [node("q")]},
            node("q"): {"id": node("q"), "message": question, "parent": "root", "children": [node("a"), node("b")]},
            node("a"): {"id": node("a"), "message": message("a", "assistant", "no".to_owned(), 1), "parent": node("q"), "children": []},
            node("b"): {"id": node("b"), "message": message("b", "assistant", "yes".to_owned(), 2), "parent": node("q"), "children": []},
        });
        Some(json!({
            "conversation_id": id, "title": conversation.title, "create_time": conversation.updated as f64 - 5.0,
            "update_time": conversation.updated as f64, "current_node": node("b"), "mapping": mapping,
        }))
    }
}

fn id(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

/// RFC 3339 in UTC with six digits of a second, as the service writes it.
fn time(seconds: i64) -> String {
    format!("{:.6}", jiff::Timestamp::from_second(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_newest_first_and_move_when_one_is_deleted() {
        let mut history = History::of(5);
        let ids = |history: &History, offset| {
            let page = history.page(offset, 2);
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| item["title"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(ids(&history, 2), ["conversation 2", "conversation 3"]);
        history.conversations.remove(0);
        assert_eq!(ids(&history, 2), ["conversation 3", "conversation 4"]);
        assert_eq!(history.page(0, 2)["items"][0]["update_time"], "2025-12-31T23:59:00.000000Z");
    }
}
