//! Calendars: their promises, and what is odd about their files and their servers.

use super::{Kind, Rig, append, counts, promises};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

static ICAL: Kind = Kind {
    connector: "ical",
    variable: "ICAL_IMPORT_DIR",
    setting: "import_dir",
    fill,
    first: &[("events", 6), ("occurrences", 9)],
    change,
    deleted: &[
        ("events", GONE_EVENT),
        ("events", CANCELLED_EVENT),
        ("occurrences", GONE_OCCURRENCE),
        ("occurrences", CANCELLED_OCCURRENCE),
    ],
    fill_many,
    one_file: "home.ics",
    needed: "",
};

const GONE_EVENT: &str = "b5cbe621f6a6f1b7e369ceae";
const CANCELLED_EVENT: &str = "95810803cba8edad49b0fbb0";
const GONE_OCCURRENCE: &str = "903f1e7d9d3d4917491f780a";
const CANCELLED_OCCURRENCE: &str = "333d2aa8632959ca0303781e";

promises!(ICAL =>
    a_first_run_collects_all_and_the_second_nothing,
    a_run_after_changes_brings_what_changed_and_nothing_else,
    a_killed_run_is_gone_on_with,
    a_file_that_may_not_be_read_is_a_gap_until_it_may,
    conformance_passes,
);

fn event(uid: &str, lines: &str) -> String {
    format!("BEGIN:VEVENT\r\nUID:{uid}\r\n{}\r\nEND:VEVENT\r\n", lines.replace('\n', "\r\n"))
}

fn calendar(name: &str, events: &[String]) -> String {
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nX-WR-CALNAME:{name}\r\n{}END:VCALENDAR\r\n", events.concat())
}

fn work(rest: &[String]) -> String {
    let zone = "BEGIN:VTIMEZONE\r\nTZID:Head Office\r\nBEGIN:STANDARD\r\nDTSTART:16010101T030000\r\nTZOFFSETFROM:+0200\r\nTZOFFSETTO:+0100\r\n\
        RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10\r\nEND:STANDARD\r\nBEGIN:DAYLIGHT\r\nDTSTART:16010101T020000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\n\
        RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3\r\nEND:DAYLIGHT\r\nEND:VTIMEZONE\r\n";
    calendar("Work", rest).replacen("BEGIN:VEVENT", &format!("{zone}BEGIN:VEVENT"), 1)
}

/// The window in which series are taken apart has a year before this month and two after it.
fn year() -> u64 {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    1970 + seconds / 31_556_952
}

fn standup(exception: &str) -> String {
    let year = year();
    let lines = format!(
        "SUMMARY:Standup\nDTSTART;TZID=Head Office:{year}0328T090000\nDTEND;TZID=Head Office:{year}0328T091500\nRRULE:FREQ=DAILY;COUNT=4\n{exception}"
    );
    event("standup", &lines)
}

fn singles() -> [String; 4] {
    [
        event("trip", "SUMMARY:Trip\nDTSTART;VALUE=DATE:20240501\nDTEND;VALUE=DATE:20240504"),
        event(
            "lunch",
            "SUMMARY:Lunch\\, late\nDTSTART:20240601T120000Z\nDURATION:PT1H\nORGANIZER;CN=Eve:mailto:eve@example.test\nATTENDEE;CN=\"Bob; B\";PARTSTAT=ACCEPTED:mailto:bob@example.test",
        ),
        event("gone", "SUMMARY:Gone\nDTSTART:20240701T120000Z"),
        event("off", "SUMMARY:Off\nDTSTART:20240801T120000Z"),
    ]
}

fn fill(folder: &Path) {
    let [trip, lunch, gone, off] = singles();
    append(&folder.join("work.ics"), work(&[standup("X-NOTE:none"), lunch]).as_bytes());
    append(&folder.join("home.ics"), calendar("Home", &[trip, gone, off]).as_bytes());
    append(&folder.join("single/one.ics"), calendar("Files", &[event("solo", "DTSTART:20240901T120000Z")]).as_bytes());
    append(&folder.join("notes.txt"), b"not a calendar");
}

