//! How `gleaner fetch` governs hosts: a key of the file and a variable for each of its settings. What is allowed is said
//! by `gleaner_fetch::HOST_SETTINGS`.

use super::{Declared, Of};

/// `name, variable, default, example, what it is`.
macro_rules! declare {
    ($($name:literal $variable:literal $default:literal $example:literal $about:literal;)*) => {
        [$(Declared {
            key: concat!("fetch.", $name),
            variable: $variable,
            flag: concat!("--set ", $name),
            default: $default,
            example: $example,
            about: $about,
            of: Of::Fetch,
        }),*]
    };
}

pub(super) const FETCH_OPTIONS: [Declared; 32] = declare! {
    "strategy" "GLEANER_FETCH_STRATEGY" "gleaner" "\"aimd\"" "How a host's pace is found: gleaner, aimd or fixed.";
    "enabled" "GLEANER_FETCH_ENABLED" "true" "false" "Whether hosts are governed; false is for hosts of your own.";
    "initial_per_s" "GLEANER_FETCH_INITIAL_PER_S" "1" "0.5" "Requests per second to a host of which nothing is known.";
    "min_per_s" "GLEANER_FETCH_MIN_PER_S" "0.000278" "0.01" "No host is asked more slowly.";
    "max_per_s" "GLEANER_FETCH_MAX_PER_S" "50" "10" "No host is asked faster.";
    "burst" "GLEANER_FETCH_BURST" "1" "5" "Requests at once after a pause, with aimd and fixed.";
    "max_in_flight" "GLEANER_FETCH_MAX_IN_FLIGHT" "6" "2" "Requests to one host that may be under way at a time.";
    "is_careful" "GLEANER_FETCH_IS_CAREFUL" "false" "true" "Whether refusals are held against you; a limit is then found with one.";
    "longest_wait" "GLEANER_FETCH_LONGEST_WAIT" "none" "\"10m\"" "A request that would wait longer is put off.";
    "failure_percent" "GLEANER_FETCH_FAILURE_PERCENT" "50" "80" "Percentage of failures that opens a host's circuit.";
    "samples_min" "GLEANER_FETCH_SAMPLES_MIN" "5" "20" "Answers without which that share means nothing.";
    "failures_in_row" "GLEANER_FETCH_FAILURES_IN_ROW" "5" "10" "Failures in a row that open the circuit; 0 is off.";
    "open_for" "GLEANER_FETCH_OPEN_FOR" "1m" "\"5m\"" "How long a circuit stays open at first.";
    "probes" "GLEANER_FETCH_PROBES" "1" "2" "Probes under way while a circuit is half-open.";
    "successes_to_close" "GLEANER_FETCH_SUCCESSES_TO_CLOSE" "2" "3" "Probes that must succeed before it closes.";
    "retry_base" "GLEANER_FETCH_RETRY_BASE" "1s" "\"500ms\"" "The longest first pause before a retry.";
    "retry_cap" "GLEANER_FETCH_RETRY_CAP" "1m" "\"30s\"" "The longest pause before a retry.";
    "attempts" "GLEANER_FETCH_ATTEMPTS" "4" "2" "Requests for one URL, the first included.";
    "retry_budget" "GLEANER_FETCH_RETRY_BUDGET" "5" "\"off\"" "Successes of a host that pay for one retry, or off.";
    "stats_window" "GLEANER_FETCH_STATS_WINDOW" "30s" "\"1m\"" "Time over which failures are counted.";
    "stats_bucket" "GLEANER_FETCH_STATS_BUCKET" "2s" "\"5s\"" "Steps in which that window moves; at most 15.";
    "forget_after" "GLEANER_FETCH_FORGET_AFTER" "1h" "\"2h\"" "A host that was not asked for so long is forgotten.";
    "shards" "GLEANER_FETCH_SHARDS" "16" "64" "Parts of the table of hosts, each with a lock.";
    "keys_max" "GLEANER_FETCH_KEYS_MAX" "1000000" "10000" "Hosts that are known at a time.";
    "throttled_after" "GLEANER_FETCH_THROTTLED_AFTER" "100ms" "\"1s\"" "A longer wait is counted as throttled.";
    "snapshot_keys_max" "GLEANER_FETCH_SNAPSHOT_KEYS_MAX" "100" "20" "Hosts that the status and the metrics show.";
    "groups" "GLEANER_FETCH_GROUPS" "none" "\"example.com\"" "Domains that share one pace with their subdomains.";
    "statuses" "GLEANER_FETCH_STATUSES" "none" "\"a.example +404 -500\"" "Statuses that are worth a retry, or not.";
    "increase_per_s" "GLEANER_FETCH_INCREASE_PER_S" "0.1" "0.5" "With aimd: added to the rate by a success.";
    "decrease_factor" "GLEANER_FETCH_DECREASE_FACTOR" "0.5" "0.8" "With aimd: the rate is multiplied by it on overload.";
    "latency_target" "GLEANER_FETCH_LATENCY_TARGET" "500ms" "\"2s\"" "With aimd: an answer within this time is in time.";
    "late_factor" "GLEANER_FETCH_LATE_FACTOR" "2" "3" "With aimd: an answer is late beyond so many times that.";
};

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_fetch::HOST_SETTINGS;
    use gleaner_http::governor::keyed::RegistryConfig;

    #[test]
    fn every_setting_is_there_with_its_default() {
        let declared = FETCH_OPTIONS.iter().map(|one| (one.key, one.default.to_owned())).collect::<Vec<_>>();
        let text = |setting: &gleaner_fetch::HostSetting| setting.text(&RegistryConfig::default());
        let real = HOST_SETTINGS.iter().map(|setting| (format!("fetch.{}", setting.name), text(setting)));
        let real = real.collect::<Vec<_>>();
        assert_eq!(declared, real.iter().map(|(key, text)| (key.as_str(), text.clone())).collect::<Vec<_>>());
    }
}
