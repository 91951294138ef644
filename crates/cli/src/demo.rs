//! The demonstration: a provider with a limit that nobody tells, and a connector for it. Both are real: HTTP
//! on loopback, a process of its own, the same run as with any other connector.

pub(crate) mod connector;
pub(crate) mod provider;

/// Where the connector finds the provider.
pub(crate) const URL: &str = "DEMO_URL";
/// How many notes the provider has.
pub(crate) const NOTES: u64 = 200;
/// Notes in a page of the list, and in a slice.
pub(crate) const PAGE: u64 = 20;
/// Notes that are fetched at the same time. A round waits for the last of it, so few are slower than many.
pub(crate) const CONCURRENCY: usize = 8;
/// Notes that are listed and not there: even a good provider has some.
pub(crate) const LOST: [u64; 2] = [37, 142];

pub(crate) const MANIFEST: &str = include_str!("demo/manifest.json");
