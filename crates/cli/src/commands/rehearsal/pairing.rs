//! Which exchange something came out of.
//!
//! Nobody tells: the wire and the recording are two streams, and a connector may fetch several at a time. But what came
//! out of an answer has its values, and what was asked for by its key has the key in its URL. So a record is put beside
//! the answer that has most of its values, and what has none beside the one whose URL has its key; of two, the later.

use gleaner_app::Item;
use gleaner_sdk::exchanges::{Exchange, Outcome};
use serde_json::Value;
use std::collections::BTreeSet;

/// Values of one record that are looked for. A hundred tell no more.
const VALUES_MAX: usize = 32;

/// For each item the number of its exchange, if there is one.
pub(super) fn pair(items: &[Item], exchanges: &[Exchange]) -> Vec<Option<usize>> {
    let answers = exchanges.iter().map(Answer::new).collect::<Vec<_>>();
    let best = |item: &Item| {
        let values = values_of(&item.data);
        let scored = answers.iter().enumerate().map(|(number, answer)| (answer.score(item, &values), number));
        scored.filter(|(score, _)| *score > (0, 0)).max().map(|(_, number)| number)
    };
    items.iter().map(best).collect()
}

/// What is known about an exchange.
struct Answer<'e> {
    url_parts: BTreeSet<&'e str>,
    values: BTreeSet<String>,
    /// The body of one that is no JSON.
    text: Option<String>,
}

impl<'e> Answer<'e> {
    fn new(exchange: &'e Exchange) -> Self {
        let url_parts = exchange.url.split(['/', '?', '&', '=', '#']).filter(|part| !part.is_empty()).collect();
        let mut answer = Self { url_parts, values: BTreeSet::new(), text: None };
        if let Outcome::Answered { message, .. } = &exchange.outcome {
            match serde_json::from_slice::<Value>(&message.body) {
                Ok(body) => scalars(&body, &mut |value| answer.values.extend([value])),
                Err(_) => answer.text = Some(String::from_utf8_lossy(&message.body).into_owned()),
            }
        }
        answer
    }

    /// The larger, the likelier.
    fn score(&self, item: &Item, values: &[String]) -> (usize, usize) {
        let has = |value: &String| match &self.text {
            Some(text) => text.contains(value.as_str()),
            None => self.values.contains(value),
        };
        let found = values.iter().filter(|value| has(value)).count();
        let key = usize::from(!item.key.is_empty() && has(&item.key));
        let in_url = usize::from(self.url_parts.contains(item.key.as_str()));
        if values.is_empty() { (in_url, key) } else { (found + key, in_url) }
    }
}

/// The values of a record, each once.
fn values_of(data: &str) -> Vec<String> {
    let mut values = BTreeSet::new();
    if let Ok(data) = serde_json::from_str::<Value>(data) {
        scalars(&data, &mut |value| {
            if values.len() < VALUES_MAX {
                values.insert(value);
            }
        });
    }
    values.into_iter().collect()
}

/// Texts and numbers, as texts. What is empty or a yes tells nothing.
fn scalars(value: &Value, take: &mut impl FnMut(String)) {
    match value {
        Value::String(text) if !text.is_empty() => take(text.clone()),
        Value::Number(number) => take(number.to_string()),
        Value::Array(values) => values.iter().for_each(|value| scalars(value, take)),
        Value::Object(fields) => fields.values().for_each(|value| scalars(value, take)),
        Value::String(_) | Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_app::ItemKind;
    use gleaner_sdk::exchanges::Recording;

    fn exchanges(answers: &[(&str, &str)]) -> Vec<Exchange> {
        let line = |(url, body): &(&str, &str)| {
            let request = serde_json::json!({"method": "GET", "url": url});
            format!("{}\n", serde_json::json!({"request": request, "response": {"status": 200, "body": body}}))
        };
        let lines = answers.iter().map(line).collect::<String>();
        Recording::parse(&format!("{{\"gleaner_exchanges\": 1}}\n{lines}")).unwrap().exchanges
    }

    fn item(key: &str, data: &str) -> Item {
        Item { stream: "notes".to_owned(), key: key.to_owned(), data: data.to_owned(), kind: ItemKind::Record }
    }

    #[test]
    fn a_record_is_put_beside_the_answer_that_has_most_of_its_values() {
        let exchanges = exchanges(&[
            ("https://a/notes", r#"{"notes":[{"id":"n1","t":"then","h":"First"},{"id":"n2","t":"now","h":"Second"}]}"#),
            ("https://a/notes/n1", r#"{"id":"n1","t":"then","b":"Once"}"#),
            ("https://a/notes/n2", r#"{"id":"n2","t":"now","b":"Twice"}"#),
            ("https://a/page", "<html>n7 and more</html>"),
            ("https://a/notes/n9", ""),
        ]);
        let items = [
            item("n1", r#"{"id":"n1","at":"then","title":"First","n":true}"#),
            item("n1", r#"{"id":"n1","at":"then","text":"Once"}"#),
            item("n2", r#"{"id":"n2","at":"now","text":"Twice"}"#),
            item("n7", r#"{"id":"n7"}"#),
            item("n9", ""),
            item("n8", r#"{"id":"n8"}"#),
        ];
        assert_eq!(pair(&items, &exchanges), [Some(0), Some(1), Some(2), Some(3), Some(4), None]);
    }

    #[test]
    fn without_exchanges_nothing_is_paired() {
        assert_eq!(pair(&[item("n1", "{}")], &[]), [None]);
    }
}
