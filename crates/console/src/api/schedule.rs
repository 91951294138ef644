//! When a connection runs, and what it does next.

use crate::date;
use gleaner_app::{Outlook, ScheduleChange, Setting, kind_code};
use gleaner_schedule::{Mode, Next};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Number;
use std::time::Duration;

json_object! {
    /// What the owner set; what is absent is as the manifest recommends.
    pub(crate) struct ScheduleView(outlook: &Outlook) {
        let set = outlook.set.clone();
    } => {
        mode: Option<String> = set.mode,
        every_seconds: Option<u64> = set.every.map(|every| every.as_secs()),
        cron: Option<String> = set.cron,
        quiet: Option<String> = set.quiet,
        zone: Option<String> = set.zone,
        /// How often it runs by itself, for people.
        sentence: String = outlook.cadence(),
        /// Why what the owner set is not heeded, if it cannot be read.
        fault: Option<String> = outlook.setting_fault.clone(),
    }
}

/// What is changed: a member that is left out stays as it is, `null` is as the manifest recommends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleWish {
    #[serde(default, deserialize_with = "setting")]
    mode: Setting<ModeWish>,
    #[serde(default, deserialize_with = "setting")]
    every_seconds: Setting<WholeSeconds>,
    #[serde(default, deserialize_with = "setting")]
    cron: Setting<String>,
    #[serde(default, deserialize_with = "setting")]
    quiet: Setting<String>,
    #[serde(default, deserialize_with = "setting")]
    zone: Setting<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ModeWish {
    Automatic,
    Manual,
    Paused,
}

/// A whole number, also one that is written as `3600.0`: to many programs that is the same.
#[derive(Clone, Copy, Debug)]
struct WholeSeconds(u64);

impl<'de> Deserialize<'de> for WholeSeconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = Number::deserialize(from)?;
        // Beyond this, neighbours of a floating number are no longer whole numbers; it is far more than may be set.
        let whole = |float: f64| (float.fract() == 0.0 && (0.0..=1e15).contains(&float)).then_some(float as u64);
        let seconds = number.as_u64().or_else(|| number.as_f64().and_then(whole));
        seconds.map(Self).ok_or_else(|| D::Error::custom("not a whole number of seconds"))
    }
}

fn setting<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Setting<T>, D::Error> {
    Ok(Option::<T>::deserialize(from)?.map_or(Setting::Default, Setting::Set))
}

fn map<T, R>(setting: Setting<T>, change: impl FnOnce(T) -> R) -> Setting<R> {
    match setting {
        Setting::Keep => Setting::Keep,
        Setting::Default => Setting::Default,
        Setting::Set(value) => Setting::Set(change(value)),
    }
}

impl From<ScheduleWish> for ScheduleChange {
    fn from(wish: ScheduleWish) -> Self {
        let mode = |mode| match mode {
            ModeWish::Automatic => Mode::Automatic,
            ModeWish::Manual => Mode::Manual,
            ModeWish::Paused => Mode::Paused,
        };
        Self {
            mode: map(wish.mode, mode),
            every: map(wish.every_seconds, |WholeSeconds(seconds)| Duration::from_secs(seconds)),
            cron: wish.cron,
            quiet: wish.quiet,
            zone: wish.zone,
        }
    }
}

json_object! {
    /// What comes next, and why.
    pub(crate) struct NextView(outlook: &Outlook) {
        let kind = match outlook.next {
            Next::Run { kind, .. } => Some(kind_code(kind)),
            Next::Held(_) => None,
        };
    } => {
        at: Option<String> = outlook.at().map(date::rfc3339),
        kind: Option<&'static str> = kind,
        code: &'static str = outlook.code(),
        sentence: String = outlook.why(),
        /// What the owner can do about it, where only the owner can.
        what_to_do: Option<String> = outlook.what_to_do(),
    }
}
