"""A connector with two streams, slices, gaps, paging and coverage, and one fault of one's choice.

Without a fault it passes every check. `--fault NAME` makes it wrong in one way; the table in suite.rs
says which check catches it. Standard library only.
"""
import json, os, select, signal, sys, time, urllib.error, urllib.request

FAULT = sys.argv[sys.argv.index("--fault") + 1] if "--fault" in sys.argv else ""
ALBUMS, PHOTOS, PAGE = 24, 24, 4
HARD = {3, 9, 14}  # Photos whose first reading fails.
sent = 0


def is_fault(*names):
    return FAULT in names


def write(text):
    data = text.encode("utf-8", "surrogateescape")
    while data:
        try:
            data = data[os.write(1, data):]
        except BlockingIOError:
            return  # Only with the fault slow_reader: the rest of the line is lost.


def say(kind, **fields):
    write(json.dumps({"type": kind, **fields}) + "\n")


def done(status="succeeded", **more):
    count = sent + 1 if is_fault("records_emitted") else sent
    say("DONE", status=status, records_emitted=count, **more)
    if is_fault("done_last"):
        say("PROGRESS", message="one more thing")
    if not is_fault("waits_for_ack"):
        while sys.stdin.buffer.readline():
            pass
    if is_fault("exits_after_ack"):
        time.sleep(60)
    os._exit(0 if (status == "succeeded") != is_fault("exit_code") else 1)


def record(stream, key, data, **more):
    global sent
    sent += 1
    scope = SCOPE.get(stream) or {}
    fields = scope.get("fields")
    if fields and not is_fault("fields"):
        data = {name: value for name, value in data.items() if name in fields or name in ("id", "taken_at")}
    message = {"stream": stream, "key": key, "data": data, "emitted_at": "2031-01-01T08:00:00.5Z", **more}
    say("RECORD", **message)


def state(stream, cursor, **more):
    say("STATE", stream=stream, cursor=cursor, **more)


def album(n):
    key = f"a{n}"
    if is_fault("deterministic") and n == 20:
        key = f"a{time.time_ns()}"
    data = {"id": key, "title": f"Album {n}", "size": n}
    if n == 2:
        key = {"key_shape": 2, "key_type_stable": [key]}.get(FAULT, key)
        data["size"] = "large" if is_fault("fits_schema") else n
        data["title"] = os.environ.get("SHOP_TOKEN") if is_fault("no_credentials_in_output") else data["title"]
        if is_fault("primary_key_matches"):
            data["id"] = "another"
    time_of = {"emitted_at": "yesterday"} if is_fault("emitted_at_is_time") and n == 2 else {}
    record("albums", key, data, **time_of)
    if n == 2 and is_fault("key_unique_in_slice"):
        record("albums", key, {**data, "title": "Another title"})
    if n == 5 and is_fault("deletes_allowed"):
        record("photos", "p1", {"id": "p1"}, op="delete")


def taken_at(n):
    return f"2030-01-{n + 1:02}T00:00:00Z"


def photo(n):
    data = {"id": f"p{n}", "taken_at": taken_at(n), "bytes": 1000 + n, "place": "home"}
    if is_fault("append_only_unchanged"):
        data["bytes"] = time.time_ns()
    record("photos", data["id"], data)


def gap(n, reason, **more):
    message = {"stream": "photos", "parent_stream": "albums", "record_key": f"p{n}", "reason": reason,
               "status": "pending", "reference_only": True, "detail_locator": {"n": n}, **more}
    if is_fault("gap_shape"):
        del message["reference_only"]
    say("DETAIL_GAP", **message)


def wanted(stream, key, when=None):
    scope = SCOPE[stream]
    resources, since = scope.get("resources"), (scope.get("time_range") or {}).get("since")
    if resources and key not in resources and not is_fault("resources"):
        return False
    return not (since and when and when < since and not is_fault("time_range"))


def first(stream, total):
    cursor = (START.get("state") or {}).get(stream) or {}
    at = cursor.get("next", 0)
    if is_fault("complete_after_scope") and START["collection_mode"] == "incremental" and not START.get("state"):
        # A memory of its own, which does not know what was asked for.
        at = total if MEMORY else at
        if any(scope.get("resources") for scope in SCOPE.values()):
            open(os.environ["SHOP_MEMORY"], "w").close()
    if is_fault("resume_bounded") and at < total:
        return 0
    if is_fault("continues_with_little") and is_complete():
        return 0
    return at


