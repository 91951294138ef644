//! The JSON API: one file per resource, each with what it looks like on the wire and the handlers that give it.
//!
//! Types with `Serialize` are here and nowhere else; they are the format, and `openapi.json` says the same for people.

/// A JSON object and how it is made: after some steps, each member with its type and its value, in the order in which
/// they are written.
macro_rules! json_object {
    (
        $(#[$about:meta])*
        $seen:vis struct $name:ident($($arg:ident: $of:ty),*) { $($step:tt)* } => {
            $($(#[$doc:meta])* $member:ident: $type:ty = $value:expr,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, serde::Serialize)]
        $seen struct $name { $($(#[$doc])* $member: $type,)* }

        impl $name {
            $seen fn of($($arg: $of),*) -> Self {
                $($step)*
                Self { $($member: $value,)* }
            }
        }
    };
}

pub(crate) mod actions;
pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod connectors;
pub(crate) mod coverage;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod gaps;
pub(crate) mod health;
pub(crate) mod interactions;
pub(crate) mod page;
pub(crate) mod quarantine;
pub(crate) mod records;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod sign_in;
pub(crate) mod status;
