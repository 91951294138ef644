//! Whatever a manifest holds: no panic, a bounded list of faults, ours are judged more strictly, and a
//! manifest that is accepted keeps the rules that the runtime relies on.
#![no_main]

use gleaner_protocol::{Manifest, ManifestOrigin};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;

fuzz_target!(|input: &[u8]| {
    let foreign = Manifest::parse(input, ManifestOrigin::Foreign);
    let ours = Manifest::parse(input, ManifestOrigin::FirstParty);
    assert!(foreign.is_ok() || ours.is_err());
    let manifest = match foreign {
        Ok(manifest) => manifest,
        Err(rejected) => {
            assert!((1..=100).contains(&rejected.faults.len()));
            assert!(!rejected.to_string().chars().any(|c| c.is_control() && c != '\n'));
            return;
        }
    };
    let names = manifest.streams.iter().map(|stream| stream.name.as_str()).collect::<BTreeSet<_>>();
    assert_eq!(names.len(), manifest.streams.len());
    // Another way to see that there is no ring: take away streams whose parents are all gone.
    let mut left = manifest.streams.iter().collect::<Vec<_>>();
    while !left.is_empty() {
        let before = left.len();
        let waiting = left.iter().map(|stream| stream.name.clone()).collect::<BTreeSet<_>>();
        left.retain(|stream| stream.checkpoint.parents().iter().any(|parent| waiting.contains(parent)));
        assert!(left.len() < before, "a ring was accepted");
        assert!(manifest.streams.iter().flat_map(|s| s.checkpoint.parents()).all(|p| names.contains(p.as_str())));
    }
});
