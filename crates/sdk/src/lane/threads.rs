//! Concurrent fetches, with as many threads as the system provides.
//!
//! Why not `thread::scope` and `spawn` alone: that panics where no thread can be started (a process limit, no memory
//! for a stack), and the whole run would fail although one thread is enough. A fetch without its own thread runs on
//! the calling thread when its turn comes.

use std::panic::resume_unwind;
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// A piece of work on its own thread, or waiting for the calling thread.
pub(super) enum Begun<'scope, 't, T, A> {
    Thread(ScopedJoinHandle<'scope, A>),
    Waits(&'t T),
}

/// Starts `work` for each item, each on a thread while there are any. `builder` creates the threads.
pub(super) fn begin<'scope, 'env, 't: 'scope, T: Sync, A: Send + 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    items: &'t [T],
    work: &'scope (dyn Fn(&T) -> A + Sync),
    builder: &dyn Fn() -> Builder,
) -> Vec<Begun<'scope, 't, T, A>> {
    let mut is_refused = false;
    let mut start = |item: &'t T| {
        let started = if is_refused { None } else { builder().spawn_scoped(scope, move || work(item)).ok() };
        // A retry at the same moment would fail too; the next batch tries again.
        is_refused = started.is_none();
        started.map_or(Begun::Waits(item), Begun::Thread)
    };
    items.iter().map(&mut start).collect()
}

impl<T, A> Begun<'_, '_, T, A> {
    /// The answer: waits for its thread, or does the work here. A panic is passed on.
    pub(super) fn finish(self, work: &dyn Fn(&T) -> A) -> A {
        match self {
            Self::Thread(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Self::Waits(item) => work(item),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;
    use std::thread;

    /// No system has so much memory for a stack: a thread that is made with this is refused, for root as well.
    const TOO_LARGE: usize = 1 << 47;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_item_is_answered_once_and_in_order_however_many_threads_there_are(
            items in 0_usize..20,
            threads in 0_usize..20,
        ) {
            let items = (0..items).collect::<Vec<_>>();
            let left = Cell::new(threads);
            let builder = || {
                let given = left.get() > 0;
                left.set(left.get().saturating_sub(1));
                if given { Builder::new() } else { Builder::new().stack_size(TOO_LARGE) }
            };
            let caller = thread::current().id();
            let work = |item: &usize| (*item, thread::current().id() == caller);
            let answers = thread::scope(|scope| {
                let begun = begin(scope, &items, &work, &builder);
                begun.into_iter().map(|begun| begun.finish(&work)).collect::<Vec<_>>()
            });
            let expected = items.iter().map(|item| (*item, *item >= threads)).collect::<Vec<_>>();
            prop_assert_eq!(answers, expected);
        }
    }

    #[test]
    fn a_panic_of_the_work_reaches_the_caller_with_and_without_a_thread() {
        for stack in [1 << 20, TOO_LARGE] {
            let work = |_: &()| panic!("the author's");
            let caught = std::panic::catch_unwind(|| {
                thread::scope(|scope| {
                    let begun = begin(scope, &[()], &work, &|| Builder::new().stack_size(stack));
                    begun.into_iter().for_each(|begun| begun.finish(&work));
                });
            });
            assert!(caught.is_err());
        }
    }
}
