//! The options of `gleaner fetch`.

use crate::args::collect::HomeArgs;
use clap::{Args, value_parser};
use gleaner_fetch::Assignment;
use std::path::PathBuf;

pub(crate) const FETCH_HELP: &str = "Results:
  Each line of standard output, and of DIR/results.jsonl at the end, is a JSON object:
  url, final_url, status, attempts, waited_ms, latency_ms, bytes, sha256, path, error.
  Bodies are below DIR/bodies, named by their SHA-256.
Resuming:
  Run the same command to resume an interrupted fetch. After a complete one it fetches
  all URLs again; an unchanged page (304) keeps its body.

Exit codes:
    0  complete: every URL has a body
    1  failed: the folder cannot be written, for example
    2  usage: an option or the list is wrong
    3  finished, but some URLs have no body; their lines say why
   11  another fetch uses the folder
  130  interrupted; run the same command to resume";

#[derive(Args, Debug)]
pub(crate) struct FetchArgs {
    /// The URLs, one per line; - reads them from standard input.
    #[arg(value_name = "FILE|-")]
    pub(crate) list: PathBuf,
    /// The folder for the results; created if needed.
    #[arg(long, value_name = "DIR", default_value = "fetched")]
    pub(crate) out: PathBuf,
    /// Ignores robots.txt. For your own hosts.
    #[arg(long)]
    pub(crate) no_robots: bool,
    /// The largest body, with K, M or G for powers of 1024 [default: 64M].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) max_body: Option<u64>,
    /// Requests in flight, to all hosts together [default: 256].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=4096))]
    pub(crate) concurrency: Option<u16>,
    /// The highest request rate per host, per second [default: 50].
    #[arg(long, value_name = "R", value_parser = rate)]
    pub(crate) max_rate: Option<f64>,
    /// A domain that shares one rate limit with its subdomains, repeatable.
    #[arg(long = "group", value_name = "DOMAIN")]
    pub(crate) groups: Vec<String>,
    /// The longest Retry-After that is waited for [default: 300].
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..=86_400))]
    pub(crate) max_wait: Option<u64>,
    /// The User-Agent [default: gleaner/VERSION]. robots.txt is matched with its first word.
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_agent: Option<String>,
    /// Follows redirects from public addresses to private ones.
    #[arg(long)]
    pub(crate) private_redirects: bool,
    /// Sets a parameter of the governor, repeatable; the section [fetch] of config.toml has the same names.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) settings: Vec<Assignment>,
    /// Writes the state of the hosts to this file, as JSON: every few seconds, and at the end.
    #[arg(long, value_name = "FILE")]
    pub(crate) status: Option<PathBuf>,
    /// Writes the same in the Prometheus text format.
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Option<PathBuf>,
    /// Prints only results and errors.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

fn bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| "not a size, such as 500000, 64M or 2G".to_owned())
}

/// Between one request per hour and a thousand per second.
fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (1.0 / 3600.0..=1000.0).contains(rate));
    rate.ok_or_else(|| "not a number per second between 0.0003 and 1000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_and_nonsense_is_refused() {
        assert_eq!((bytes("500"), bytes("2k"), bytes("64M")), (Ok(500), Ok(2048), Ok(64 << 20)));
        assert!(["", "M", "0", "-1", "1T", "99999999999G", "é"].iter().all(|text| bytes(text).is_err()));
        assert!(["0", "NaN", "inf", "-1", "x", "1e9"].iter().all(|text| rate(text).is_err()));
        assert_eq!(rate("0.5"), Ok(0.5));
    }
}