fn change(folder: &Path) {
    let [trip, lunch, _, off] = singles();
    let off = off.replace("SUMMARY:Off", "SUMMARY:Off\r\nSTATUS:CANCELLED");
    fs::write(folder.join("home.ics"), calendar("Home", &[trip, off])).unwrap();
    fs::write(folder.join("work.ics"), work(&[standup("X-NOTE:none"), lunch.replace("Lunch", "Dinner")])).unwrap();
}

fn fill_many(folder: &Path) {
    let one = |n: u32| {
        event(
            &format!("many-{n}"),
            &format!(
                "SUMMARY:Event {n}\nDESCRIPTION:{}\nDTSTART:20{:02}{:02}{:02}T120000Z",
                "x".repeat(100),
                n / 336 % 30,
                n / 28 % 12 + 1,
                n % 28 + 1
            ),
        )
    };
    append(&folder.join("many.ics"), calendar("Many", &(0..2500).map(one).collect::<Vec<_>>()).as_bytes());
}

fn records(rig: &Rig, stream: &str) -> Vec<(Value, bool)> {
    let of_stream = rig.records().into_iter().filter(|((of, _), _)| of == stream);
    of_stream.map(|(_, (data, deleted))| (serde_json::from_str(&data).unwrap(), deleted)).collect()
}

/// The records that have this, and are not deleted.
fn present(rig: &Rig, stream: &str, summary: &str) -> Vec<Value> {
    let is_it = |(record, deleted): &(Value, bool)| !deleted && record["summary"] == summary;
    let mut found = records(rig, stream).into_iter().filter(is_it).map(|(record, _)| record).collect::<Vec<_>>();
    found.sort_by_key(|record| record["start"].to_string());
    found
}

#[test]
fn events_are_told_with_their_people_and_series_are_taken_apart_in_their_zone() {
    let rig = Rig::filled(&ICAL, fill);
    rig.run_well();
    let lunch = &present(&rig, "events", "Lunch, late")[0];
    assert_eq!(
        (&lunch["start"], &lunch["end"]),
        (&"2024-06-01T12:00:00+00:00".into(), &"2024-06-01T13:00:00+00:00".into())
    );
    assert_eq!(
        (&lunch["organizer_email"], &lunch["attendees"][0]["name"]),
        (&"eve@example.test".into(), &"Bob; B".into())
    );
    let trip = &present(&rig, "events", "Trip")[0];
    assert_eq!(
        (&trip["start"], &trip["end"], &trip["all_day"]),
        (&"2024-05-01".into(), &"2024-05-04".into(), &true.into())
    );
    let days = present(&rig, "occurrences", "Standup");
    let starts = days.iter().map(|day| day["start"].as_str().unwrap()[5..].to_owned()).collect::<Vec<_>>();
    // The clocks change on the last Sunday of March, which is one of these days or the day after them.
    assert!(starts.iter().all(|start| start.contains("T09:00:00+0")) && starts.len() == 4, "{starts:?}");
    assert_eq!((&starts[0][..15], &starts[3][..5]), ("03-28T09:00:00+", "03-31"));
    assert_eq!(days[0]["event_id"], present(&rig, "events", "Standup")[0]["id"]);
}

#[test]
fn a_day_that_is_taken_out_of_a_series_is_deleted_and_one_that_is_moved_keeps_its_name() {
    let rig = Rig::filled(&ICAL, fill);
    rig.run_well();
    let before = present(&rig, "occurrences", "Standup");
    let year = year();
    let moved = event(
        "standup",
        &format!(
            "SUMMARY:Standup\nRECURRENCE-ID;TZID=Head Office:{year}0330T090000\nDTSTART;TZID=Head Office:{year}0330T180000"
        ),
    );
    let all = work(&[standup(&format!("EXDATE;TZID=Head Office:{year}0329T090000")), moved, singles()[1].clone()]);
    fs::write(rig.source().join("work.ics"), all).unwrap();
    let (code, end) = rig.run(&[]);
    assert_eq!((code, end["records_deleted"].as_u64()), (0, Some(1)), "{end}");
    let after = present(&rig, "occurrences", "Standup");
    assert_eq!((after.len(), &after[1]["id"], &after[1]["is_changed"]), (3, &before[2]["id"], &true.into()));
    assert!(after[1]["start"].as_str().unwrap().contains("T18:00:00"));
}

