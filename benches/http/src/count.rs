//! What callgrind counts the instructions of: one caller, one connection, one thread.
//!
//! Why beside the rates: a rate is a matter of the machine and of its other guests, and instructions are
//! the same in every run. They leave out what the kernel does and what threads do to each other, so they
//! do not replace the rates. The server is another process, or it would be counted, too. Measures nothing by
//! itself: `scripts/bench-http` runs it under callgrind with few requests and with many, and the difference is
//! what a request costs without the start of the process.

use crate::{clients, server};
use std::io::Read;

/// Serves until its input ends; its first line says where.
pub fn serve() {
    println!("http://{}/items/4711", server::start());
    // Whatever is written there means nothing.
    let _end = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Asks `url` so often, one request after the other; `false` when there is no such side.
pub fn ask(side: &str, url: &str, requests: u32) -> bool {
    clients::install_tls();
    macro_rules! ask {
        ($client:expr) => {{
            let client = $client;
            server::runtime().block_on(async {
                for _ in 0..requests {
                    let answer = client.get(url).send().await.expect("an answer");
                    assert!(!answer.bytes().await.expect("a body").is_empty());
                }
            });
        }};
    }
    match side {
        "reqwest" => ask!(clients::wire()),
        "middleware" => ask!(clients::with_middleware()),
        "client" => ask!(clients::governed_client()),
        _ => return false,
    }
    true
}
