//! When a connection runs, and what it does next.

use crate::actions::{NextStep, ScheduleWish};
use crate::date;
use serde::{Deserialize, Serialize};

/// What the owner set; what is absent is as the manifest recommends.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleView {
    #[serde(default)]
    mode: Option<String>,
    #[serde(default)]
    every_seconds: Option<u64>,
    #[serde(default)]
    cron: Option<String>,
    #[serde(default)]
    quiet: Option<String>,
    #[serde(default)]
    zone: Option<String>,
}

impl From<ScheduleWish> for ScheduleView {
    fn from(wish: ScheduleWish) -> Self {
        let ScheduleWish { mode, every_seconds, cron, quiet, zone } = wish;
        Self { mode, every_seconds, cron, quiet, zone }
    }
}

impl From<ScheduleView> for ScheduleWish {
    fn from(view: ScheduleView) -> Self {
        let ScheduleView { mode, every_seconds, cron, quiet, zone } = view;
        Self { mode, every_seconds, cron, quiet, zone }
    }
}

/// What comes next, and why.
#[derive(Debug, Serialize)]
pub(crate) struct NextView {
    at: Option<String>,
    kind: Option<String>,
    code: String,
    sentence: String,
}

impl From<NextStep> for NextView {
    fn from(next: NextStep) -> Self {
        let NextStep { at, kind, code, sentence } = next;
        Self { at: at.map(date::rfc3339), kind, code, sentence }
    }
}
