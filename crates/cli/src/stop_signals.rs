//! Ctrl-C while a run goes on: once to stop in order, twice to stop at once.

use gleaner_runtime::Control;
use std::sync::mpsc::Sender;
use std::thread;
use tokio::signal::unix::{SignalKind, signal};

/// Turns signals into orders, from a thread of its own.
pub(crate) fn forward(orders: &Sender<Control>) {
    let orders = orders.clone();
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
                if orders.send(order).is_err() {
                    return;
                }
            }
        });
    });
}
