//! The options of `serve`, `schedule` and `service`.

use super::collect::HomeArgs;
use clap::{Args, Subcommand, ValueEnum, value_parser};
use gleaner_app::Setting;
use gleaner_console::{BasePath, OtherName};
use gleaner_schedule::Mode;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// Runs at the same time [default: 4].
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=64))]
    pub(crate) max_runs: Option<u16>,
    /// The address of the web console, or off [default: 127.0.0.1:8716].
    #[arg(long, value_name = "ADDRESS", value_parser = listen)]
    pub(crate) listen: Option<Listen>,
    /// Another host name of the console, for example that of your proxy; repeatable.
    #[arg(long, value_name = "NAME", value_parser = allowed_name, value_delimiter = ',')]
    pub(crate) allow_host: Vec<OtherName>,
    /// The TLS certificate of the console, in PEM, with its chain.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Says that a proxy in front of the console terminates TLS: yes or no [default: no].
    #[arg(long, value_enum, value_name = "WHETHER", hide_possible_values = true)]
    pub(crate) behind_proxy: Option<YesNo>,
    /// The base path of the console, for example /gleaner [default: /].
    #[arg(long, value_name = "PATH", value_parser = base_path)]
    pub(crate) base_path: Option<BasePath>,
    /// Shows a desktop notification when a connection needs you: yes or no [default: yes].
    #[arg(long, value_enum, value_name = "WHETHER", hide_possible_values = true)]
    pub(crate) notify_desktop: Option<YesNo>,
    /// Runs this command when a connection needs you, with GLEANER_CONNECTION, GLEANER_EVENT and GLEANER_MESSAGE set.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) notify_command: Option<String>,
    /// Posts JSON to this address when a connection needs you.
    #[arg(long, value_name = "URL", value_parser = webhook)]
    pub(crate) notify_webhook: Option<String>,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
    /// Prints only warnings and errors; the log has the rest.
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// The address of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Off,
    At(SocketAddr),
}

fn listen(text: &str) -> Result<Listen, String> {
    match text {
        "off" => Ok(Listen::Off),
        _ => text.parse().map(Listen::At).map_err(|_| "give an address and a port, or off".to_owned()),
    }
}

fn allowed_name(text: &str) -> Result<OtherName, String> {
    OtherName::new(text).ok_or_else(|| "give a name as it stands in an address, for example gleaner.example".to_owned())
}

fn base_path(text: &str) -> Result<BasePath, String> {
    BasePath::new(text).ok_or_else(|| "give a path of plain letters, for example /gleaner".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum YesNo {
    Yes,
    No,
}

#[derive(Args, Debug)]
pub(crate) struct ScheduleArgs {
    /// The connection [default: lists all].
    pub(crate) connection: Option<String>,
    /// When it runs: automatic, manual, paused, or default for its author's recommendation.
    #[arg(long, value_name = "MODE", value_parser = mode, requires = "connection")]
    pub(crate) mode: Option<Setting<Mode>>,
    /// The interval between runs, for example 30m, 6h or 1d; or default.
    #[arg(long, value_name = "TIME", value_parser = every, requires = "connection", conflicts_with = "cron")]
    pub(crate) every: Option<Setting<Duration>>,
    /// A cron pattern, for example "0 3 * * *"; or default.
    #[arg(long, value_name = "PATTERN", value_parser = text, requires = "connection")]
    pub(crate) cron: Option<Setting<String>>,
    /// Hours without automatic runs, for example 22:00-07:00; or default for none.
    #[arg(long, value_name = "HOURS", value_parser = text, requires = "connection")]
    pub(crate) quiet: Option<Setting<String>>,
    /// The time zone of --cron and --quiet, for example Europe/Berlin; or default for UTC.
    #[arg(long, value_name = "ZONE", value_parser = text, requires = "connection")]
    pub(crate) zone: Option<Setting<String>>,
    /// Prints one JSON object per line and connection.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    /// Writes a systemd unit for `gleaner serve`, enables it and starts it.
    Install(ServiceInstallArgs),
    /// Stops the service and removes its unit. The data stays.
    Uninstall(HomeArgs),
    /// Shows whether the service is installed and running.
    Status(HomeArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ServiceInstallArgs {
    /// Prints the unit and installs nothing.
    #[arg(long)]
    pub(crate) print: bool,
    /// Writes the unit without enabling or starting it.
    #[arg(long)]
    pub(crate) no_start: bool,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

/// A run that `serve` starts. It reads its specification from standard input.
#[derive(Args, Debug)]
pub(crate) struct ScheduledRunArgs {
    /// The process of `serve`: the run ends with it.
    #[arg(long)]
    pub(crate) parent: u32,
    #[command(flatten)]
    pub(crate) home: HomeArgs,
}

const DEFAULT: &str = "default";

fn mode(text: &str) -> Result<Setting<Mode>, String> {
    match text {
        "automatic" => Ok(Setting::Set(Mode::Automatic)),
        "manual" => Ok(Setting::Set(Mode::Manual)),
        "paused" => Ok(Setting::Set(Mode::Paused)),
        DEFAULT => Ok(Setting::Default),
        _ => Err("give automatic, manual, paused or default".to_owned()),
    }
}

/// `30m`, `6h`, `1d`. The schedule refuses intervals that are too short.
fn every(text: &str) -> Result<Setting<Duration>, String> {
    if text == DEFAULT {
        return Ok(Setting::Default);
    }
    let units = [('s', 1), ('m', 60), ('h', 3600), ('d', 86_400)];
    let read = units.into_iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?.parse::<u64>().ok()?;
        number.checked_mul(seconds).map(Duration::from_secs)
    });
    read.map(Setting::Set).ok_or_else(|| "give a number with m, h or d, for example 6h; or default".to_owned())
}

fn text(text: &str) -> Result<Setting<String>, String> {
    match text {
        "" => Err("give a value, or default".to_owned()),
        DEFAULT => Ok(Setting::Default),
        _ => Ok(Setting::Set(text.to_owned())),
    }
}

/// Allows plain HTTP only to this machine.
fn webhook(text: &str) -> Result<String, String> {
    let local = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
    let ends_host = |rest: &str| rest.is_empty() || rest.starts_with(['/', ':', '?']);
    let is_local = local.iter().any(|start| text.strip_prefix(start).is_some_and(ends_host));
    let is_https = text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty());
    let is_one = (is_https || is_local) && !text.contains(|c: char| c.is_control() || c.is_whitespace());
    if is_one { Ok(text.to_owned()) } else { Err("give an address that begins with https://".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_a_unit_and_everything_can_be_taken_back() {
        assert_eq!(every("6h"), Ok(Setting::Set(Duration::from_secs(6 * 3600))));
        assert_eq!(every("1d"), Ok(Setting::Set(Duration::from_secs(86_400))));
        for parsed in [every("default").is_ok(), mode("default").is_ok(), text("default").is_ok()] {
            assert!(parsed);
        }
        for wrong in ["", "6", "h", "-1h", "1.5h", "99999999999999999999d"] {
            assert!(every(wrong).is_err(), "{wrong}");
        }
        assert!(mode("never").is_err() && text("").is_err());
    }

    #[test]
    fn a_webhook_is_not_told_in_plain_text_to_another_machine() {
        for right in ["https://example.com/hook", "http://127.0.0.1:8080/x", "http://localhost/", "http://[::1]:9/"] {
            assert!(webhook(right).is_ok(), "{right}");
        }
        for wrong in ["http://example.com", "http://127.0.0.1.example.com", "ftp://x", "https://", "https://a b", ""] {
            assert!(webhook(wrong).is_err(), "{wrong}");
        }
    }
}
