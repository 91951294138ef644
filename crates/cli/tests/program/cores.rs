//! Many small worlds at once, as many as there are cores.

use std::sync::Mutex;
use std::thread;

/// Does this with each of them, and returns what came out, in no order.
pub(crate) fn in_parallel<I: Send, O: Send>(
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(I) -> O + Sync,
) -> Vec<O> {
    let (items, done) = (Mutex::new(items), Mutex::new(Vec::new()));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let Some(item) = items.lock().unwrap().next() else { return };
                    let out = work(item);
                    done.lock().unwrap().push(out);
                }
            });
        }
    });
    done.into_inner().unwrap()
}
