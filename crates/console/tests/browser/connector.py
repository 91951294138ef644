#!/usr/bin/env python3
"""A connector for the tests of the console: it says what its scenario tells it to, and asks what it is told to ask.

Usage: connector.py SCENARIO. It never touches a network.
"""
import json
import sys
import time

scenario = sys.argv[1]
start = json.loads(sys.stdin.readline())
emitted = 0


def say(**message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def record(stream, key, data, op=None):
    global emitted
    emitted += 1
    message = {"type": "RECORD", "stream": stream, "key": key, "emitted_at": "2031-01-01T00:00:00Z"}
    if op:
        message["op"] = op
    if data is not None:
        message["data"] = data
    say(**message)


def pace(text, interval, backoff=None):
    rate = {
        "object": "collection_rate",
        "current_interval_ms": interval,
        "effective_rate_per_min": 60000 / interval,
        "ceiling_interval_ms": 500,
        "ceiling_rate_per_min": 120,
        "last_backoff": backoff,
    }
    say(type="PROGRESS", message=text, collection_rate=rate)


def circuit(before, after, reason, trigger, requests):
    change = {"previous_state": before, "state": after, "reason": reason, "trigger": trigger}
    budget = {
        "object": "provider_budget_circuit_transition",
        "circuit": change,
        "elapsed_ms": 1000 * requests,
        "request_count": requests,
        "retry_tokens_remaining": 3,
    }
    say(type="PROGRESS", message="circuit", provider_budget=budget)


def gap(key, reason, **more):
    say(
        type="DETAIL_GAP",
        stream="messages",
        record_key=key,
        parent_stream="threads",
        reason=reason,
        detail_locator={"thread": key},
        reference_only=True,
        **more,
    )


def done(status="succeeded", **more):
    say(type="DONE", status=status, records_emitted=emitted, **more)
    sys.stdin.read()
    sys.exit(0 if status == "succeeded" else 1)


def threads(count, first=0):
    for at in range(first, first + count):
        record("threads", f"thread-{at:04}", {"id": f"thread-{at:04}", "title": f"Thread number {at}", "messages": at % 7})


if scenario == "first":
    pace("listing threads", 1000)
    threads(40)
    slowed = {"at_interval_ms": 2400, "reason": "retry_after"}
    for at in range(24):
        interval = 1000 - 18 * at if at < 12 else max(700, 2400 - 110 * (at - 12))
        pace(f"reading message {at}", interval, slowed if at >= 12 else None)
        record("messages", f"message-{at:04}", {"id": f"message-{at:04}", "text": f"The text of message {at}"})
        time.sleep(0.03)
    circuit("closed", "open", "provider_throttle", "provider_throttle", 31)
    circuit("open", "half_open", "reset_timeout", "before_request", 31)
    circuit("half_open", "closed", "success", "success", 33)
    pace("asking again", 900, slowed)
    gap("message-0100", "rate_limited", last_error={"class": "http", "http_status": 429})
    gap("message-0101", "rate_limited", last_error={"class": "http", "http_status": 429})
    gap("message-0102", "retry_exhausted", last_error={"class": "run_cap_deferred"})
    gap("message-0103", "temporary_unavailable", last_error={"class": "http", "http_status": 503})
    hydrated = [f"message-{at:04}" for at in range(24)]
    missing = [f"message-{at:04}" for at in range(100, 104)]
    say(
        type="DETAIL_COVERAGE",
        stream="messages",
        state_stream="threads",
        required_keys=hydrated + missing,
        hydrated_keys=hydrated,
        gap_keys=missing,
        reference_only=True,
    )
    say(type="STATE", stream="threads", cursor={"page": 2})
    done()

if scenario == "second":
    record("threads", "thread-0001", {"id": "thread-0001", "title": "Thread number 1, renamed", "messages": 2})
    record("threads", "thread-0002", None, op="delete")
    pace("nothing else is new", 700)
    say(type="STATE", stream="threads", cursor={"page": 3})
    done()

if scenario == "otp":
    pace("signing in", 1500)
    say(
        type="INTERACTION",
        request_id="code-1",
        kind="otp",
        message="Type the code that was sent to the phone ending in 42.",
        timeout_seconds=300,
    )
    answer = json.loads(sys.stdin.readline())
    ok = answer.get("status") == "success" and answer["data"].get("code") == "314159"
    record("threads", "answered", {"id": "answered", "title": "right" if ok else "wrong", "messages": 0})
    pace("signed in", 1200)
    say(type="STATE", stream="threads", cursor={"page": 4})
    done()

if scenario == "picture":
    # Two pixels by three, as a browser's connector would leave it in its run's folder.
    import base64, os
    folder = os.path.join(sys.argv[2], "runs", start["run_id"])
    os.makedirs(folder, mode=0o700)
    png = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAAEElEQVR4nGPQCKgAIgYUCgA5RQWhggzyYQAAAABJRU5ErkJggg=="
    with open(os.path.join(folder, "action-1.png"), "wb") as file:
        file.write(base64.b64decode(png))
    say(type="INTERACTION", request_id="step-1", kind="manual_action", message="Agree to the new terms.",
        timeout_seconds=300, picture="action-1.png")
    sys.stdin.readline()
    done()

if scenario == "slow":
    for at in range(600):
        pace(f"slow step {at}", 1000 - min(at, 400))
        record("threads", f"slow-{at:04}", {"id": f"slow-{at:04}", "title": f"Slow thread {at}", "messages": 0})
        say(type="STATE", stream="threads", cursor={"slow": at}, slice=True)
        time.sleep(0.2)
    done()

if scenario == "payload":
    payload = sys.argv[2]
    key = sys.argv[3]
    say(type="PROGRESS", message=payload)
    record("threads", payload, {"id": payload, "title": payload, "messages": 1})
    record("messages", payload, {"id": payload, "text": payload})
    say(type="SKIP_RESULT", stream="messages", reason=payload, message=payload)
    say(type="ASSISTANCE", assistance_request_id=key, message=payload, owner_action="act_elsewhere",
        progress_posture="running", response_contract="none")
    gap(payload, "rate_limited", last_error={"class": payload, "message": payload})
    say(type="STATE", stream="threads", cursor={"page": 1}, slice=True)
    say(type="INTERACTION", request_id=key, kind="credentials", message=payload, timeout_seconds=600,
        schema={"type": "object", "properties": {payload: {"type": "string", "title": payload, "description": payload}}})
    sys.stdin.readline()
    done("failed", error={"message": payload, "retryable": False, "code": "payload"})

if scenario == "many":
    records, gaps = int(sys.argv[2]), int(sys.argv[3])
    padding = "x" * 300
    line = '{"type":"RECORD","stream":"threads","key":"many-%08d","data":{"id":"many-%08d","title":"%s"},"emitted_at":"2031-01-01T00:00:00Z"}\n'
    for at in range(records):
        sys.stdout.write(line % (at, at, padding))
        if at % 5000 == 4999:
            sys.stdout.write('{"type":"STATE","stream":"threads","cursor":{"at":%d},"slice":true}\n' % at)
    emitted += records
    for at in range(gaps):
        gap(f"missing-{at:06}", ["rate_limited", "temporary_unavailable", "not_found"][at % 3])
    done()

if scenario == "fails":
    done("failed", error={"message": "The page that lists threads has changed.", "retryable": False, "code": "layout"})

raise SystemExit(f"no such scenario: {scenario}")
