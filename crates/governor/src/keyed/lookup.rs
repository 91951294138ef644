//! Cache of recently used handles, for callers that are given names and keep no handles.
//!
//! A lookup takes the shard's lock and changes the key's reference count twice: as expensive as the rest of a
//! request's path. A caller that returns to the same hosts, such as a worker of a crawl, finds them here for a hash
//! and a comparison. One cache per thread; nothing is shared.

use super::domain::Domain;
use super::handle::Handle;
use super::registry::{Full, Registry};
use crate::time::Time;

/// Cached handles: more hosts than a worker alternates between. Each keeps its key from being dropped.
const KEPT: usize = 256;

/// A registry with a cache of recently used handles.
#[derive(Debug)]
pub struct Lookup<'a, W = ()> {
    registry: &'a Registry<W>,
    kept: Box<[Option<Handle<W>>]>,
}

impl<'a, W: Default> Lookup<'a, W> {
    /// An empty cache.
    #[must_use]
    pub fn new(registry: &'a Registry<W>) -> Self {
        Self { registry, kept: (0..KEPT).map(|_| None).collect() }
    }

    /// Returns the handle of `domain`, like [`Registry::handle`].
    ///
    /// # Errors
    /// When there is no room: all keys are in use or closed.
    #[inline]
    pub fn handle(&mut self, domain: &Domain, now: Time) -> Result<&Handle<W>, Full> {
        let (name, hash) = self.registry.place_of(domain);
        let kept = &mut self.kept[hash as usize % KEPT];
        if kept.as_ref().is_some_and(|handle| handle.domain() != name) {
            *kept = None;
        }
        match kept {
            Some(handle) => Ok(handle),
            kept @ None => Ok(kept.insert(self.registry.handle(domain, now)?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyed::RegistryConfig;
    use std::time::Duration;

    #[test]
    fn a_name_is_found_whether_it_was_kept_or_not() {
        let registry: Registry = Registry::new(RegistryConfig::default(), 5).unwrap();
        let mut lookup = Lookup::new(&registry);
        let now = Time::from_nanos(1_000_000_000);
        for _ in 0..2 {
            for number in 0..3 * KEPT {
                let name = format!("h{number}.com");
                assert_eq!(lookup.handle(&Domain::parse(&name).unwrap(), now).unwrap().domain(), name);
            }
        }
        assert_eq!(registry.len(), 3 * KEPT, "nobody is made twice");
        let much_later = now + Duration::from_secs(100_000);
        registry.tend(much_later);
        assert!(registry.len() <= KEPT, "what is kept here is not forgotten, and all else is: {}", registry.len());
        drop(lookup);
        registry.tend(much_later + Duration::from_secs(100_000));
        assert!(registry.is_empty());
    }
}