#[test]
fn an_empty_folder_a_half_written_file_and_an_empty_calendar_delete_nothing() {
    let rig = Rig::filled(&ICAL, fill);
    rig.run_well();
    let before = rig.records();
    let whole = fs::read(rig.source().join("home.ics")).unwrap();
    // Somebody is in the middle of writing it.
    fs::write(rig.source().join("home.ics"), &whole[..whole.len() - 60]).unwrap();
    let gaps = rig.run_incomplete();
    assert_eq!(rig.records(), before);
    assert_eq!(counts(&gaps), [("calendar_not_whole", 1), ("event_without_time", 1), ("line_not_readable", 1)]);
    assert_eq!(gaps["calendar_not_whole"][0]["file"], "home.ics");
    for file in ["home.ics", "work.ics", "single/one.ics"] {
        fs::write(rig.source().join(file), calendar("Home", &[])).unwrap();
    }
    assert_eq!((rig.run(&[]).0, rig.records()), (0, before.clone()));
    fs::remove_dir_all(rig.source()).unwrap();
    fs::create_dir(rig.source()).unwrap();
    assert_eq!((rig.run(&[]).0, rig.records()), (0, before.clone()));
    // And with everything back again nothing has changed.
    fill(&rig.source());
    assert_eq!((rig.run(&[]).0, rig.records()), (0, before));
}

#[test]
fn a_cap_leaves_the_rest_of_both_streams_to_the_next_run() {
    let rig = Rig::filled(&ICAL, fill_many);
    let (code, end) = rig.run(&["--max-requests", "1"]);
    assert_eq!(code, 3, "{end}");
    let (fresh, stored) = (rig.fresh(), rig.records().len());
    assert!(stored > 0 && stored < fresh.len(), "{stored} of {}", fresh.len());
    let (mut runs, mut code) = (0, 3);
    while code == 3 && runs < 50 {
        code = rig.run(&["--max-requests", "4"]).0;
        runs += 1;
    }
    assert!(runs > 1);
    assert_eq!((code, rig.records()), (0, fresh), "after {runs} runs");
    assert_eq!(rig.versions(), rig.records().len() as u64, "nothing is stored twice");
}

