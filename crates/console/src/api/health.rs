//! How a connection is doing, on the wire.

use crate::date;
use gleaner_engine::{Finding, Health};
use gleaner_store::Evidence;

json_object! {
    /// A grade, and everything worth saying.
    pub(crate) struct HealthView(evidence: &Evidence, health: &Health) {} => {
        grade: &'static str = health.grade.code(),
        findings: Vec<FindingView> = health.findings.iter().map(|finding| FindingView::of(evidence, finding)).collect(),
    }
}

json_object! {
    struct FindingView(evidence: &Evidence, finding: &Finding) {} => {
        code: &'static str = finding.code(),
        sentence: String = evidence.sentence(finding, date::rfc3339),
    }
}
