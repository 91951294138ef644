//! Runs jobs on all cores and hands the results over in the order of the jobs.
//!
//! The order of the output must not depend on which core was faster: a result waits until all
//! before it have been taken.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// More threads than this only compete for memory.
const THREADS_MAX: usize = 8;

/// Does `work` for the jobs `0..count`, and `take`s each result in order. The first error of
/// `take` ends everything.
pub(crate) fn in_order<T: Send, E>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    take: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E> {
    in_order_with(count, work, take, thread::Builder::new)
}

fn in_order_with<T: Send, E>(
    count: usize,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T) -> Result<(), E>,
    builder: impl Fn() -> thread::Builder,
) -> Result<(), E> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX).min(count);
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::sync_channel(threads.max(1));
    thread::scope(|scope| {
        let mut started = 0;
        for _ in 0..threads {
            let (sender, work, next, stop) = (sender.clone(), &work, &next, &stop);
            let thread = builder().spawn_scoped(scope, move || {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count || sender.send((index, work(index))).is_err() {
                        return;
                    }
                }
            });
            // The system gives no more threads: fewer are slower and do the same.
            let Ok(_) = thread else { break };
            started += 1;
        }
        drop(sender);
        if started == 0 {
            return (0..count).try_for_each(|index| take(index, work(index)));
        }
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (index, result) in results {
            early.insert(index, result);
            while let Some(result) = early.remove(&due) {
                take(due, result).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
                due += 1;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let mut taken = Vec::new();
        // Early jobs take longest.
        let slow = |index: usize| (0..(50 - index) * 2000).fold(index, |a, b| std::hint::black_box(a ^ b ^ b));
        let result: Result<(), ()> = in_order(50, slow, |index, value| {
            taken.push((index, value));
            Ok(())
        });
        assert_eq!(result, Ok(()));
        assert_eq!(taken, (0..50).map(|i| (i, i)).collect::<Vec<_>>());
    }

    #[test]
    fn without_a_thread_the_jobs_are_done_here() {
        let mut taken = Vec::new();
        let take = |index: usize, value: usize| {
            taken.push((index, value));
            Ok::<_, ()>(())
        };
        // No system has so much memory for a stack.
        let refused = || thread::Builder::new().stack_size(1 << 47);
        assert_eq!(in_order_with(3, |index| index, take, refused), Ok(()));
        assert_eq!(taken, [(0, 0), (1, 1), (2, 2)]);
    }

    #[test]
    fn an_error_ends_the_run() {
        let mut taken = 0;
        let result = in_order(
            1000,
            |index| index,
            |index, _| {
                taken += 1;
                if index == 3 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!((result, taken), (Err("enough"), 4));
    }
}