#[test]
fn hostile_and_odd_calendars_are_bounded_and_take_nothing_with_them() {
    let rig = Rig::new(&ICAL);
    let (folder, year) = (rig.source(), year());
    let second = |uid: &str| {
        event(uid, &format!("SUMMARY:{uid}\nDTSTART:{year}0101T000000Z\nRRULE:FREQ=SECONDLY;COUNT=1000000"))
    };
    append(
        &folder.join("million.ics"),
        calendar("Million", &[second("million"), event("fine", "DTSTART:20240101")]).as_bytes(),
    );
    fs::File::create(folder.join("large.ics")).unwrap().set_len(100 << 20).unwrap();
    let odd = "\u{feff}BEGIN:VCALENDAR\nrubbish\nBEGIN:VEVENT\nUID:odd\nSUMMARY:a\0b\nDTSTART;TZID=Nowhere:20240101T000000\nRRULE:FREQ=SOMETIMES\nEND:VEVENT\n\
        BEGIN:VEVENT\nUID:timeless\nEND:VEVENT\nEND:VCALENDAR\n";
    append(&folder.join("odd\n\x1b[2J.ics"), odd.as_bytes());
    append(
        &folder.join("latin.ics"),
        b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:latin\nSUMMARY:Caf\xe9\nDTSTART:20240101\nEND:VEVENT\nEND:VCALENDAR\n",
    );
    let outside = rig.place.path("outside.ics");
    fs::write(&outside, calendar("Secret", &[event("secret", "SUMMARY:Secret\nDTSTART:20240101")])).unwrap();
    std::os::unix::fs::symlink(&outside, folder.join("link.ics")).unwrap();
    rig.add();
    let gaps = rig.run_incomplete();
    assert_eq!(present(&rig, "occurrences", "million").len(), 10_000);
    let expected = [
        ("calendar_not_whole", 1),
        ("event_without_time", 1),
        ("line_not_readable", 1),
        ("line_too_long", 1),
        ("link_not_followed", 1),
        ("recurrences_cut_off", 1),
        ("rule_not_understood", 1),
        ("wrong_encoding", 1),
        ("zone_not_known", 1),
    ];
    assert_eq!(counts(&gaps), expected, "{gaps:?}");
    assert_eq!(gaps["recurrences_cut_off"][0]["calendar"], "Million");
    assert!(!rig.gleaner(&["gaps", "ical"]).stdout.contains('\x1b'));
    assert_eq!((present(&rig, "events", "Caf\u{fffd}").len(), present(&rig, "events", "Secret").len()), (1, 0));
    assert_eq!(rig.run_incomplete(), gaps, "the next run says the same");
    for name in ["million.ics", "large.ics", "odd\n\x1b[2J.ics", "link.ics"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    assert_eq!(counts(&rig.run_incomplete()), [("wrong_encoding", 1)]);
    fs::write(folder.join("latin.ics"), calendar("latin", &[event("latin", "SUMMARY:Café\nDTSTART:20240101")]))
        .unwrap();
    rig.run_well();
}

/// 120 MB with `GLEANER_TEST_ALL`, eight otherwise: memory does not grow with the file, and every event is stored.
#[test]
fn a_large_calendar_is_read_whole_in_bounded_memory() {
    let rig = Rig::new(&ICAL);
    let events = if crate::place::is_full_size() { 60_000 } else { 4_000 };
    let long = "y".repeat(1900);
    let one = |n: usize| {
        event(
            &format!("uid-{n}"),
            &format!("SUMMARY:event {n}\nDTSTART:20240131T{:02}0000Z\nDESCRIPTION:{long}", n % 24),
        )
    };
    let nameless = event("", "SUMMARY:one\nDTSTART:20240101").replace("UID:\r\n", "").replace("UID:\n", "");
    let other = nameless.replace("SUMMARY:one", "SUMMARY:another");
    let all = (0..events).map(one).chain([nameless, other]).collect::<Vec<_>>();
    append(&rig.source().join("big.ics"), calendar("Big", &all).as_bytes());
    rig.add();
    let (came, peak) = rig.run_watched();
    assert_eq!(came as usize, 2 * (events + 2), "each is an event and an occurrence, with a UID or without");
    assert!(peak > 0 && peak < 90_000, "{peak} KiB");
    assert_eq!(rig.run_well(), 0);
}

/// A server of one calendar, which writes down what it was asked.
#[derive(Clone)]
struct Server {
    address: String,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    status: u16,
    etag: String,
    body: String,
    /// The validator of each request.
    asked: Vec<Option<String>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/private-s3cret/basic.ics?key=s3cret", listener.local_addr().unwrap());
        let server = Self { address, shared: Arc::default() };
        let serving = server.clone();
        thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(|stream| serving.serve(&stream)));
        server
    }

    fn serve(&self, mut stream: &TcpStream) {
        let lines = BufReader::new(stream)
            .lines()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect::<Vec<_>>();
        let validator = lines.iter().find_map(|line| line.strip_prefix("if-none-match: ")).map(ToOwned::to_owned);
        let mut shared = self.shared.lock().unwrap();
        let is_same = shared.status == 200 && validator.as_deref() == Some(&shared.etag);
        let (status, body) = if is_same { (304, "") } else { (shared.status, &*shared.body) };
        let length = body.len();
        let etag = &shared.etag;
        let answer = format!(
            "HTTP/1.1 {status} X\r\netag: {etag}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        drop(stream.write_all(answer.as_bytes()));
        shared.asked.push(validator);
    }

    fn says(&self, status: u16, etag: &str, body: &str) {
        let mut shared = self.shared.lock().unwrap();
        (shared.status, shared.etag, shared.body) = (status, etag.to_owned(), body.to_owned());
    }

    fn take_asked(&self) -> Vec<Option<String>> {
        std::mem::take(&mut self.shared.lock().unwrap().asked)
    }
}

