//! Ctrl-C: once to stop in order, twice to stop at once.

use crate::error::EXIT_INTERRUPTED;
use gleaner_runtime::Control;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use tokio::signal::unix::{SignalKind, signal};

/// Whether it was pressed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Turns signals into orders, from a thread of its own.
pub(crate) fn forward(orders: &Sender<Control>) {
    let orders = orders.clone();
    let mut next = [Control::Cancel, Control::CancelNow].into_iter();
    listen(move || next.next().is_some_and(|order| orders.send(order).is_ok()));
}

/// For commands that only look: the first signal calls `stop` and is left to the command, a second one ends at
/// once, also while nobody takes our output.
pub(crate) fn watch(stop: impl Fn() + Send + 'static) -> Interrupted {
    let interrupted = Interrupted::default();
    let pressed = interrupted.clone();
    listen(move || {
        if pressed.0.swap(true, Ordering::Relaxed) {
            #[expect(clippy::exit, reason = "whoever asks twice does not want to wait for anything")]
            std::process::exit(EXIT_INTERRUPTED.into());
        }
        stop();
        true
    });
    interrupted
}

/// Calls for each signal, from a thread of its own, as long as the answer is yes. Signals count from when this
/// returns: one that came before would end us in the middle of what is to be tidied up.
pub(crate) fn listen(mut call: impl FnMut() -> bool + Send + 'static) {
    let (ready, is_ready) = channel();
    // Without it Ctrl-C ends us the hard way, which a store survives.
    let started = thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            if ready.send(()).is_err() {
                return;
            }
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if !call() {
                    return;
                }
            }
        });
    });
    // An error means that it cannot listen, and ended.
    let _can_listen = started.is_ok() && is_ready.recv().is_ok();
}
