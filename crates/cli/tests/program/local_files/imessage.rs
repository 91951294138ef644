//! Messages of Apple: its promises, and what is odd about its database.

use super::{Kind, Rig, counts, promises};
use rusqlite::Connection;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

static IMESSAGE: Kind = Kind {
    connector: "imessage",
    variable: "IMESSAGE_DB_PATH",
    setting: "db_path",
    fill,
    first: &[("attachments", 2), ("chats", 2), ("messages", 7), ("reactions", 2)],
    change,
    deleted: &[("messages", "M-2"), ("messages", "M-3")],
    fill_many,
    one_file: "chat.db",
    needed: "chat.db",
};

promises!(IMESSAGE =>
    a_first_run_collects_all_and_the_second_nothing,
    a_run_after_changes_brings_what_changed_and_nothing_else,
    a_killed_run_is_gone_on_with,
    a_source_that_is_missing_is_told_with_what_to_do,
    conformance_passes,
);

/// The tables as macOS makes them, as far as they matter here.
const SCHEMA: &str = "
    CREATE TABLE handle (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT, service TEXT);
    CREATE TABLE chat (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE, style INTEGER, chat_identifier TEXT,
        service_name TEXT, display_name TEXT);
    CREATE TABLE message (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE NOT NULL, text TEXT,
        attributedBody BLOB, handle_id INTEGER DEFAULT 0, subject TEXT, service TEXT, date INTEGER, date_read INTEGER,
        date_delivered INTEGER, is_from_me INTEGER DEFAULT 0, item_type INTEGER DEFAULT 0,
        cache_has_attachments INTEGER DEFAULT 0, associated_message_guid TEXT, associated_message_type INTEGER DEFAULT 0,
        thread_originator_guid TEXT, date_retracted INTEGER, date_edited INTEGER);
    CREATE TABLE attachment (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT UNIQUE, created_date INTEGER,
        filename TEXT, uti TEXT, mime_type TEXT, transfer_state INTEGER, is_outgoing INTEGER, transfer_name TEXT,
        total_bytes INTEGER, is_sticker INTEGER);
    CREATE TABLE chat_handle_join (chat_id INTEGER, handle_id INTEGER);
    CREATE TABLE chat_message_join (chat_id INTEGER, message_id INTEGER, message_date INTEGER);
    CREATE INDEX chat_message_join_idx ON chat_message_join (message_id);
    CREATE TABLE message_attachment_join (message_id INTEGER, attachment_id INTEGER);
    CREATE TABLE deleted_messages (ROWID INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT NOT NULL);
    CREATE TABLE chat_recoverable_message_join (chat_id INTEGER, message_id INTEGER, delete_date INTEGER);
    CREATE TRIGGER add_to_deleted_messages AFTER DELETE ON message BEGIN
        INSERT INTO deleted_messages (guid) VALUES (OLD.guid); END;";

fn database(folder: &Path) -> Connection {
    let database = Connection::open(folder.join("chat.db")).unwrap();
    database.pragma_update(None, "journal_mode", "WAL").unwrap();
    database
}

/// The archive in which Messages keeps a text.
fn archived(text: &str) -> Vec<u8> {
    let mut archive = b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84\x84\x84\x12NSAttributedString\x00\x84\x84\x08NSObject\x00\x85\x92\x84\x84\x84\x08NSString\x01\x94\x84\x01+".to_vec();
    archive.push(u8::try_from(text.len()).unwrap());
    archive.extend(text.as_bytes());
    archive.extend(b"\x86\x84\x02iI\x01\x05\x86");
    archive
}

