//! Every option with its key in the file and its variable. What is allowed for how hosts are governed is said by
//! `gleaner_fetch::HOST_SETTINGS`.

use super::{Declared, Of};

/// `command, key, variable, flag, default, example, what it is`.
macro_rules! declare {
    ($($of:ident $key:expr, $variable:literal, $flag:expr, $default:literal, $example:literal, $about:literal;)*) => {
        &[$(Declared {
            key: $key,
            variable: $variable,
            flag: $flag,
            default: $default,
            example: $example,
            about: $about,
            of: Of::$of,
        }),*]
    };
}

pub(super) const OPTIONS: &[Declared] = declare! {
    Every "colour", "GLEANER_COLOUR", "--color", "auto", "\"never\"",
        "Colors the output: auto, always or never.";
    Run "run.interact", "GLEANER_RUN_INTERACT", "--interact", "prompt on a terminal, none otherwise", "\"none\"",
        "What happens when a connector asks something.";
    Run "run.max_requests", "GLEANER_RUN_MAX_REQUESTS", "--max-requests", "no limit", "10000",
        "At most so many requests per run; the rest is for the next one.";
    Run "run.max_duration", "GLEANER_RUN_MAX_DURATION", "--max-duration", "no limit", "\"30m\"",
        "At most so long per run; the rest is for the next one.";
    Serve "serve.max_runs", "GLEANER_SERVE_MAX_RUNS", "--max-runs", "4", "2",
        "Runs of the service that may go on at the same time.";
    Serve "serve.listen", "GLEANER_SERVE_LISTEN", "--listen", "127.0.0.1:8716", "\"off\"",
        "Where the console of the service is reached.";
    Serve "serve.allow_host", "GLEANER_SERVE_ALLOW_HOST", "--allow-host", "none", "\"gleaner.example\"",
        "Names under which the console may be asked besides its own, separated by commas.";
    Serve "serve.tls_certificate", "GLEANER_SERVE_TLS_CERTIFICATE", "--tls-certificate", "none", "\"/etc/ssl/gleaner.pem\"",
        "A certificate in PEM, with those that vouch for it: the console speaks TLS.";
    Serve "serve.tls_key", "GLEANER_SERVE_TLS_KEY", "--tls-key", "none", "\"/etc/ssl/private/gleaner.pem\"",
        "The file of its private key, in PEM.";
    Serve "serve.behind_proxy", "GLEANER_SERVE_BEHIND_PROXY", "--behind-proxy", "no", "\"yes\"",
        "Whether a proxy of yours stands before the console and speaks TLS with browsers.";
    Serve "serve.base_path", "GLEANER_SERVE_BASE_PATH", "--base-path", "/", "\"/gleaner\"",
        "The path below which the console lives.";
    Serve "serve.notify_desktop", "GLEANER_SERVE_NOTIFY_DESKTOP", "--notify-desktop", "yes", "\"no\"",
        "Whether the service tells you on the desktop when you are needed.";
    Serve "serve.notify_command", "GLEANER_SERVE_NOTIFY_COMMAND", "--notify-command", "none", "\"mail -s Gleaner you@example.com <<< $GLEANER_MESSAGE\"",
        "A command that the service runs when you are needed.";
    Serve "serve.notify_webhook", "GLEANER_SERVE_NOTIFY_WEBHOOK", "--notify-webhook", "none", "\"https://example.com/hook\"",
        "An address to which the service posts JSON when you are needed.";
    Proxy "proxy.listen", "GLEANER_PROXY_LISTEN", "--listen", "127.0.0.1:8717", "\"127.0.0.1:8080\"",
        "Where programs on this machine reach the sidecar.";
    Proxy "proxy.ceiling_interval_ms", "GLEANER_PROXY_CEILING_INTERVAL_MS", "--ceiling-interval-ms", "20", "100",
        "The sidecar never sends faster than one request in so many milliseconds.";
    Proxy "proxy.max_in_flight", "GLEANER_PROXY_MAX_IN_FLIGHT", "--max-in-flight", "16", "4",
        "Requests of the sidecar that may be under way at a time.";
    Proxy "proxy.max_waiting", "GLEANER_PROXY_MAX_WAITING", "--max-waiting", "10000", "1000",
        "Requests that may wait in the sidecar for their turn.";
};

/// `name, variable, default, example, what it is`: each setting of how hosts are governed.
macro_rules! declare_fetch {
    ($($name:literal $variable:literal $default:literal $example:literal $about:literal;)*) => {
        declare! {$(
            Fetch concat!("fetch.", $name), $variable, concat!("--set ", $name), $default, $example, $about;
        )*}
    };
}

pub(super) const FETCH_OPTIONS: &[Declared] = declare_fetch! {
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