def is_complete():
    return ((START.get("state") or {}).get("photos") or {}).get("next") == PHOTOS


def look_at_input():
    if is_fault("early_end_of_input") and select.select([0], [], [], 0.05)[0]:
        time.sleep(60)


def walk_albums():
    for page in range(first("albums", ALBUMS), ALBUMS, PAGE):
        cursor = {"next": page + PAGE}
        if is_fault("resume_complete"):
            state("albums", cursor, slice=True)
        for n in range(page, page + PAGE):
            if wanted("albums", f"a{n}"):
                album(n)
        if not is_fault("resume_complete"):
            state("albums", 7 if is_fault("state_shape") else cursor, slice=True)


def walk_photos():
    required, hydrated, gaps = [], [], []
    budget = (START.get("run_budget") or {}).get("max_requests")
    for page in range(first("photos", PHOTOS), PHOTOS, PAGE):
        if is_fault("resume_complete"):
            state("photos", {"next": page + PAGE}, slice=True)
        for n in range(page, page + PAGE):
            if not wanted("photos", f"p{n}", taken_at(n)):
                continue
            required.append(f"p{n}")
            if budget is not None and len(required) > budget and is_fault("honest_end"):
                required.pop()
            elif budget is not None and len(required) > budget:
                if is_fault("run_budget"):
                    done("failed", error={"message": "budget_used_up", "retryable": True})
                gaps.append(f"p{n}")
                gap(n, "retry_exhausted", last_error={"class": "timeout" if is_fault("cap_class") else "run_cap_deferred"})
            elif n in HARD:
                gaps.append(f"p{n}")
                reason = "because" if is_fault("gap_reasons") else "temporary_unavailable"
                gap(n, reason, last_error={"class": "http_error", "http_status": 503})
            else:
                if n != 5 or not is_fault("hydrated_with_record"):
                    photo(n)
                hydrated.append(f"p{n}")
        if not is_fault("resume_complete"):
            state("photos", {"next": page + PAGE}, slice=True)
    report(required, hydrated, gaps)


def report(required, hydrated, gaps):
    if is_fault("coverage_names_gaps"):
        gaps = gaps[1:]
    if is_fault("coverage_consistent"):
        hydrated = hydrated + hydrated[:1]
    if is_fault("coverage_complete"):
        hydrated = hydrated[1:]
    if not is_fault("coverage_reported") and "albums" in SCOPE:
        say("DETAIL_COVERAGE", reference_only=True, stream="photos", state_stream="albums",
            required_keys=required, hydrated_keys=hydrated, gap_keys=gaps, considered=len(required), covered=len(hydrated))
    if is_fault("coverage_last") and hydrated:
        photo(int(hydrated[0][1:]))


def recover():
    page, request = START["detail_gaps"], 0
    while page:
        for served in page:
            if is_fault("gaps_answered") and request == 1:
                continue
            key, stream = served["record_key"], "albums" if is_fault("gap_streams") else "photos"
            if not wanted("photos", key):
                continue  # It waits.
            if is_fault("gap_streams"):
                record("albums", key, {"id": key, "title": "?", "size": 0})
            elif not is_fault("recovered_with_record"):
                photo(int(key[1:]))
            gap_id = served["gap_id"] + "x" * is_fault("gap_ids")
            say("DETAIL_GAP_RECOVERED", gap_id=gap_id, lease_id=served["lease_id"], stream=stream, reference_only=True)
        if is_fault("gap_pages"):
            return
        request += 1
        say("DETAIL_GAPS_PAGE_REQUEST", request_id=f"page{request}", reference_only=True)
        page = json.loads(sys.stdin.buffer.readline() or '{"detail_gaps": []}')["detail_gaps"]


