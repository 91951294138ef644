//! What a scope leaves of a record: the rules of `scope.rs`, for whoever writes records instead of
//! judging them.
//!
//! Why from the same rules: what a connector lets through and what a runtime accepts must be one thing. A
//! record that was not asked for is left out; of one that was, the fields that were not asked for are. One whose time
//! cannot be read goes out: the runtime stores and counts it.

use crate::scope::{Refusal, ScopeRules, Timed};
use gleaner_protocol::{Manifest, RawJson, RecordKey, Scope};

/// The scope of one run, applied.
#[derive(Debug)]
pub struct ScopeFilter {
    rules: ScopeRules,
}

/// What the scope leaves of a record.
#[derive(Debug, PartialEq, Eq)]
pub enum Selected<'a> {
    /// This.
    Take(RawJson<'a>),
    /// Nothing: it was not asked for.
    Leave,
}

impl ScopeFilter {
    /// The filter of a scope.
    ///
    /// # Errors
    ///
    /// When the scope names a stream that is not there, or a time that cannot be read.
    pub fn new(manifest: &Manifest, scope: &Scope) -> Result<Self, Refusal> {
        Ok(Self { rules: ScopeRules::new(manifest, scope)? })
    }

    /// Whether anything of the stream was asked for.
    #[must_use]
    pub fn contains(&self, stream: &str) -> bool {
        self.rules.contains(stream)
    }

    /// Whether the record was asked for, as far as its key tells.
    #[must_use]
    pub fn wants(&self, stream: &str, key: &RecordKey<'_>) -> bool {
        self.rules.rules(stream).is_some_and(|rules| rules.resources.contains(key))
    }

    /// What of the record was asked for.
    #[must_use]
    pub fn select<'a>(&self, stream: &str, key: &RecordKey<'_>, body: RawJson<'a>) -> Selected<'a> {
        let Some(rules) = self.rules.rules(stream) else { return Selected::Leave };
        if !rules.resources.contains(key) {
            return Selected::Leave;
        }
        if !rules.looks_at_bodies() {
            return Selected::Take(body);
        }
        let Some(members) = body.members() else { return Selected::Take(body) };
        if rules.time_of(&members) == Timed::Outside {
            return Selected::Leave;
        }
        if rules.fields.is_empty() || members.iter().all(|(name, _)| rules.fields.contains(name.as_ref())) {
            return Selected::Take(body);
        }
        let kept = members.iter().filter(|(name, _)| rules.fields.contains(name.as_ref()));
        let texts = kept.map(|(name, value)| format!("{}:{}", serde_json::Value::from(name.as_ref()), value.as_str()));
        let text = format!("{{{}}}", texts.collect::<Vec<_>>().join(","));
        drop(members);
        // Made of pieces that were read, so it can be read. If not, it goes out whole: a runtime that refuses it says so,
        // and one that is left out here would be lost.
        Selected::Take(RawJson::new(text).unwrap_or(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::manifest;
    use gleaner_protocol::{StreamScope, TimeRange};

    fn select(trips: StreamScope, key: &str, body: &str) -> Option<String> {
        let scope = Scope::new(vec![StreamScope { name: "trips".to_owned(), ..trips }]).unwrap();
        let filter = ScopeFilter::new(&manifest(), &scope).unwrap();
        match filter.select("trips", &RecordKey::from(key), RawJson::new(body).unwrap()) {
            Selected::Take(body) => Some(body.as_str().to_owned()),
            Selected::Leave => None,
        }
    }

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_body_is_passed_on_as_it_was_written() {
        assert_eq!(select(StreamScope::default(), "t", r#"{ "km" : 1e400 }"#), text(r#"{ "km" : 1e400 }"#));
    }

    #[test]
    fn what_was_not_asked_for_is_left_out() {
        let only = || StreamScope { resources: vec!["t1".to_owned()], ..StreamScope::default() };
        assert_eq!((select(only(), "t1", "{}"), select(only(), "t2", "{}")), (text("{}"), None));
        let until = || Some(TimeRange { since: None, until: Some("2031-01-01".to_owned()) });
        let range = || StreamScope { time_range: until(), ..StreamScope::default() };
        assert_eq!(select(range(), "t", r#"{"at":"2030-12-31"}"#), text(r#"{"at":"2030-12-31"}"#));
        assert_eq!(select(range(), "t", r#"{"at":"2031-01-01"}"#), None);
        assert_eq!(select(range(), "t", r#"{"at":2000000000}"#), None);
        assert_eq!(select(range(), "t", r#"{"at":"soon"}"#), text(r#"{"at":"soon"}"#));
    }

    #[test]
    fn fields_that_were_not_asked_for_are_left_out_and_required_ones_stay() {
        let fields = || StreamScope { fields: vec!["km".to_owned()], ..StreamScope::default() };
        assert_eq!(select(fields(), "t", r#"{"id":1,"mail":2,"km":1.50}"#), text(r#"{"id":1,"km":1.50}"#));
        assert_eq!(select(fields(), "t", r#"{"\u006bm":1}"#), text(r#"{"\u006bm":1}"#));
    }
}
