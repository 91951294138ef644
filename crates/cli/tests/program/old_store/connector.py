"""A foreign connector that moves its cursor past what it was not asked for, and claims what it did not send.

`make.sh` filled the old store with it. The tests run it again, with `honest`, to see what a repair brings back.
"""
import json
import sys

KIND = sys.argv[1]
HONEST = "honest" in sys.argv[2:]
COUNT = 30
start = json.loads(sys.stdin.readline())
scope = {stream["name"]: stream for stream in start["scope"]["streams"]}
state = start.get("state") or {}
emitted = 0


def say(**message):
    print(json.dumps(message), flush=True)


def record(stream, key, data=None, **more):
    global emitted
    emitted += 1
    say(type="RECORD", stream=stream, key=key, emitted_at="2026-01-01T00:00:00Z", **({"data": data} if data else {}), **more)


def seen(stream):
    return (state.get(stream) or {}).get("n", 0)


def wanted(stream, key, at):
    asked = scope[stream]
    since = (asked.get("time_range") or {}).get("since") or ""
    return (not asked.get("resources") or key in asked["resources"]) and at >= since[:10]


def chat():
    if "conversations" not in scope:
        return
    keys = [f"c{n}" for n in range(seen("conversations") + 1, 4)]
    for key in keys:
        record("conversations", key, {"id": key, "title": f"conversation {key}"})
    if "messages" in scope:
        for key in keys:
            # The one that claims to have hydrated sends nothing.
            if KIND != "claims" or HONEST:
                record("messages", key, {"id": key, "text": f"messages of {key}"})
        say(type="DETAIL_COVERAGE", stream="messages", state_stream="conversations", required_keys=keys,
            hydrated_keys=keys, reference_only=True)
    say(type="STATE", stream="conversations", cursor={"n": 3})


def notes():
    if "notes" not in scope:
        return
    for n in range(seen("notes") + 1, COUNT + 1):
        key, at = f"n{n:02}", f"2026-01-{n:02}"
        if wanted("notes", key, at):
            record("notes", key, {"id": key, "at": at + "T00:00:00Z", "size": n})
    say(type="STATE", stream="notes", cursor={"n": COUNT})


def gaps():
    """Two notes are missing at first; the next run says that it brought them, and did not."""
    for gap in start["detail_gaps"]:
        say(type="DETAIL_GAP_ATTEMPTED", gap_id=gap["gap_id"], lease_id=gap["lease_id"], stream="notes", reference_only=True)
        if HONEST:
            record("notes", gap["record_key"], {"id": gap["record_key"], "size": 1})
        say(type="DETAIL_GAP_RECOVERED", gap_id=gap["gap_id"], lease_id=gap["lease_id"], stream="notes", reference_only=True)
    if not seen("notes"):
        record("notes", "n1", {"id": "n1", "size": 1})
        for key in [] if HONEST else ["n2", "n3"]:
            say(type="DETAIL_GAP", stream="notes", record_key=key, reason="temporary_unavailable", status="pending",
                last_error={"class": "http", "http_status": 503}, reference_only=True)
        say(type="STATE", stream="notes", cursor={"n": 1})


def mixed():
    """Versions, a tombstone, quarantine, a skip, news, a gap that waits and one that was given up."""
    run = seen("notes") + 1
    say(type="PROGRESS", message=f"run {run}", stream="notes", count=run)
    record("notes", "same", {"id": "same", "size": 1})
    record("notes", "changes", {"id": "changes", "size": run})
    if run == 2:
        record("notes", "changes too", None, op="delete")
    else:
        record("notes", "changes too", {"id": "changes too", "size": 1})
    record("notes", "odd", {"id": "odd", "size": "not a number"})
    if run == 1:
        say(type="DETAIL_GAP", stream="notes", record_key="waits", reason="temporary_unavailable", status="pending",
            reference_only=True, detail_locator={"page": 7.50})
        say(type="DETAIL_GAP", stream="notes", record_key="ignored", reason="not_found", status="pending",
            last_error={"class": "http", "http_status": 404}, reference_only=True)
        say(type="SKIP_RESULT", stream="notes", reason="too_large", message="one note is too large")
    say(type="STATE", stream="notes", cursor={"n": run})


{"chat": chat, "claims": chat, "since": notes, "resource": notes, "gaps": gaps, "mixed": mixed}[KIND]()
say(type="DONE", status="succeeded", records_emitted=emitted)
sys.stdin.read()
