//! What a connector writes, line by line.

/// Why something is missing, as the wire says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) run_cap: bool,
    pub(crate) status: Option<u16>,
}

const fn cause(reason: &'static str, status: Option<u16>) -> Cause {
    Cause { reason, run_cap: false, status }
}

pub(crate) const RUN_CAP: Cause = Cause { reason: "retry_exhausted", run_cap: true, status: None };

/// Every kind that the rules tell apart: pressure, a cap of our own, permanent by reason and by status,
/// a status that pressure overrules, the owner's wish, and plain bad luck.
pub(crate) const CAUSES: [Cause; 9] = [
    cause("rate_limited", Some(429)),
    cause("upstream_pressure", Some(404)),
    RUN_CAP,
    cause("not_found", Some(404)),
    cause("retry_exhausted", Some(410)),
    cause("permanent_forbidden", None),
    cause("user_disabled", None),
    cause("retry_exhausted", Some(500)),
    cause("temporary_unavailable", None),
];

impl Cause {
    fn fields(self) -> String {
        let error = match (self.run_cap, self.status) {
            (true, _) => r#","last_error":{"class":"run_cap_deferred"}"#.to_owned(),
            (false, Some(status)) => format!(r#","last_error":{{"class":"http","http_status":{status}}}"#),
            (false, None) => String::new(),
        };
        format!(r#","reason":"{}"{error}"#, self.reason)
    }

    pub(crate) fn is_nobodys_fault(self) -> bool {
        self.run_cap || self.is_pressure() || matches!(self.reason, "out_of_scope" | "user_disabled")
    }

    pub(crate) fn is_pressure(self) -> bool {
        matches!(self.reason, "rate_limited" | "upstream_pressure")
    }
}

pub(crate) fn record(stream: &str, key: &str, body: &str) -> String {
    format!(
        r#"{{"type":"RECORD","stream":"{stream}","key":"{key}","data":{body},"emitted_at":"2031-01-01T00:00:00Z"}}"#
    )
}

pub(crate) fn delete(stream: &str, key: &str) -> String {
    format!(r#"{{"type":"RECORD","stream":"{stream}","key":"{key}","op":"delete"}}"#)
}

pub(crate) fn state(stream: &str, token: &str, slice: bool) -> String {
    let slice = if slice { r#","slice":true"# } else { "" };
    format!(r#"{{"type":"STATE","stream":"{stream}","cursor":{token}{slice}}}"#)
}

fn gap_line(stream: &str, fields: &str, cause: Cause) -> String {
    let cause = cause.fields();
    format!(r#"{{"type":"DETAIL_GAP","reference_only":true,"status":"pending","stream":"{stream}"{fields}{cause}}}"#)
}

pub(crate) fn gap(stream: &str, parent: Option<&str>, key: &str, cause: Cause) -> String {
    let parent = parent.map(|parent| format!(r#","parent_stream":"{parent}""#)).unwrap_or_default();
    gap_line(stream, &format!(r#"{parent},"record_key":"{key}""#), cause)
}

pub(crate) fn locator(watermark: i64) -> String {
    format!(r#"{{"watermark":{watermark}}}"#)
}

pub(crate) fn backlog(stream: &str, watermark: i64) -> String {
    gap_line(stream, &format!(r#","detail_locator":{}"#, locator(watermark)), RUN_CAP)
}

/// A served gap comes back under its id, a backlog with a new watermark.
pub(crate) fn put_back(stream: &str, id: &str, watermark: Option<i64>, cause: Cause) -> String {
    let place = watermark.map(|watermark| format!(r#","detail_locator":{}"#, locator(watermark))).unwrap_or_default();
    gap_line(stream, &format!(r#","gap_id":"{id}"{place}"#), cause)
}

pub(crate) fn attempted(stream: &str, id: &str, lease: &str) -> String {
    format!(
        r#"{{"type":"DETAIL_GAP_ATTEMPTED","reference_only":true,"stream":"{stream}","gap_id":"{id}","lease_id":"{lease}"}}"#
    )
}

pub(crate) fn recovered(stream: &str, id: &str, lease: &str) -> String {
    format!(
        r#"{{"type":"DETAIL_GAP_RECOVERED","reference_only":true,"stream":"{stream}","gap_id":"{id}","lease_id":"{lease}"}}"#
    )
}

pub(crate) const PAGE: &str = r#"{"type":"DETAIL_GAPS_PAGE_REQUEST","request_id":"p","reference_only":true}"#;

/// The four lists: required, hydrated, gaps, skips.
pub(crate) fn coverage(lists: &[Vec<String>; 4]) -> String {
    let names = ["required_keys", "hydrated_keys", "gap_keys", "optional_skip_keys"];
    let list = |(name, keys): (&str, &Vec<String>)| {
        let keys = keys.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(",");
        format!(r#","{name}":[{keys}]"#)
    };
    let lists = names.into_iter().zip(lists).map(list).collect::<String>();
    format!(r#"{{"type":"DETAIL_COVERAGE","reference_only":true,"stream":"details","state_stream":"trips"{lists}}}"#)
}

pub(crate) fn stream_failed(stream: &str) -> String {
    format!(r#"{{"type":"SKIP_RESULT","stream":"{stream}","reason":"stream_collection_failed"}}"#)
}

pub(crate) fn done(status: &str, records: u64, code: Option<&str>) -> String {
    let error = code.map(|code| format!(r#","error":{{"message":"m","retryable":true,"code":"{code}"}}"#));
    format!(r#"{{"type":"DONE","status":"{status}","records_emitted":{records}{}}}"#, error.unwrap_or_default())
}
