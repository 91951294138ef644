//! Every bound on a schema, with its reason.
//!
//! A manifest is written by a stranger, and its schemas are compiled before the first record. What a
//! schema may cost is known from it alone (`survey.rs`), so it is refused at the start and by name, never
//! in the middle of a run.

/// How large a schema may be. Its compiled form takes some thirty times as much. The largest
/// generated ones that we know, of accounting APIs with everything written out, stay below half of it.
pub(super) const SCHEMA_BYTES_MAX: usize = 512 * 1024;

/// How many patterns all schemas of a manifest may have. With the two sizes below, the patterns of a
/// hostile manifest take some 100 MiB and those of an honest one a few.
pub(super) const PATTERNS_MAX: usize = 256;
/// How long a pattern may be. The longest one in use that we know, for addresses, has 400 bytes.
pub(super) const PATTERN_BYTES_MAX: usize = 1024;
/// How large a compiled pattern may be. `\p{L}{1,8}` takes 90 KiB, and a repetition of repetitions that
/// takes more is a mistake or an attack.
pub(super) const PATTERN_COMPILED_BYTES_MAX: usize = 256 * 1024;
/// How much a pattern may remember while it is matched. With less it is slower, and linear all the same.
pub(super) const PATTERN_CACHE_BYTES_MAX: usize = 128 * 1024;

/// How deep a body can be: the bound of the decoder.
pub(super) const BODY_DEPTH_MAX: u64 = 128;
/// How many schemas may be evaluated inside each other at one value: references to references, choices in
/// choices. Generated schemas have up to ten.
pub(super) const CHAIN_MAX: u64 = 32;
/// How many schemas may be evaluated inside each other in all. An evaluation takes some 200 bytes of stack
/// (300 without optimisation), so this is the half of a thread's 2 MiB at worst.
pub(super) const STACK_MAX: u64 = CHAIN_MAX * BODY_DEPTH_MAX;
/// How often one value may be evaluated. Choices of twenty, four levels deep, are a fifth of it; each
/// costs some 20 ns, and nearly all end at the first look.
pub(super) const EFFORT_MAX: u64 = 1_000_000;

/// The same two where the place of a fault is asked for. The library takes five times the stack for that, and
/// builds an error for every choice that failed. Beyond these the fault is placed at the whole body.
pub(super) const LOCATE_STACK_MAX: u64 = 8 * BODY_DEPTH_MAX;
/// See [`LOCATE_STACK_MAX`].
pub(super) const LOCATE_EFFORT_MAX: u64 = 10_000;

/// How many schemas may be open at once while references are followed. They are followed recursively.
pub(super) const OPEN_MAX: usize = 512;

/// How long a pointer may be that goes on record: its keys come out of a body.
pub(super) const POINTER_BYTES_MAX: usize = 1024;