fn fill(folder: &Path) {
    let database = database(folder);
    database.execute_batch(SCHEMA).unwrap();
    database
        .execute_batch(
            "INSERT INTO handle (id) VALUES ('+4915100000'), ('eve@example.test');
             INSERT INTO chat (guid, style, chat_identifier, service_name, display_name) VALUES
                ('iMessage;-;+4915100000', 45, '+4915100000', 'iMessage', NULL), ('iMessage;+;chat7', 43, 'chat7', 'iMessage', 'Team');
             INSERT INTO chat_handle_join VALUES (1, 1), (2, 1), (2, 2);
             INSERT INTO message (guid, text, handle_id, date, service) VALUES ('M-1', 'old seconds', 1, 500000000, 'SMS');
             INSERT INTO message (guid, text, handle_id, date, date_read) VALUES
                ('M-2', 'to be deleted', 1, 700000000000000000, 0), ('M-3', 'to be put away', 1, 700000001000000000, 0);
             INSERT INTO message (guid, text, is_from_me, date, date_edited) VALUES ('M-5', NULL, 1, 700000003000000000, 700000004000000000);
             INSERT INTO message (guid, text, handle_id, date, cache_has_attachments) VALUES ('M-6', char(65532), 2, 700000005000000000, 1);
             INSERT INTO message (guid, handle_id, date, associated_message_guid, associated_message_type) VALUES
                ('R-1', 1, 700000006000000000, 'p:0/M-1', 2000), ('R-2', 1, 700000007000000000, 'p:0/M-1', 3000);
             INSERT INTO message (guid, item_type, date) VALUES ('M-7', 2, 700000008000000000);
             INSERT INTO chat_message_join SELECT 1, ROWID, date FROM message;
             INSERT INTO attachment (guid, filename, transfer_name, mime_type, total_bytes) VALUES
                ('A-1', '~/Library/Messages/Attachments/a.heic', 'a.heic', 'image/heic', 1234), ('A-2', NULL, NULL, NULL, -1);
             INSERT INTO message_attachment_join SELECT ROWID, 1 FROM message WHERE guid = 'M-6';",
        )
        .unwrap();
    let body = archived("out of the archive");
    database
        .execute(
            "INSERT INTO message (guid, attributedBody, handle_id, date) VALUES ('M-4', ?1, 1, 700000002000000000)",
            [body],
        )
        .unwrap();
}

/// One is new, one is deleted, one is in "Recently Deleted", one was edited and one was read.
fn change(folder: &Path) {
    database(folder)
        .execute_batch(
            "INSERT INTO message (guid, text, handle_id, date) VALUES ('M-8', 'new', 1, 700000009000000000);
             DELETE FROM message WHERE guid = 'M-2';
             INSERT INTO chat_recoverable_message_join SELECT 1, ROWID, 1 FROM message WHERE guid = 'M-3';
             UPDATE message SET text = 'edited', date_edited = 700000010000000000 WHERE guid = 'M-1';
             UPDATE message SET date_read = 700000011000000000 WHERE guid = 'M-4';",
        )
        .unwrap();
}

fn fill_many(folder: &Path) {
    fill(folder);
    database(folder)
        .execute_batch(
            "INSERT INTO message (guid, text, handle_id, date)
             WITH RECURSIVE n (n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM n WHERE n < 6100)
             SELECT 'N-' || n, printf('message %d %.200c', n, 'x'), 1, 700000000000000000 + n * 1000000000 FROM n;",
        )
        .unwrap();
}

fn record(rig: &Rig, stream: &str, key: &str) -> Value {
    serde_json::from_str(&rig.records()[&(stream.to_owned(), key.to_owned())].0).unwrap()
}

