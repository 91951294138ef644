//! What is secret stays where it belongs (F86, S1): not in a log, not in a file, not in an answer.

use crate::acts;
use crate::world::World;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

const CANARY: &str = "c4n4ry-0tp";

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn no_secret_is_in_a_log_a_file_or_an_answer() {
    let log = Log::default();
    let kept = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(move || kept.clone());
    tracing::subscriber::set_global_default(subscriber.finish()).expect("the only one of this process");
    let world = World::new();
    let mut answers = String::new();
    let link = world.console().new_link().expect("a link");
    let code = link.split_once("code=").expect("a code").1.to_owned();
    let form = world.bare("POST", "/open").header("origin", &world.origin()).form(&format!("code={code}"));
    let cookie = form.send(world.address).header("set-cookie").expect("a cookie").to_owned();
    let session = cookie.split_once('=').expect("a pair").1.split(';').next().expect("a value").to_owned();
    answers += form.send(world.address).text();
    for bad in [format!("Bearer {}x", world.token), format!("Token {}", world.token)] {
        for _ in 0..25 {
            answers += world.bare("GET", "/nothing").header("authorization", &bad).send(world.address).text();
        }
    }
    let run = world.begin("notes", acts::ASKS);
    let path = format!("/api/v1/interactions/{}/answer", acts::question(&world)["id"]);
    for wrong in
        [format!("{{\"data\":\"{CANARY}\"}}"), format!("{{\"{CANARY}\":1}}"), format!("{{\"data\":{{\"{CANARY}")]
    {
        answers += world.act("POST", &path, &wrong).text();
    }
    answers +=
        world.act("POST", "/api/v1/interactions/99/answer", &format!("{{\"data\":{{\"a\":\"{CANARY}\"}}}}")).text();
    answers += world.act("POST", &path, &format!("{{\"data\":{{\"code\":\"{CANARY}\"}}}}")).text();
    assert_eq!(run.reason(), "succeeded");
    for path in ["/api/v1/status", "/api/v1/connections/notes", "/metrics", "/api/v1/connections/notes/runs"] {
        answers += world.get(path).text();
    }
    let log = String::from_utf8(log.0.lock().expect("a log").clone()).expect("text");
    assert!(log.contains("wrong credentials"), "the log is really written: {log}");
    let files = files_but_the_token(world.root());
    for (name, secret) in [("token", world.token.as_str()), ("code", &code), ("session", &session), ("answer", CANARY)]
    {
        assert!(!log.contains(secret), "{name} in the log");
        assert!(!answers.contains(secret), "{name} in an answer");
        let found = files.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "{name} in a file");
    }
    assert!(files.windows(8).any(|part| part == b"answered"), "the files are really read");
}

fn files_but_the_token(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            bytes.extend(files_but_the_token(&path));
        } else if path.is_file() && !path.ends_with("console/token") {
            bytes.extend(std::fs::read(&path).expect("a file"));
        }
    }
    bytes
}
