//! A data root with something in it, collected by real runs, and a console over it.
//!
//! Every answer that a test gets through here is compared with `openapi.json`, and has the headers that every answer has.

use crate::client::{Reply, Request};
use crate::description;
use gleaner_app::{App, Program};
use gleaner_console::{BindPolicy, Console, ConsoleError, OtherName, Settings};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const MANIFEST: &str = include_str!("../sample/manifest.json");

/// What the sample connector says at first: records, a tombstone, one that does not fit, gaps of three kinds, a pace.
const FIRST: &str = include_str!("../sample/first.jsonl");

/// And then: one record changes, one goes.
const SECOND: &str = include_str!("../sample/second.jsonl");

pub(crate) fn full_size() -> bool {
    std::env::var_os("GLEANER_TEST_ALL").is_some()
}

/// A data root and its console.
pub(crate) struct World {
    // Ends before its folder does.
    console: Option<Console>,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    root: tempfile::TempDir,
}

impl World {
    /// With a sample connection that ran twice, and one whose name needs care.
    pub(crate) fn new() -> Self {
        let root = root();
        collect(root.path(), "notes", FIRST);
        collect(root.path(), "notes", SECOND);
        collect(root.path(), "a/b &?ü", "{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":0}\n");
        Self::over(root)
    }

    pub(crate) fn over(root: tempfile::TempDir) -> Self {
        let console = start(root.path());
        let token = gleaner_console::token_of(root.path()).expect("a token");
        Self { address: console.address(), console: Some(console), token, root }
    }

    pub(crate) fn console(&self) -> &Console {
        self.console.as_ref().expect("it is there")
    }

    pub(crate) fn stop(&mut self) {
        if let Some(console) = self.console.take() {
            console.stop();
        }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A request of the owner's.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        self.bare(method, path).header("authorization", &format!("Bearer {}", self.token))
    }

    /// A request of a stranger's.
    pub(crate) fn bare(&self, method: &str, path: &str) -> Request {
        Request::new(method, path).header("host", &self.host())
    }

    /// Sends a request, and holds the answer against the description.
    pub(crate) fn send(&self, request: &Request) -> Reply {
        let reply = request.send(self.address);
        let fault = description::fault(&request.method, &request.path, &reply);
        assert_eq!(fault, None, "{} {}", request.method, request.path);
        has_every_header(&reply);
        reply
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send(&self.request("GET", path))
    }

    /// What a GET answers that must work.
    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        let reply = self.get(path);
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    pub(crate) fn act(&self, method: &str, path: &str, body: &str) -> Reply {
        self.send(&self.request(method, path).json(body))
    }

    /// A run that goes on, until it is over or the guard is dropped.
    pub(crate) fn begin(&self, connection: &str, script: &str) -> Running {
        let child = command(self.root.path(), connection, script).spawn().expect("a run");
        Running(child)
    }
}

pub(crate) fn has_every_header(reply: &Reply) {
    let policy = reply.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(reply.header("referrer-policy"), Some("strict-origin"));
    assert_eq!(reply.header("x-frame-options"), Some("DENY"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert!(reply.header("access-control-allow-origin").is_none(), "no page of another origin may ask");
}

pub(crate) fn start(root: &Path) -> Console {
    start_with(root, BindPolicy::default(), &[]).expect("a console")
}

pub(crate) fn start_with(root: &Path, policy: BindPolicy, names: &[&str]) -> Result<Console, ConsoleError> {
    start_at("127.0.0.1:0", root, policy, names)
}

pub(crate) fn start_at(listen: &str, root: &Path, policy: BindPolicy, names: &[&str]) -> Result<Console, ConsoleError> {
    let program = Program { executable: None, check_config: |_| Ok(()) };
    let listen = listen.parse().expect("an address");
    let names = names.iter().map(|name| OtherName::new(name).expect("a name")).collect();
    Console::start(Settings { listen, names, policy }, App::new(root.to_owned(), program))
}

pub(crate) fn root() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o700)).expect("private");
    root
}

/// One whole run of a connector that says these lines.
pub(crate) fn collect(root: &Path, connection: &str, lines: &str) {
    let said = root.join("said.jsonl");
    std::fs::write(&said, lines).expect("a file");
    // It waits for the end of its input, which is the acknowledgement of its end.
    let script = format!("read start; cat '{}'; cat > /dev/null", said.display());
    let output = command(root, connection, &script).stderr(Stdio::piped()).output().expect("a run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "succeeded", "{errors}");
}

fn command(root: &Path, connection: &str, script: &str) -> Command {
    let manifest: PathBuf = root.join("manifest.json");
    std::fs::write(&manifest, MANIFEST).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_console-driver"));
    command.arg("run").arg(root).arg(connection).arg(manifest).args(["--", "sh", "-c", script]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// A run that goes on.
pub(crate) struct Running(Child);

impl Running {
    /// How it ended.
    pub(crate) fn reason(mut self) -> String {
        let mut text = String::new();
        let mut said = self.0.stdout.take().expect("a pipe");
        std::io::Read::read_to_string(&mut said, &mut text).expect("text");
        text.trim().to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _over = self.0.kill();
        let _over = self.0.wait();
    }
}

/// Both ends of very many connections are in this process, which commonly may have 1024 files.
pub(crate) fn allow_many_files() {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current = limit.maximum;
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("what is allowed");
}

/// Waits until something is so, and not for ever.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
