//! Sides take turns; ratios are taken within a round, and the median over rounds.
//!
//! Why not run one side after the other for long: on a shared machine the minute in which a side runs
//! says more about its figure than the side does.

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Long enough for a thousand requests, short enough that the machine is hardly another in the next one.
const SLICE: Duration = Duration::from_millis(50);
/// Fewer say nothing.
const ROUNDS_MIN: u32 = 5;

/// One way to send requests.
pub struct Side<'a> {
    pub name: &'static str,
    /// Where the work is done that is measured, if that is one thread.
    pub thread: Option<Thread>,
    /// Takes a time, and gives the number of answers in it.
    pub load: Box<dyn FnMut(Duration) -> u64 + 'a>,
}

/// What a side made of the first one.
pub struct Measured {
    pub name: &'static str,
    /// Median over rounds.
    pub per_second: f64,
    /// Quartiles over rounds of the ratio to the first side.
    pub ratio: [f64; 3],
    /// The same by the time that the thread was on a core; `None` where the system does not tell.
    pub cpu_ratio: Option<[f64; 3]>,
}

/// The figures of one slice.
#[derive(Clone, Copy, Default)]
struct Slice {
    per_second: f64,
    per_cpu_second: Option<f64>,
}

/// Lets all sides take turns for about `time`; the first one is what the others are compared with.
pub fn measure(mut sides: Vec<Side<'_>>, time: Duration) -> Vec<Measured> {
    for side in &mut sides {
        // Connections are made, and caches and pools are warm.
        (side.load)(SLICE);
    }
    let turns = u32::try_from(sides.len()).expect("a few sides");
    let rounds = (time.as_millis() / (SLICE * turns).as_millis()) as u32;
    let rounds = rounds.max(ROUNDS_MIN) as usize;
    let slices: Vec<Vec<Slice>> = (0..rounds).map(|round| run_round(&mut sides, round)).collect();
    let over_rounds = |value: &dyn Fn(&[Slice]) -> Option<f64>| {
        slices.iter().map(|round| value(round)).collect::<Option<Vec<_>>>().map(quartiles)
    };
    let measured = |(index, side): (usize, &Side<'_>)| Measured {
        name: side.name,
        per_second: over_rounds(&|round| Some(round[index].per_second)).unwrap_or_default()[1],
        ratio: over_rounds(&|round| Some(round[index].per_second / round[0].per_second)).unwrap_or_default(),
        cpu_ratio: over_rounds(&|round| Some(round[index].per_cpu_second? / round[0].per_cpu_second?)),
    };
    sides.iter().enumerate().map(measured).collect()
}

/// One slice for each side, the order turning from round to round.
fn run_round(sides: &mut [Side<'_>], round: usize) -> Vec<Slice> {
    let mut slices = vec![Slice::default(); sides.len()];
    for turn in 0..sides.len() {
        let index = (round + turn) % sides.len();
        let side = &mut sides[index];
        let (start, before) = (Instant::now(), side.on_core());
        let answers = (side.load)(SLICE) as f64;
        let on_core = side.on_core().zip(before).map(|(after, before)| after.saturating_sub(before));
        slices[index] = Slice {
            per_second: answers / start.elapsed().as_secs_f64(),
            per_cpu_second: on_core.map(|time| answers / time.as_secs_f64()),
        };
    }
    slices
}

impl Side<'_> {
    fn on_core(&self) -> Option<Duration> {
        self.thread.as_ref()?.on_core()
    }
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

/// A thread whose time on a core can be asked for, on Linux.
pub struct Thread(PathBuf);

impl Thread {
    pub fn current() -> Self {
        let own = std::fs::read_link("/proc/thread-self").unwrap_or_default();
        Self(PathBuf::from("/proc").join(own).join("schedstat"))
    }

    fn on_core(&self) -> Option<Duration> {
        let text = std::fs::read_to_string(&self.0).ok()?;
        text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    }
}
