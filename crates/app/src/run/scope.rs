//! What a run collects, from what was asked and what the connector has.

use super::spec::{Purpose, RunSpec};
use crate::dates;
use crate::error::{AppError, nearest};
use gleaner_engine::{GrantPart, RunScope, WallTime};
use gleaner_protocol::{CoveragePolicy, Manifest, Scope, StreamScope, TimeRange};

/// The streams that were named, or all that can be collected; and beside it all that can be.
pub(super) fn of(spec: &RunSpec, manifest: &Manifest, until: Option<WallTime>) -> Result<RunScope, AppError> {
    let collects = |policy| !matches!(policy, CoveragePolicy::Unavailable | CoveragePolicy::Unsupported);
    let all = manifest.streams.iter().filter(|stream| collects(stream.coverage_policy)).map(|stream| &stream.name);
    let granted = all.clone().map(StreamScope::all_of).collect::<Vec<_>>();
    let names = if spec.scope.streams.is_empty() { all.cloned().collect() } else { spec.scope.streams.clone() };
    let until = until.map(dates::rfc3339);
    let asked = asked(spec, manifest, names, until.as_ref())?;
    if spec.purpose == Purpose::Check {
        return Ok(RunScope::ordinary(asked));
    }
    // An owner who names what the manifest says cannot be had gets just that.
    let grant = Scope::new(granted).unwrap_or_else(|_| asked.clone());
    let part = if spec.scope.history { GrantPart::History { until } } else { GrantPart::All };
    Ok(RunScope { grant, asked, part })
}

fn asked(spec: &RunSpec, manifest: &Manifest, names: Vec<String>, until: Option<&String>) -> Result<Scope, AppError> {
    let range = TimeRange { since: spec.scope.since.clone(), until: until.cloned() };
    let mut streams = Vec::new();
    for name in names {
        if manifest.stream(&name).is_none() {
            let near = nearest(&name, manifest.streams.iter().map(|stream| stream.name.as_str()));
            let hint = near
                .map_or_else(|| "the manifest lists the streams".to_owned(), |near| format!("did you mean {near}?"));
            return Err(AppError::usage(format!("the connector has no stream {name:?}"), hint));
        }
        let time_range = (range != TimeRange::default()).then(|| range.clone());
        streams.push(StreamScope { name, time_range, ..StreamScope::default() });
    }
    for resource in &spec.scope.resources {
        let found = resource
            .split_once('=')
            .and_then(|(stream, key)| streams.iter_mut().find(|scope| scope.name == stream).map(|scope| (scope, key)));
        let Some((scope, key)) = found else {
            let hint = "give STREAM=KEY with a stream that is collected";
            return Err(AppError::usage(format!("--resource {resource} names no record"), hint));
        };
        scope.resources.push(key.to_owned());
    }
    Scope::new(streams).map_err(|fault| AppError::usage(fault.to_string(), "name streams with --stream"))
}
