//! The same tests over each engine.
//!
//! A test is a function of the engine; the list at the head of its file says where it runs. Some run over patchright only
//! with `GLEANER_TEST_ALL` in the environment: they are about what both engines share.

#![allow(dead_code, unused_macros, unused_imports, reason = "each test binary uses a part of it")]

use gleaner_browser::EngineChoice;
use std::path::PathBuf;

/// Whether everything is to be run.
pub(crate) fn at_full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}

/// Where `scripts/test` puts patchright's driver: in the folder of what is built. Without it, the driver is looked for
/// where it usually is, and a test that finds none fails and says what to do.
pub(crate) fn driver() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("PDPP_PATCHRIGHT_DRIVER") {
        return Some(PathBuf::from(named));
    }
    let ourselves = std::env::current_exe().unwrap();
    let place = ourselves.ancestors().nth(3).unwrap().join("patchright/patchright/driver");
    place.is_dir().then_some(place)
}

/// The word for an engine.
pub(crate) fn word(engine: EngineChoice) -> &'static str {
    match engine {
        EngineChoice::Auto => "auto",
        EngineChoice::Pipe => "pipe",
        EngineChoice::Patchright => "patchright",
    }
}

/// Makes tests out of functions of an engine.
macro_rules! over_engines {
    (both: [$($both:ident),* $(,)?], patchright_at_full_size: [$($full:ident),* $(,)?]) => {
        mod pipe {
            $(#[test] fn $both() { super::$both(gleaner_browser::EngineChoice::Pipe) })*
            $(#[test] fn $full() { super::$full(gleaner_browser::EngineChoice::Pipe) })*
        }
        #[cfg(feature = "patchright")]
        mod patchright {
            $(#[test] fn $both() { super::$both(gleaner_browser::EngineChoice::Patchright) })*
            $(#[test] fn $full() {
                if super::engines::at_full_size() {
                    super::$full(gleaner_browser::EngineChoice::Patchright)
                } else {
                    println!("left out: GLEANER_TEST_ALL runs it");
                }
            })*
        }
    };
}
pub(crate) use over_engines;