#[test]
fn rows_become_records_with_their_texts_dates_people_and_what_became_of_them() {
    let rig = Rig::filled(&IMESSAGE, fill);
    rig.run_well();
    let message = |key: &str| record(&rig, "messages", key);
    assert_eq!(
        (&message("M-1")["sent_at"], &message("M-1")["sender"]),
        (&"2016-11-05T00:53:20.000Z".into(), &"+4915100000".into())
    );
    assert_eq!(
        (&message("M-4")["text"], &message("M-4")["sent_at"]),
        (&"out of the archive".into(), &"2023-03-08T20:26:42.000Z".into())
    );
    assert_eq!(
        (&message("M-4")["chat_id"], &message("M-1")["chat_id"]),
        (&Value::Null, &"iMessage;-;+4915100000".into())
    );
    assert_eq!(
        (&message("M-5")["unsent_at"], &message("M-5")["text"]),
        (&"2023-03-08T20:26:44.000Z".into(), &Value::Null)
    );
    assert_eq!((&message("M-6")["text"], &message("M-6")["has_attachments"]), (&Value::Null, &true.into()));
    assert_eq!(message("M-7")["kind"], "name_changed");
    let (given, taken) = (record(&rig, "reactions", "R-1"), record(&rig, "reactions", "R-2"));
    assert_eq!(
        (&given["message_id"], &given["kind"], &given["is_removed"]),
        (&"M-1".into(), &"loved".into(), &false.into())
    );
    assert_eq!(taken["is_removed"], true);
    let team = record(&rig, "chats", "iMessage;+;chat7");
    assert_eq!(
        (&team["is_group"], &team["participants"]),
        (&true.into(), &serde_json::json!(["+4915100000", "eve@example.test"]))
    );
    assert_eq!(
        (&record(&rig, "attachments", "A-1")["message_id"], &record(&rig, "attachments", "A-2")["bytes"]),
        (&"M-6".into(), &Value::Null)
    );
    change(&rig.source());
    rig.run_well();
    assert_eq!(
        (&record(&rig, "messages", "M-1")["text"], &record(&rig, "messages", "M-4")["read_at"]),
        (&"edited".into(), &"2023-03-08T20:26:51.000Z".into())
    );
    // What was put away is taken out again.
    database(&rig.source()).execute_batch("DELETE FROM chat_recoverable_message_join").unwrap();
    rig.run_well();
    assert!(!rig.records()[&("messages".to_owned(), "M-3".to_owned())].1);
}

#[test]
fn what_is_only_in_the_log_is_collected_while_messages_is_writing_and_nothing_is_left_beside_it() {
    let rig = Rig::filled(&IMESSAGE, fill);
    let writer = database(&rig.source());
    writer.execute_batch("PRAGMA wal_autocheckpoint = 0; BEGIN; INSERT INTO message (guid, text, date) VALUES ('W-1', 'in the log', 700000000);").unwrap();
    writer.execute_batch("COMMIT; BEGIN IMMEDIATE; INSERT INTO message (guid, text, date) VALUES ('W-2', 'not committed', 700000000);").unwrap();
    let names = || {
        fs::read_dir(rig.source())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let before = (names(), fs::read(rig.source().join("chat.db")).unwrap());
    let temporary = rig.place.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let ran = crate::place::answer(rig.command(&["run", "imessage"]).env("TMPDIR", &temporary));
    assert_eq!(ran.code, 0, "{ran:?}");
    let records = rig.records();
    assert!(records.contains_key(&("messages".to_owned(), "W-1".to_owned())));
    assert!(!records.contains_key(&("messages".to_owned(), "W-2".to_owned())));
    assert_eq!((names(), fs::read(rig.source().join("chat.db")).unwrap()), before);
    let left = fs::read_dir(&temporary)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("gleaner-imessage"));
    assert_eq!(left.count(), 0, "no copy of messages is left behind");
    writer.execute_batch("COMMIT").unwrap();
    assert!(rig.run_well() > 0);
}

#[test]
fn a_cap_leaves_the_rest_of_each_stream_to_the_next_run() {
    let rig = Rig::filled(&IMESSAGE, fill_many);
    let (code, end) = rig.run(&["--max-requests", "3"]);
    assert_eq!(code, 3, "{end}");
    let (fresh, stored) = (rig.fresh(), rig.records().len());
    assert!(stored > 0 && stored < fresh.len(), "{stored} of {}", fresh.len());
    let (mut runs, mut code) = (0, 3);
    while code == 3 && runs < 50 {
        code = rig.run(&["--max-requests", "5"]).0;
        runs += 1;
    }
    assert!(runs > 1);
    assert_eq!((code, rig.records()), (0, fresh), "after {runs} runs");
    assert_eq!(rig.versions(), rig.records().len() as u64, "nothing is stored twice");
}

#[test]
fn a_new_message_in_a_long_history_costs_little_and_an_old_edit_costs_its_bucket() {
    let rig = Rig::filled(&IMESSAGE, fill_many);
    rig.run_well();
    database(&rig.source())
        .execute_batch("INSERT INTO message (guid, text, date) VALUES ('L-1', 'last', 700000000)")
        .unwrap();
    assert_eq!(rig.run_well(), 1);
    database(&rig.source())
        .execute_batch("UPDATE message SET text = 'x', date_edited = 1 WHERE guid = 'N-5000'")
        .unwrap();
    assert_eq!(rig.run_well(), 1000);
    assert_eq!(record(&rig, "messages", "N-5000")["text"], "x");
    assert_eq!(rig.versions(), rig.records().len() as u64 + 1);
}

