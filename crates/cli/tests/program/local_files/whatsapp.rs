//! Exported chats of WhatsApp: its promises, and what is odd about its files.

use super::{Kind, Rig, append, counts, promises};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;

const ALICE: &str = "WhatsApp Chat with Alice.txt";
const BOB: &str = "WhatsApp Chat - Bob.zip";
const TEAM: &str = "archive/WhatsApp Chat - Team/_chat.txt";

static WHATSAPP: Kind = Kind {
    connector: "whatsapp",
    variable: "WHATSAPP_EXPORT_DIR",
    setting: "export_dir",
    fill,
    first: &[("attachments", 3), ("chats", 3), ("messages", 13)],
    change,
    deleted: &[],
    fill_many,
    one_file: ALICE,
    needed: "",
};

promises!(WHATSAPP =>
    a_first_run_collects_all_and_the_second_nothing,
    a_run_after_changes_brings_what_changed_and_nothing_else,
    a_cap_leaves_the_rest_to_the_next_run,
    a_killed_run_is_gone_on_with,
    a_file_that_may_not_be_read_is_a_gap_until_it_may,
    conformance_passes,
);

const ALICES: &str = "1/31/24, 9:00\u{202f}PM - Messages and calls are end-to-end encrypted.\n\
    1/31/24, 9:01\u{202f}PM - Alice: hello\nin two lines\n\
    1/31/24, 9:01\u{202f}PM - Me: ok\n1/31/24, 9:01\u{202f}PM - Me: ok\n\
    1/31/24, 9:02\u{202f}PM - Alice: IMG-1.jpg (file attached)\nlook\n\
    1/31/24, 9:03\u{202f}PM - Alice: <Media omitted>\n\
    2/1/24, 8:00\u{202f}AM - Alice: This message was deleted\n";

fn fill(folder: &Path) {
    append(&folder.join(ALICE), ALICES.as_bytes());
    append(&folder.join("IMG-1.jpg"), &[7; 321]);
    // A part of the same chat, without its files: it says something else about the same message.
    let again = "1/31/24, 9:01\u{202f}PM - Me: ok\n1/31/24, 9:02\u{202f}PM - Alice: <Media omitted>\nlook\n";
    append(&folder.join("WhatsApp Chat with Alice (1).txt"), again.as_bytes());
    let bobs = "\u{200e}[31.01.24, 21:00:00] Bob: \u{200e}Messages and calls are end-to-end encrypted.\r\n\
        [31.01.24, 21:00:05] Bob: \u{200e}<attached: 00000002-PHOTO.jpg>\r\n[31.01.24, 21:00:06] Me: nice\r\n";
    zip(&folder.join(BOB), &[("_chat.txt", bobs.as_bytes()), ("00000002-PHOTO.jpg", &[1; 99])]);
    let team = "[2024-02-03, 10:00:00] Team: \u{200e}Zoë created this group\n\
        [2024-02-03, 10:00:01] ~ Zoë: hi\n[2024-02-03, 10:00:02] Me: \u{200e}<attached: gone.pdf>\n";
    append(&folder.join(TEAM), team.as_bytes());
    append(&folder.join("readme.txt"), b"not a chat\n");
}