fn subscribed(server: &Server) -> Rig {
    let rig = Rig::new(&ICAL);
    let added = rig.gleaner(&["add", "ical", "--set", &format!("subscription_url={}", server.address)]);
    assert_eq!(added.code, 0, "{added:?}");
    rig
}

/// Single events on the first of a month of this year and the next.
fn monthly(months: std::ops::Range<u64>) -> String {
    let one = |n: u64| {
        event(
            &format!("m{n}"),
            &format!("SUMMARY:Month {n}\nDTSTART:{}{:02}01T120000Z", year() - 1 + n / 12, n % 12 + 1),
        )
    };
    calendar("Feed", &months.map(one).collect::<Vec<_>>())
}

#[test]
fn a_subscription_is_asked_whether_it_changed_and_its_address_is_nowhere() {
    let server = Server::start();
    server.says(200, "\"one\"", &monthly(0..36));
    let rig = subscribed(&server);
    assert_eq!(rig.run_well(), 72);
    assert_eq!(server.take_asked(), [None]);
    assert_eq!(rig.run_well(), 0);
    assert_eq!(server.take_asked(), [Some("\"one\"".to_owned())], "one request, with what we have");
    // A server that does not know validators costs its calendar, and no record.
    server.says(200, "\"two\"", &monthly(0..36));
    assert_eq!(rig.run_well(), 0);
    // The past is forgotten by the feed, and one event to come was deleted.
    server.says(200, "\"three\"", &monthly(3..36).replace("SUMMARY:Month 35", "SUMMARY:Month 35\r\nSTATUS:CANCELLED"));
    let (code, end) = rig.run(&[]);
    assert_eq!((code, end["records_deleted"].as_u64()), (0, Some(2)), "{end}");
    assert_eq!((present(&rig, "events", "Month 0").len(), present(&rig, "events", "Month 35").len()), (1, 0));
    server.says(200, "\"four\"", &monthly(3..34));
    let (code, end) = rig.run(&[]);
    assert_eq!((code, end["records_deleted"].as_u64()), (0, Some(2)), "{end}");
    let logs = rig.gleaner(&["export", "ical"]).stdout
        + &rig.gleaner(&["runs", "--json"]).stdout
        + &rig.gleaner(&["query", "SELECT message FROM events"]).stdout;
    assert!(!logs.contains("s3cret"), "{logs}");
}

#[test]
fn a_server_in_trouble_ends_the_run_and_deletes_nothing() {
    let server = Server::start();
    server.says(200, "\"one\"", &monthly(0..24));
    let rig = subscribed(&server);
    rig.run_well();
    let before = rig.records();
    let half = monthly(0..24);
    for (status, body, part) in [
        (404, "", "answered 404"),
        (200, "<html>We will be back soon</html>", "no whole calendar"),
        (200, "", "no whole calendar"),
        (200, &half[..half.len() - 40], "no whole calendar"),
    ] {
        server.says(status, "\"other\"", body);
        let ran = rig.gleaner(&["run", "ical"]);
        assert!(ran.code == 1 && ran.stdout.contains(part), "{part}: {ran:?}");
        assert!(!format!("{ran:?}").contains("s3cret"), "{ran:?}");
        assert_eq!(rig.records(), before);
    }
    server.says(200, "\"other\"", &calendar("Feed", &[]));
    assert_eq!((rig.run_well(), rig.records()), (0, before), "an empty calendar deletes nothing either");
}

#[test]
fn what_is_not_set_or_not_there_is_told_with_what_to_do() {
    let rig = Rig::new(&ICAL);
    assert_eq!(rig.gleaner(&["add", "ical"]).code, 0);
    let unset = rig.gleaner(&["run", "ical"]);
    assert!(
        unset.code == 1 && unset.stdout.contains("--set import_dir=") && unset.stdout.contains("subscription_url"),
        "{unset:?}"
    );
    let rig = Rig::new(&ICAL);
    rig.add();
    fs::remove_dir(rig.source()).unwrap();
    let missing = rig.gleaner(&["run", "ical"]);
    assert!(
        missing.code == 1 && missing.stdout.contains("is not there") && missing.stdout.contains("ICAL_IMPORT_DIR"),
        "{missing:?}"
    );
}
