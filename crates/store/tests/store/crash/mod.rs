//! What the kill test and the power-loss test share: the program under test, what it told the kernel,
//! what a disk may have made of it, and the judge of what is left.
//!
//! Nothing in here knows how the store works inside: it sees system calls, output lines and the public
//! reading side. It never skips: without strace a test fails and says what to install.

#![allow(dead_code, reason = "each of the two tests uses its part")]

pub(crate) mod cores;
pub(crate) mod disk;
pub(crate) mod judge;
pub(crate) mod program;
pub(crate) mod recording;
pub(crate) mod strace;

/// Whether the tests run at the size that they are about, or at a tenth of it.
pub(crate) fn is_full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}