fn zip(path: &Path, files: &[(&str, &[u8])]) {
    let mut archive = zip::ZipWriter::new(fs::File::create(path).unwrap());
    for (name, bytes) in files {
        archive.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

/// One grows, one is exported again under the name of a second download, one is taken away.
fn change(folder: &Path) {
    append(&folder.join(ALICE), b"2/1/24, 8:05\xe2\x80\xafAM - Alice: new\n");
    fs::remove_file(folder.join(BOB)).unwrap();
}

fn fill_many(folder: &Path) {
    for chat in ["Ann", "Ben", "Cid"] {
        let line = |n: u32| {
            format!(
                "{:02}.{:02}.2024, {:02}:{:02} - {chat}: message {n} {}\n",
                n / 300 % 28 + 1,
                n / 8400 + 1,
                n / 60 % 24,
                n % 60,
                "x".repeat(60)
            )
        };
        append(
            &folder.join(format!("WhatsApp Chat with {chat}.txt")),
            (0..6000).map(line).collect::<String>().as_bytes(),
        );
    }
}

fn message(rig: &Rig, text: &str) -> Value {
    let found = rig.records().into_iter().find(|((stream, _), (data, _))| stream == "messages" && data.contains(text));
    serde_json::from_str(&found.unwrap_or_else(|| panic!("{text}")).1.0).unwrap()
}

#[test]
fn messages_are_told_with_their_times_senders_and_files() {
    let rig = Rig::filled(&WHATSAPP, fill);
    let added = rig.gleaner(&[
        "add",
        "whatsapp",
        "--set",
        &format!("export_dir={}", rig.source().display()),
        "--set",
        "time_zone=Europe/Berlin",
        "--name",
        "here",
    ]);
    assert_eq!(added.code, 0, "{added:?}");
    assert_eq!(rig.gleaner(&["run", "here"]).code, 0);
    rig.run_well();
    let query = "SELECT json_extract(data, '$.sent_at') AS at FROM \"here.messages\" WHERE data LIKE '%in two lines%'";
    let zoned = rig.gleaner(&["query", "--json", query]);
    assert!(zoned.stdout.contains("2024-01-31T21:01:00+01:00"), "{zoned:?}");
    let hello = message(&rig, "in two lines");
    assert_eq!(
        (&hello["local_time"], &hello["sender"], &hello["kind"]),
        (&"2024-01-31T21:01:00".into(), &"Alice".into(), &"message".into())
    );
    assert_eq!(hello["text"], "hello\nin two lines");
    let notice = message(&rig, "end-to-end encrypted");
    assert_eq!((&notice["sender"], &notice["kind"]), (&Value::Null, &"notice".into()));
    let photo = message(&rig, "IMG-1.jpg");
    assert_eq!((&photo["kind"], &photo["text"]), (&"media".into(), &"look".into()));
    let attachments = rig
        .records()
        .into_iter()
        .filter(|((stream, _), _)| stream == "attachments")
        .map(|(_, (data, _))| serde_json::from_str::<Value>(&data).unwrap());
    let mut sizes =
        attachments.map(|file| (file["name"].as_str().unwrap().to_owned(), file["bytes"].as_u64())).collect::<Vec<_>>();
    sizes.sort();
    assert_eq!(
        sizes,
        [
            ("00000002-PHOTO.jpg".to_owned(), Some(99)),
            ("IMG-1.jpg".to_owned(), Some(321)),
            ("gone.pdf".to_owned(), None)
        ]
    );
}

#[test]
fn a_later_export_of_a_chat_repeats_nothing_whatever_it_is_called_and_wherever_it_begins() {
    let rig = Rig::filled(&WHATSAPP, fill);
    rig.run_well();
    let before = rig.records();
    // The beginning is gone, as in exports of long chats; something is new; it is an archive now.
    let (_, later) = ALICES.split_at(ALICES.find("1/31/24, 9:01\u{202f}PM - Me: ok").unwrap());
    let later = format!("{later}2/1/24, 9:00\u{202f}AM - Me: and on\n");
    zip(&rig.source().join("WhatsApp Chat with Alice (1).zip"), &[("WhatsApp Chat with Alice.txt", later.as_bytes())]);
    rig.run_well();
    let after = rig.records();
    let new = after.keys().filter(|key| !before.contains_key(*key)).collect::<Vec<_>>();
    assert!(new.len() == 1 && after[new[0]].0.contains("and on"), "{new:?}");
    let messages = |(stream, _): &&(String, String)| stream == "messages";
    assert!(before.keys().filter(messages).all(|key| before[key] == after[key]), "and nothing is changed");
}

#[test]
fn the_same_chat_with_and_without_its_files_is_one_chat() {
    let rig = Rig::new(&WHATSAPP);
    append(&rig.source().join("a/WhatsApp Chat with Eve.txt"), b"1/2/24, 10:00 - Eve: <Media omitted>\nsee\n");
    append(
        &rig.source().join("b/WhatsApp Chat with Eve.txt"),
        b"1/2/24, 10:00 - Eve: IMG-9.jpg (file attached)\nsee\n",
    );
    rig.add();
    rig.run_well();
    let messages = rig.records().keys().filter(|(stream, _)| stream == "messages").count();
    assert_eq!((messages, message(&rig, "IMG-9.jpg")["kind"].clone()), (1, "media".into()));
}

#[test]
fn hostile_and_odd_exports_are_bounded_and_take_nothing_with_them() {
    let rig = Rig::new(&WHATSAPP);
    let folder = rig.source();
    append(&folder.join(ALICE), ALICES.as_bytes());
    // A line of 100 MB, an archive that becomes 40 MB, one that lies about its size, one that is cut off, and none.
    let long = fs::File::create(folder.join("WhatsApp Chat with Long.txt")).unwrap();
    long.set_len(100 << 20).unwrap();
    zip(&folder.join("bomb.zip"), &[("_chat.txt", &vec![b'x'; 40 << 20])]);
    let whole = fs::read(folder.join("bomb.zip")).unwrap();
    fs::write(folder.join("cut.zip"), &whole[..whole.len() / 2]).unwrap();
    let mut lying = whole;
    let end = lying.windows(4).rposition(|four| four == b"PK\x05\x06").unwrap();
    lying[end + 12..end + 16].copy_from_slice(&u32::MAX.to_le_bytes());
    fs::write(folder.join("lying.zip"), lying).unwrap();
    fs::write(folder.join("none.zip"), b"PK").unwrap();
    zip(
        &folder.join("WhatsApp Chat - Mal.zip"),
        &[
            ("../../../../tmp/evil/_chat.txt", b"1/2/24, 10:00 - Mal: <attached: ../../x.sh>\n"),
            ("/etc/passwd.txt", b"x"),
        ],
    );
    append(&folder.join("nul\nname \x1b[2J.txt"), b"1/2/24, 10:00 - N\0: a\0b\n\0\0\n1/2/24, 10:01 - N: \xff\xfe end");
    rig.add();
    let gaps = rig.run_incomplete();
    let expected = [("archive_not_readable", 3), ("chat_not_understood", 2), ("wrong_encoding", 1)];
    assert_eq!(counts(&gaps), expected, "{gaps:?}");
    let said = rig.gleaner(&["gaps", "whatsapp"]).stdout;
    for part in ["Long.txt", "bomb.zip", "cut.zip", "lying.zip", "none.zip", "nul%0aname"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.contains("has no end") && !said.contains('\x1b'), "{said}");
    assert_eq!(message(&rig, "hello")["sender"], "Alice", "the others are there");
    assert_eq!(message(&rig, "../../x.sh")["attachment_name"], "../../x.sh", "a name is text");
    assert!(!Path::new("/tmp/evil").exists());
    assert_eq!(rig.run_incomplete(), gaps, "the next run says the same");
    // An archive that is whole now, and files that are gone, are no gaps any more.
    zip(&folder.join("cut.zip"), &[("_chat.txt", b"1/2/24, 10:00 - Cut: whole again\n")]);
    for name in ["WhatsApp Chat with Long.txt", "bomb.zip", "lying.zip", "none.zip", "nul\nname \x1b[2J.txt"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    rig.run_well();
    assert_eq!(message(&rig, "whole again")["sender"], "Cut");
    assert!(rig.gleaner(&["gaps", "whatsapp"]).stdout.contains("nothing is missing"));
}

/// 120 MB with `GLEANER_TEST_ALL`, six otherwise: memory does not grow with the file.
#[test]
fn a_long_chat_is_read_whole_in_bounded_memory_also_from_an_archive() {
    let rig = Rig::new(&WHATSAPP);
    let messages = if crate::place::is_full_size() { 1_300_000 } else { 60_000 };
    let line = |n: u32| {
        let (day, month, year) = (n / 3000 % 28 + 1, n / 84_000 % 12 + 1, 24 + n / 1_008_000);
        format!("{day:02}.{month:02}.{year}, {:02}:{:02} - Ann: message {n} {}\n", n / 60 % 24, n % 60, "x".repeat(60))
    };
    let text = (0..messages).map(line).collect::<String>();
    append(&rig.source().join("WhatsApp Chat with Ann.txt"), text.as_bytes());
    let part = text[..text.len() / 4].rfind('\n').unwrap() + 1;
    zip(&rig.source().join("WhatsApp Chat - Ann.zip"), &[("_chat.txt", &text.as_bytes()[..part])]);
    rig.add();
    let (_, peak) = rig.run_watched();
    let stored = rig.records().keys().filter(|(stream, _)| stream == "messages").count();
    assert_eq!(stored, messages as usize, "every message is stored, once");
    assert!(peak > 0 && peak < 90_000, "{peak} KiB");
    assert_eq!(rig.run_well(), 0);
}

/// What is left out of a chat is a gap: lines before the first message, and all but one chat of an archive.
#[test]
fn whatever_is_left_out_of_a_chat_is_a_gap() {
    let rig = Rig::new(&WHATSAPP);
    let chat = rig.source().join(ALICE);
    append(&chat, b"somebody's note\n1/2/24, 10:00 - Alice: hi\n1/2/24, 10:01 - Alice: ");
    append(&chat, &[&b"x".repeat(999)[..], b"\n"].concat().repeat(17_000));
    append(&chat, b"1/2/24, 10:02 - Alice: end\n");
    let two = [("a/_chat.txt", &b"1/2/24, 10:00 - A: a\n"[..]), ("b/_chat.txt", b"1/2/24, 10:00 - B: b\n")];
    zip(&rig.source().join("two.zip"), &two);
    let hidden = [("_chat.txt", &b"1/2/24, 10:00 - C: c\n"[..]), ("other.txt", b"1/2/24, 10:00 - D: d\n")];
    zip(&rig.source().join("hidden.zip"), &hidden);
    let document = [("_chat.txt", &b"1/2/24, 10:00 - E: e\n"[..]), ("notes.txt", b"Minutes\n1/2/24, 10:00 - E: e\n")];
    zip(&rig.source().join("document.zip"), &document);
    append(&rig.source().join("WhatsApp Chat with Other.txt"), b"am dritten Mai schrieb A: hallo\n");
    rig.add();
    let gaps = rig.run_incomplete();
    let expected =
        [("chat_not_understood", 1), ("line_too_long", 1), ("lines_before_first_message", 1), ("several_chats", 2)];
    assert_eq!(counts(&gaps), expected, "{gaps:?}");
    assert_eq!(rig.records().keys().filter(|(stream, _)| stream == "messages").count(), 5);
    fs::write(&chat, "1/2/24, 10:00 - Alice: hi\n1/2/24, 10:01 - Alice: x\n").unwrap();
    assert_eq!(counts(&rig.run_incomplete()), [("chat_not_understood", 1), ("several_chats", 2)]);
}

/// A line that is not held may be a message of its own: then the message before it is whole.
#[test]
fn a_message_in_one_line_that_is_too_long_takes_no_other_message_with_it() {
    let rig = Rig::new(&WHATSAPP);
    let chat = rig.source().join(ALICE);
    append(&chat, b"1/2/24, 10:00 - Alice: before\n1/2/24, 10:01 - Alice: ");
    append(&chat, &b"x".repeat(17 * 1024 * 1024));
    append(&chat, b"\n1/2/24, 10:02 - Alice: after\n");
    rig.add();
    assert_eq!(counts(&rig.run_incomplete()), [("line_too_long", 1)]);
    assert_eq!(rig.records().keys().filter(|(stream, _)| stream == "messages").count(), 2);
}

#[test]
fn a_folder_that_is_not_set_or_not_there_is_told_with_what_to_do() {
    let rig = Rig::new(&WHATSAPP);
    assert_eq!(rig.gleaner(&["add", "whatsapp"]).code, 0);
    let unset = rig.gleaner(&["run", "whatsapp"]);
    assert!(unset.code == 1 && unset.stdout.contains("--set export_dir="), "{unset:?}");
    let rig = Rig::new(&WHATSAPP);
    rig.add();
    assert_eq!(rig.run_well(), 0, "an empty folder is no fault");
    fs::remove_dir(rig.source()).unwrap();
    let missing = rig.gleaner(&["run", "whatsapp"]);
    assert!(
        missing.code == 1 && missing.stdout.contains("is not there") && missing.stdout.contains("WHATSAPP_EXPORT_DIR"),
        "{missing:?}"
    );
}
