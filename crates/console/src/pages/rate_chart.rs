//! The points of the chart of a pace, from what connectors reported during the last runs.
//!
//! Rate and ceiling are as they were reported. A wait is the time between two requests at that moment. A back-off is a
//! report whose last back-off is another one than the report before it had. Between two runs the lines break: nobody
//! asked anything then, which is no rate of zero.

use crate::problem::Problem;
use crate::server::extract::UrlPath;
use gleaner_engine::WallTime;
use gleaner_protocol::{Backoff, CollectionRate, ConnectorMessage};
use gleaner_store::Reader;
use serde::Serialize;

/// Runs that are looked at.
const RUNS_MAX: usize = 5;
/// Reports that are looked at, over all of them.
const REPORTS_MAX: usize = 1000;
/// Points that are drawn: more than a screen has room for.
const POINTS_MAX: usize = 600;
const MS_PER_MIN: f64 = 60_000.0;

/// Columns, as the chart wants them.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Points {
    /// Seconds since 1970.
    at: Vec<f64>,
    /// Requests a minute.
    rate: Vec<Option<f64>>,
    ceiling: Vec<Option<f64>>,
    /// Where it slowed down: to how many requests a minute.
    backoff: Vec<Option<f64>>,
    /// Seconds between two requests.
    wait: Vec<Option<f64>>,
}

/// One report.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub(super) at: WallTime,
    rate: CollectionRate,
    /// It slowed down since the one before.
    pub(super) slowed: Option<Backoff>,
    /// The first of its run.
    is_first: bool,
}

pub(super) fn points(reader: &Reader, UrlPath(name): UrlPath<String>) -> Result<Points, Problem> {
    Ok(Points::of(&reports(reader, &name)?))
}

/// The last reports that say that it slowed down, the newest first.
pub(super) fn backoffs(reader: &Reader, name: &str, most: usize) -> Result<Vec<Report>, Problem> {
    let reports = reports(reader, name)?.into_iter().rev();
    Ok(reports.filter(|report| report.slowed.is_some()).take(most).collect())
}

/// The reports of the last runs, the oldest first.
fn reports(reader: &Reader, name: &str) -> Result<Vec<Report>, Problem> {
    let mut newest_first = Vec::new();
    for run in reader.runs(name, RUNS_MAX)? {
        let room = REPORTS_MAX.saturating_sub(newest_first.len());
        if room == 0 {
            break;
        }
        let events = reader.last_events(&run.run_id, Some("progress"), None, room)?;
        let reported = events.iter().filter_map(|event| {
            let Ok(ConnectorMessage::Progress(progress)) = ConnectorMessage::decode(event.message.as_bytes()) else {
                return None;
            };
            let rate = progress.collection_rate.valid()?.clone();
            Some(Report { at: event.at, rate, slowed: None, is_first: false })
        });
        newest_first.extend(reported);
        if let Some(oldest) = newest_first.last_mut() {
            oldest.is_first = true;
        }
    }
    newest_first.reverse();
    mark_backoffs(&mut newest_first);
    Ok(newest_first)
}

/// What the oldest report says of the time before it is not known to have happened in what is shown.
fn mark_backoffs(reports: &mut [Report]) {
    let mut before = reports.first().and_then(|report| report.rate.last_backoff);
    for report in reports {
        if report.rate.last_backoff != before {
            report.slowed = report.rate.last_backoff;
        }
        before = report.rate.last_backoff;
    }
}

impl Points {
    fn of(reports: &[Report]) -> Self {
        let mut points = Self::default();
        let every = reports.len().div_ceil(POINTS_MAX).max(1);
        for (nth, report) in reports.iter().enumerate() {
            let at = report.at.as_unix_millis() as f64 / 1000.0;
            if report.is_first && nth > 0 {
                points.push(at - 0.001, None, None);
            }
            // Thinned out evenly; a back-off, a run's first report and the newest one are always there.
            if nth % every == 0 || report.slowed.is_some() || report.is_first || nth + 1 == reports.len() {
                points.push(at, Some(&report.rate), report.slowed);
            }
        }
        points
    }

    fn push(&mut self, at: f64, rate: Option<&CollectionRate>, slowed: Option<Backoff>) {
        // The chart wants times that rise.
        let at = self.at.last().map_or(at, |last| at.max(last + 0.001));
        self.at.push(at);
        self.rate.push(rate.map(|rate| rate.effective_rate_per_min));
        self.ceiling.push(rate.map(|rate| rate.ceiling_rate_per_min));
        self.backoff.push(slowed.map(|backoff| MS_PER_MIN / backoff.at_interval_ms));
        self.wait.push(rate.map(|rate| rate.current_interval_ms / 1000.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_protocol::BackoffReason;

    fn report(at: u64, interval: f64, backoff: Option<f64>, is_first: bool) -> Report {
        let backoff = backoff.map(|at_interval_ms| Backoff { at_interval_ms, reason: BackoffReason::Throttle });
        let rate = CollectionRate::new(interval, 100.0, backoff).unwrap();
        Report { at: WallTime::from_unix_millis(at * 1000), rate, slowed: None, is_first }
    }

    #[test]
    fn a_back_off_is_shown_once_and_where_it_happened() {
        let mut reports = [(1, None), (2, Some(400.0)), (3, Some(400.0)), (4, Some(900.0))]
            .map(|(at, b)| report(at, 500.0, b, false));
        mark_backoffs(&mut reports);
        let slowed = Points::of(&reports).backoff;
        assert_eq!(slowed, [None, Some(150.0), None, Some(MS_PER_MIN / 900.0)]);
    }

    #[test]
    fn what_was_before_the_first_report_is_not_shown_as_happening_there() {
        let mut reports = [report(1, 500.0, Some(400.0), true), report(2, 500.0, Some(400.0), false)];
        mark_backoffs(&mut reports);
        assert_eq!(Points::of(&reports).backoff, [None, None]);
    }

    #[test]
    fn between_runs_there_is_no_rate_and_no_zero() {
        let points = Points::of(&[report(1, 500.0, None, true), report(9, 250.0, None, true)]);
        assert_eq!(points.rate, [Some(120.0), None, Some(240.0)]);
        assert_eq!(points.wait, [Some(0.5), None, Some(0.25)]);
        assert!(points.at.is_sorted());
    }

    #[test]
    fn a_great_many_reports_are_thinned_out_and_no_back_off_is_lost() {
        let mut reports =
            (0..2000).map(|at| report(at, 500.0, (at > 777).then_some(800.0), at == 0)).collect::<Vec<_>>();
        mark_backoffs(&mut reports);
        let points = Points::of(&reports);
        assert!(points.at.len() <= POINTS_MAX + 3, "{}", points.at.len());
        assert_eq!(points.backoff.iter().flatten().count(), 1);
        assert!(Points::of(&[]).at.is_empty());
    }
}
