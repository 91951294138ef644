//! Two workers for many small cases: most of a case is waiting for a process, and two cores is what
//! the smallest machine has.

use std::sync::Mutex;
use std::sync::mpsc::sync_channel;

const WORKERS: usize = 2;

/// Does `work` on every case and returns what came of them, in no order. Cases are made while earlier
/// ones are worked on, and never more than a few wait: an image of a disk is megabytes.
pub(crate) fn in_parallel<C: Send, R: Send>(cases: impl Iterator<Item = C>, work: impl Fn(C) -> R + Sync) -> Vec<R> {
    let (give, take) = sync_channel(WORKERS);
    let (take, results) = (Mutex::new(take), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    // The lock is not held while working.
                    let case = take.lock().unwrap().recv();
                    let Ok(case) = case else { return };
                    let result = work(case);
                    results.lock().unwrap().push(result);
                }
            });
        }
        for case in cases {
            give.send(case).unwrap();
        }
        drop(give);
    });
    results.into_inner().unwrap()
}
