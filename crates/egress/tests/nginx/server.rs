//! A real nginx on loopback, with one server and one zone of `limit_req` per run, so that no run inherits
//! the bucket of another. Accepted and refused requests are read from its own log.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The limit that nobody is told.
pub(crate) const RATE_PER_S: u32 = 20;
const BURST: u32 = 5;

/// Treatment of excess requests by nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Answers 429 at once.
    Refuses,
    /// Makes up to five wait their turn, and answers 503 to more.
    Delays,
}

/// A running nginx; it ends with this value.
pub(crate) struct Nginx {
    process: Child,
    folder: TempDir,
    ports: Vec<u16>,
}

impl Nginx {
    /// Starts it with `servers` servers that share nothing.
    pub(crate) fn start(mode: Mode, servers: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("www")).unwrap();
        fs::write(folder.path().join("www/index.html"), "ok\n").unwrap();
        let ports = free_ports(servers);
        fs::write(folder.path().join("nginx.conf"), config(folder.path(), mode, &ports)).unwrap();
        let process = Command::new("nginx")
            .args(["-e", "stderr", "-p"])
            .arg(folder.path())
            .args(["-c", "nginx.conf"])
            .stderr(Stdio::inherit())
            .spawn()
            .expect("nginx is installed: scripts/test does it");
        let nginx = Self { process, folder, ports };
        nginx.ports.iter().for_each(|&port| wait_for(port));
        nginx
    }

    pub(crate) fn url(&self, server: usize) -> String {
        format!("http://127.0.0.1:{}/", self.ports[server])
    }

    /// When requests came in and whether they were let through, in the order of their ends.
    pub(crate) fn log(&self, server: usize) -> Vec<(f64, bool)> {
        let log = fs::read_to_string(self.folder.path().join(format!("{}.log", self.ports[server]))).unwrap();
        let mut requests: Vec<_> = log
            .lines()
            .map(|line| {
                let (time, status) = line.split_once(' ').unwrap();
                (time.parse().unwrap(), status == "200")
            })
            .collect();
        requests.sort_by(|a: &(f64, bool), b| a.0.total_cmp(&b.0));
        requests
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master ends its worker.
        let _sent = Command::new("kill").arg(self.process.id().to_string()).status();
        let _ended = self.process.wait();
    }
}

fn config(folder: &Path, mode: Mode, ports: &[u16]) -> String {
    let (delay, status) = match mode {
        Mode::Refuses => ("nodelay", 429),
        Mode::Delays => ("", 503),
    };
    let mut text = String::from(
        "daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit;\n\
         events { worker_connections 512; }\n\
         http {\nlog_format brief '$msec $status'; keepalive_requests 1000000;\n",
    );
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(text, "{kind}_temp_path {}/{kind};", folder.display());
    }
    for port in ports {
        let _ = writeln!(
            text,
            "limit_req_zone $server_port zone=z{port}:1m rate={RATE_PER_S}r/s;\n\
             server {{ listen 127.0.0.1:{port}; root {0}/www; access_log {0}/{port}.log brief;\n\
             limit_req zone=z{port} burst={BURST} {delay}; limit_req_status {status}; }}",
            folder.display()
        );
    }
    text + "}\n"
}

/// Ports that were free a moment ago. All are held until all are found.
fn free_ports(count: usize) -> Vec<u16> {
    let held: Vec<_> = (0..count).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    held.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

fn wait_for(port: u16) {
    let start = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        assert!(start.elapsed() < Duration::from_secs(10), "nginx does not listen on {port}");
        std::thread::yield_now();
    }
}