#[test]
fn an_older_database_without_newer_columns_is_read() {
    let rig = Rig::new(&IMESSAGE);
    database(&rig.source())
        .execute_batch(
            "CREATE TABLE handle (ROWID INTEGER PRIMARY KEY, id TEXT); CREATE TABLE chat (ROWID INTEGER PRIMARY KEY, guid TEXT);
             CREATE TABLE message (ROWID INTEGER PRIMARY KEY, guid TEXT, text TEXT, handle_id INTEGER, date INTEGER);
             CREATE TABLE chat_handle_join (chat_id, handle_id); CREATE TABLE chat_message_join (chat_id, message_id);
             CREATE TABLE attachment (ROWID INTEGER PRIMARY KEY, guid TEXT); CREATE TABLE message_attachment_join (message_id, attachment_id);
             INSERT INTO message (guid, text, date) VALUES ('M-1', 'hello', 500000000), (NULL, 'nameless', 1), ('M-3', x'ff41', 'no date'), ('M-4', CAST(x'ff41' AS TEXT), 9e99);",
        )
        .unwrap();
    rig.add();
    let gaps = rig.run_incomplete();
    assert_eq!(rig.records().len(), 3);
    assert_eq!(
        (&record(&rig, "messages", "M-3")["text"], &record(&rig, "messages", "M-4")["text"]),
        (&Value::Null, &"\u{fffd}A".into())
    );
    assert_eq!(counts(&gaps), [("nameless_row", 1), ("text_not_readable", 1), ("wrong_encoding", 1)], "{gaps:?}");
    assert_eq!((&gaps["nameless_row"][0]["table"], &gaps["nameless_row"][0]["row"]), (&"message".into(), &2.into()));
    assert_eq!(rig.run_incomplete(), gaps, "the next run says the same");
    // A row that has a name now is read again, and one that is gone is missed no more.
    let repair = "UPDATE message SET guid = 'M-2' WHERE guid IS NULL; DELETE FROM message WHERE guid = 'M-3';
        UPDATE message SET text = 'whole' WHERE guid = 'M-4';";
    database(&rig.source()).execute_batch(repair).unwrap();
    assert_eq!(rig.run(&[]).0, 0, "{}", rig.gleaner(&["gaps", "imessage"]).stdout);
    assert_eq!(record(&rig, "messages", "M-2")["text"], "nameless");
    assert_eq!(record(&rig, "messages", "M-4")["text"], "whole");
}

#[test]
fn a_damaged_database_is_told_and_what_was_read_stays() {
    let rig = Rig::filled(&IMESSAGE, fill_many);
    let path = rig.source().join("chat.db");
    let mut bytes = fs::read(&path).unwrap();
    let half = bytes.len() / 2;
    bytes[half..].fill(0x5a);
    fs::write(&path, bytes).unwrap();
    let ran = rig.gleaner(&["run", "imessage"]);
    assert!(ran.code == 1 && ran.stdout.contains("is damaged"), "{ran:?}");
    // Another database altogether.
    fs::remove_file(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE other (x)").unwrap();
    let ran = rig.gleaner(&["run", "imessage"]);
    assert!(ran.code == 1 && ran.stdout.contains("not the one of Messages"), "{ran:?}");
}

#[test]
fn a_database_that_may_not_be_read_is_told_with_what_to_do() {
    let mut rig = Rig::new(&IMESSAGE);
    fill(&rig.source());
    if rustix::process::geteuid().is_root() {
        const NOBODY: u32 = 65_534;
        let root = rig.place.path("");
        chown(&root, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        rig.user = Some(NOBODY);
    }
    rig.add();
    fs::set_permissions(rig.source().join("chat.db"), fs::Permissions::from_mode(0o000)).unwrap();
    let ran = rig.gleaner(&["run", "imessage"]);
    assert!(ran.code == 1 && ran.stdout.contains("Full Disk Access"), "{ran:?}");
}