def begin_badly():
    if is_fault("starts"):
        sys.exit("no such module")
    if is_fault("first_line_in_time", "ends_in_time"):
        if is_fault("ends_in_time"):
            say("PROGRESS", message="soon")
        time.sleep(60)
    if is_fault("stops_on_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if is_fault("no_processes_left") and os.fork() == 0:
        os.setsid()
        for number in (0, 1, 2):
            os.close(number)
        time.sleep(60)
        os._exit(0)
    if is_fault("slow_reader"):
        os.set_blocking(1, False)
    if is_fault("unknown_start_keys") and any("future" in name for name in START):
        done("failed", error={"message": "unknown_key", "retryable": False})
    if is_fault("first_incremental") and START["collection_mode"] == "incremental":
        START["state"].get("albums")
    if is_fault("continues") and is_complete() and not START.get("recovery_only"):
        done("failed", error={"message": "cursor_not_understood", "retryable": False})
    if is_fault("full_run"):
        done("failed", error={"message": "shop_unreachable", "retryable": True})
    if is_fault("done_present"):
        say("PROGRESS", message="here")
        os._exit(1)
    if is_fault("no_credentials_in_errors"):
        print("token", os.environ.get("SHOP_TOKEN"), file=sys.stderr, flush=True)


def ask_provider():
    """Asks the provider, unless it said to come back later: also if that was said to a process that is gone."""
    if not os.environ.get("SHOP_URL"):
        return
    memory = os.path.join(os.environ["GLEANER_PACING_DIR"], "shop.json")
    if os.path.exists(memory) and not is_fault("retry_after_kept"):
        with open(memory) as file:
            if json.load(file)["until"] > time.time():
                done("failed", error={"message": "shop_rate_limited", "retryable": True})
    try:
        urllib.request.urlopen(os.environ["SHOP_URL"], timeout=5).close()
    except urllib.error.HTTPError as error:
        with open(memory, "w") as file:
            json.dump({"until": time.time() + int(error.headers["Retry-After"])}, file)
        time.sleep(60)


def speak_badly():
    bad = {
        "utf8": b'{"type":"PROGRESS","message":"\xff"}\n',
        "utf8_nul": b'{"type":"PROGRESS","message":"\0"}\n',
        "no_noise": b"Connecting to shop...\n",
        "json_objects": b'{"type":"PROGRESS","message":"a","message":"b"}\n',
        "known_types": b'{"type":"PROGRES","message":"a"}\n',
        "message_fields": b'{"type":"PROGRESS"}\n',
        "evidence": b'{"type":"PROGRESS","message":"pace","collection_rate":{"object":"collection_rate","current_interval_ms":0}}\n',
        "no_unasked_questions": b'{"type":"INTERACTION","request_id":"q","kind":"otp","message":"code?"}\n',
        "state_streams": b'{"type":"STATE","stream":"videos","cursor":null}\n',
    }
    if FAULT in bad:
        os.write(1, bad[FAULT])


def main():
    if "SHOP_TOKEN" not in os.environ and not is_fault("missing_credentials"):
        done("failed", error={"message": "shop_credentials_missing", "retryable": False, "code": "credentials_missing"})
    begin_badly()
    if is_fault("credentials_in_progress"):
        say("PROGRESS", message="with " + os.environ["SHOP_TOKEN"])
    if is_fault("utf8_mark"):
        write("\ufeff")
    say("PROGRESS", message="Reading", collection_rate={
        "object": "collection_rate", "current_interval_ms": 50, "effective_rate_per_min": 1200,
        "ceiling_interval_ms": 20, "ceiling_rate_per_min": 3000, "last_backoff": None})
    speak_badly()
    ask_provider()
    recover()
    if not START.get("recovery_only") or is_fault("recovery_only"):
        look_at_input()
        if "albums" in SCOPE:
            walk_albums()
        if "photos" in SCOPE or is_fault("one_stream"):
            SCOPE.setdefault("photos", {"name": "photos"})
            walk_photos()
        if is_fault("streams_in_scope"):
            record("videos", "v1", {"id": "v1"})
    if is_fault("complete_lines"):
        write('{"type":"DONE"')
        os._exit(0)
    if is_fault("done_error"):
        done(error={"message": "all is well", "retryable": False})
    done()


START = json.loads(sys.stdin.buffer.readline())
SCOPE = {stream["name"]: stream for stream in START["scope"]["streams"]}
MEMORY = os.path.exists(os.environ.get("SHOP_MEMORY", ""))
main()
