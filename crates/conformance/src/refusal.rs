//! A provider that says when to come back, and a connector that is killed before that.
//!
//! The provider is a server on this machine: the connector is told its address by the variable that the subject names.
//! Everything is answered with 429 and a Retry-After that is longer than anybody watches.

use crate::ask::Ask;
use crate::checked_run::{self, CONNECTION};
use crate::child::{Child, Output};
use crate::plan::Plan;
use crate::report::{Board, Finding};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const ID: &str = "retry_after_kept";
/// Names the folder in which a connector keeps what it must not forget about its provider, as in every run.
const PACING_VARIABLE: &str = "GLEANER_PACING_DIR";
/// Names the account, for a connector without credentials.
const ACCOUNT_VARIABLE: &str = "GLEANER_PACING_ACCOUNT";
/// What the provider says, in seconds: longer than all checks together.
const RETRY_AFTER: u32 = 600;
/// How long a connector has to take the answer in before it is killed.
const TAKES_IN: Duration = Duration::from_millis(700);
/// How often it is looked.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Refused, killed, and started again: then the provider must not be asked.
pub(crate) fn retry_after(plan: &mut Plan<'_>, board: &mut Board<'_>) {
    let Some(variable) = plan.bench.subject.provider_variable.clone() else {
        return board.skip(ID, "the variable with the address of its provider was not named");
    };
    let provider = match Provider::start() {
        Ok(provider) => provider,
        Err(error) => return board.skip(ID, format!("no server could be started on this machine: {error}")),
    };
    // A start that takes longer has its own checks.
    let first_request = plan.bench.subject.limits.first_line;
    let told = start(plan, &variable, &provider, "refused by its provider, and killed", board, |provider, child| {
        let until = Instant::now() + first_request;
        while provider.requests() == 0 && Instant::now() < until {
            swallow(child);
        }
        let until = Instant::now() + TAKES_IN;
        while provider.requests() > 0 && Instant::now() < until {
            swallow(child);
        }
    });
    if let Err(why) = told {
        return board.skip(ID, why);
    }
    let before = provider.requests();
    if before == 0 {
        return board.skip(ID, format!("it did not ask the provider whose address is in {variable}"));
    }
    let watch = plan.bench.subject.limits.refusal;
    let again = start(plan, &variable, &provider, "started again after a refusal", board, |provider, child| {
        let until = Instant::now() + watch;
        while provider.requests() == before && Instant::now() < until {
            swallow(child);
        }
    });
    if let Err(why) = again {
        return board.skip(ID, why);
    }
    let asked_again = provider.requests() > before;
    let what = || {
        let what = format!(
            "it was told to come back in {RETRY_AFTER} seconds, killed and started again, and asked again at once"
        );
        (what, None)
    };
    board.judge(ID, asked_again.then(what));
}

/// What it says does not matter here, but must be read.
fn swallow(child: &Child) {
    if let Output::Closed = child.output(LOOK_AGAIN) {
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Starts it with this provider, does something meanwhile, and kills it.
fn start(
    plan: &mut Plan<'_>,
    variable: &str,
    provider: &Provider,
    name: &'static str,
    board: &mut Board<'_>,
    meanwhile: impl FnOnce(&Provider, &Child),
) -> Result<(), String> {
    plan.bench.deadline()?;
    board.tell(&Finding::Start(name));
    plan.bench.starts += 1;
    let mut store = plan.bench.fresh_store()?;
    let ask = Ask::from_state(name, &plan.streams);
    let (_run, line) = checked_run::begin(&mut store, &plan.bench.ground, &ask)?;
    let mut environment = plan.bench.environment(&[]);
    environment.set(variable, format!("http://{}", provider.address));
    environment.set(PACING_VARIABLE, plan.bench.pacing_folder()?);
    environment.set(ACCOUNT_VARIABLE, CONNECTION);
    let mut child = Child::start(plan.bench.subject, &environment, plan.bench.mark(), None)?;
    child.send(line);
    meanwhile(provider, &child);
    child.kill();
    Ok(())
}

/// A server that refuses everything. It ends with this value.
struct Provider {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Provider {
    fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let (requests, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, has_ended) = (Arc::clone(&requests), Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            for connection in listener.incoming() {
                if has_ended.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(connection) = connection
                    && let Ok(true) = refuse(connection)
                {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Ok(Self { address, requests, ends, thread: Some(thread) })
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // Wakes it.
        drop(TcpStream::connect(self.address));
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Whether it was a request.
fn refuse(mut connection: TcpStream) -> std::io::Result<bool> {
    connection.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut lines = BufReader::new(connection.try_clone()?).lines();
    if lines.next().transpose()?.is_none() {
        return Ok(false);
    }
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    write!(
        connection,
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: {RETRY_AFTER}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    Ok(true)
}
