//! How a connection is doing, on the wire.

use crate::date;
use gleaner_engine::{Finding, Health};
use gleaner_store::Evidence;
use serde::Serialize;

/// A grade, and everything worth saying.
#[derive(Debug, Serialize)]
pub(crate) struct HealthView {
    grade: &'static str,
    findings: Vec<FindingView>,
}

#[derive(Debug, Serialize)]
struct FindingView {
    code: &'static str,
    sentence: String,
}

impl HealthView {
    pub(crate) fn of(evidence: &Evidence, health: &Health) -> Self {
        let finding = |finding: &Finding| FindingView {
            code: finding.code(),
            sentence: evidence.sentence(finding, date::rfc3339),
        };
        Self { grade: health.grade.code(), findings: health.findings.iter().map(finding).collect() }
    }
}
