//! Every bound on a schema, with its reason.
//!
//! A manifest is written by a stranger, and its schemas are compiled before the first record. What a
//! schema may cost is known from it alone (`survey.rs`), so it is refused at the start and by name, never
//! in the middle of a run.

/// How large a schema may be. The largest whole manifest that we know has 60 KB. The slowest
/// of this size that we could write took 1.7 s to compile, without optimisation and on a busy machine.
pub(super) const SCHEMA_BYTES_MAX: usize = 512 * 1024;

/// How many patterns all schemas of a manifest may have.
pub(super) const PATTERNS_MAX: usize = 256;
/// How long a pattern may be. It is read before it can be found too large.
pub(super) const PATTERN_BYTES_MAX: usize = 1024;
/// How much all compiled patterns of a manifest may take, and as much again while they are matched.
const PATTERNS_COMPILED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How large one compiled pattern may be where there are few. Matching is linear in the text, but each
/// character costs up to a look at all of the pattern, so this bounds time as well. It is enough for
/// `^\S{1,255}$` and for `^\p{L}{1,10}$`, and not for `^\p{L}{1,50}$`.
const PATTERN_COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// How large each compiled pattern may be where there are this many. Where all 256 are used, a quarter of
/// a megabyte is left for each, which is ample without Unicode classes.
pub(super) fn pattern_compiled_bytes(patterns: usize) -> usize {
    (PATTERNS_COMPILED_BYTES_MAX / patterns.max(1)).min(PATTERN_COMPILED_BYTES_MAX)
}

/// How deep a body can be: the bound of the decoder.
pub(super) const BODY_DEPTH_MAX: u64 = 128;
/// How many schemas may be evaluated inside each other at one value: references to references, choices in
/// choices. What generators write for a field (itself, a choice, a branch, what it refers to) is four.
pub(super) const CHAIN_MAX: u64 = 32;
/// How many schemas may be evaluated inside each other in all. Without optimisation, a thread's 2 MiB held 5000
/// evaluations and did not hold 12 500.
pub(super) const STACK_MAX: u64 = CHAIN_MAX * BODY_DEPTH_MAX;
/// How often one value may be evaluated. Choices of twenty, four levels deep, are a fifth of it, and nearly all
/// of those end at the first look. A quarter of it took 14 ms, without optimisation.
pub(super) const EFFORT_MAX: u64 = 1_000_000;

/// The same two where the place of a fault is asked for. The library takes several times the stack for that
/// (2 MiB held 1700 evaluations), and builds an error for every choice that failed. Beyond these the
/// fault is placed at the whole body.
pub(super) const LOCATE_STACK_MAX: u64 = 8 * BODY_DEPTH_MAX;
/// See [`LOCATE_STACK_MAX`].
pub(super) const LOCATE_EFFORT_MAX: u64 = 10_000;

/// How many schemas may be open at once while references are followed. They are followed recursively.
pub(super) const OPEN_MAX: usize = 512;

/// How long a pointer may be that goes on record: its keys come out of a body.
pub(super) const POINTER_BYTES_MAX: usize = 1024;
