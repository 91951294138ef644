//! Ctrl-C while a run goes on: once to stop in order, twice to stop at once.

use gleaner_runtime::Control;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
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
pub(crate) fn forward(orders: &Sender<Control>) -> Interrupted {
    let interrupted = Interrupted::default();
    let (orders, pressed) = (orders.clone(), interrupted.clone());
    thread::spawn(move || {
        // Without it Ctrl-C ends us the hard way, which a store survives.
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return };
        runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            for order in [Control::Cancel, Control::CancelNow] {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                pressed.0.store(true, Ordering::Relaxed);
                if orders.send(order).is_err() {
                    return;
                }
            }
        });
    });
    interrupted
}
