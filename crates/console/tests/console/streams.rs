//! The stream of events: at once, soon after a change, and over when the console is.

use crate::world::{World, allow_many_files, until};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn open(world: &World) -> BufReader<TcpStream> {
    let socket = world.request("GET", "/api/v1/events").open(world.address);
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    BufReader::new(socket)
}

/// The next line with data in it.
fn data(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let (mut line, end) = (String::new(), Instant::now() + Duration::from_secs(30));
    loop {
        assert!(Instant::now() < end, "nothing but signs of life");
        line.clear();
        if stream.read_line(&mut line).expect("a stream") == 0 {
            return None;
        }
        if let Some(data) = line.strip_prefix("data: ") {
            return Some(data.trim().to_owned());
        }
    }
}

fn number(data: &str) -> u64 {
    serde_json::from_str::<serde_json::Value>(data).expect("JSON")["number"].as_u64().expect("a number")
}

/// The last number once nothing more is said: the first look of the thread that follows the store counts as a change.
fn settled(stream: &mut BufReader<TcpStream>) -> u64 {
    let mut last = number(&data(stream).expect("a greeting"));
    stream.get_ref().set_read_timeout(Some(Duration::from_secs(2))).expect("a limit");
    let mut line = String::new();
    while stream.read_line(&mut line).is_ok() {
        last = line.strip_prefix("data: ").map_or(last, number);
        line.clear();
    }
    stream.get_ref().set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    last
}

#[test]
fn a_change_is_told_to_everyone() {
    let world = World::new();
    let mut streams = [open(&world), open(&world)];
    let before = streams.each_mut().map(settled);
    assert_eq!(world.act("POST", "/api/v1/connections/notes/pause", "{}").status, 204);
    for (stream, before) in streams.iter_mut().zip(before) {
        assert!(number(&data(stream).expect("a change")) > before);
    }
}

#[test]
fn a_question_is_told_of() {
    let world = World::new();
    let mut stream = open(&world);
    let run = world.begin("notes", "read start; echo '{\"type\":\"INTERACTION\",\"request_id\":\"q\",\"kind\":\"otp\",\"message\":\"m\"}'; read answer; exit 1");
    while !data(&mut stream).expect("events").contains("\"questions_open\":1") {}
    drop(run);
}

#[test]
fn there_is_a_most_and_a_place_is_free_again_when_a_tab_is_closed() {
    allow_many_files();
    let world = World::new();
    let mut streams = (0..512).map(|_| open(&world)).collect::<Vec<_>>();
    for stream in &mut streams {
        data(stream).expect("a greeting");
    }
    let one_more = world.get("/api/v1/events");
    assert_eq!((one_more.status, &one_more.json()["error"]["code"]), (429, &serde_json::json!("too_many_streams")));
    assert_eq!(world.get("/api/v1/status").status, 200, "everything else goes on");
    streams.pop();
    until("a free place", || {
        let mut stream = open(&world);
        let mut line = String::new();
        stream.read_line(&mut line).expect("a status");
        line.contains(" 200 ").then_some(())
    });
}

#[test]
fn the_end_of_the_console_ends_the_streams() {
    let mut world = World::new();
    let mut stream = open(&world);
    data(&mut stream).expect("a greeting");
    world.stop();
    while data(&mut stream).is_some() {}
}

#[test]
fn a_proxy_is_told_to_hold_nothing_back() {
    let world = World::new();
    let mut stream = open(&world);
    let (mut head, mut line) = (String::new(), String::new());
    while stream.read_line(&mut line).expect("a head") > 2 {
        head.push_str(&line.to_ascii_lowercase());
        line.clear();
    }
    assert!(head.contains("x-accel-buffering: no") && head.contains("cache-control: no-store"), "{head}");
}
