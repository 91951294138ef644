"""The connector's side of the protocol, with nothing but the standard library.

    run = Run("manifest.json")            # reads START
    token = run.credential("NAME")        # from the environment, or asks the owner
    fetch = run.client({"Authorization": f"Bearer {token}"})
    run.collect(stream, list_page, detail)
    run.done()

Gaps of earlier runs are tried first. Each page of the list is a slice: its records, its gaps, then its cursor.
A cap ends a run between two details; what is left becomes gaps, and the next run goes on there. At the end
every key that was looked at is accounted for. You need not change this file.
"""
import fcntl
import json
import os
import signal
import sys
import termios
import time
from datetime import datetime, timezone

import exchanges

REST = "gleaner:rest-of-stream"  # The gap that stands for everything after the last cursor.
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list}


class Missing(Exception):
    """It is not there (404, 410)."""


class Refused(Exception):
    """The credential is not accepted (401)."""


class Pressure(Exception):
    """The provider pushes back (429). The only one that makes the connection rest."""


class Temporary(Exception):
    """It usually passes: a 5xx, a lost connection."""


REASONS = {Missing: "not_found", Pressure: "rate_limited", Temporary: "temporary_unavailable"}


def number(name):
    """A cap of the owner's. Unset, empty, no number, zero or less mean that there is none."""
    text = os.environ.get(name, "").strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None


def least(*numbers):
    return min((n for n in numbers if n), default=None)


def instant(text):
    when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)


class Run:
    def __init__(self, manifest):
        folder = os.path.dirname(os.path.abspath(sys.argv[0]))
        with open(os.path.join(folder, manifest), encoding="utf-8") as file:
            self.manifest = json.load(file)
        self.out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # Whatever prints by mistake goes to the errors.
        sys.excepthook = self.failed_by_accident
        self.sent, self.outcomes, self.asked = 0, {}, 0
        self.start = json.loads(sys.stdin.buffer.readline())
        self.scope = {stream["name"]: stream for stream in self.start["scope"]["streams"]}
        self.gaps = self.start["detail_gaps"]
        self.state = self.start.get("state") or {}
        self.caps()
        try:
            self.exchanges = exchanges.Exchanges(folder)
        except (SystemExit, OSError) as error:
            self.done("failed", message=str(error), retryable=False)

    def caps(self):
        budget = self.start.get("run_budget") or {}
        own = "PDPP_" + "".join(c if c.isalnum() else "_" for c in self.manifest["connector_key"]).upper()
        self.details_left = number(own + "_MAX_DETAIL_FETCHES_PER_RUN")
        self.requests_left = least(budget.get("max_requests"), number("GLEANER_MAX_REQUESTS"))
        clock = number(own + "_MAX_RUN_WALL_CLOCK_MS")
        self.wall_clock = least(clock, budget.get("max_duration_ms"), number("GLEANER_MAX_DURATION_MS"))
        self.interval, self.began, self.last = (number(own + "_PACING_MIN_INTERVAL_MS") or 0) / 1000, None, 0.0

    # What is said.

    def say(self, kind, **fields):
        self.out.write(json.dumps({"type": kind, **fields}).encode() + b"\n")
        self.out.flush()

    def ask(self, kind, **fields):
        self.asked += 1
        self.say(kind, request_id=f"q{self.asked}", **fields)
        return json.loads(sys.stdin.buffer.readline() or b"{}")

    def record(self, stream, key, data):
        """Says a record, or with None that it was deleted; what became of it."""
        scope, declared = self.scope[stream], self.declared(stream)
        if data is None:
            self.sent += 1
            self.say("RECORD", stream=stream, key=key, op="delete", emitted_at=self.now())
            return "hydrated_keys"
        schema, time_range = declared.get("schema", {}), scope.get("time_range") or {}
        fault = next((n for n in schema.get("required", []) if n not in data), None) or next(
            (n for n, v in data.items() if not self.fits(v, schema.get("properties", {}).get(n, {}).get("type"))), None)
        if fault:
            self.say("SKIP_RESULT", stream=stream, reason="record_schema_mismatch", resource_ids=[key],
                     message=f"a record was left out: it does not fit the schema of its stream, at /{fault}",
                     recovery_hint={"action": "retry_on_connector_upgrade"})
            return "optional_skip_keys"
        field = declared.get("consent_time_field")
        if field and time_range:
            since, until, when = time_range.get("since"), time_range.get("until"), instant(data[field])
            if (since and when < instant(since)) or (until and when >= instant(until)):
                return "optional_skip_keys"
        if scope.get("fields"):
            kept = {*scope["fields"], *schema.get("required", []), *([field] if time_range else [])}
            data = {name: value for name, value in data.items() if name in kept}
        self.sent += 1
        self.say("RECORD", stream=stream, key=key, data=data, emitted_at=self.now())
        return "hydrated_keys"

    def gap(self, stream, key, reason, error, **more):
        self.say("DETAIL_GAP", stream=stream, record_key=key, reason=reason, last_error={"class": error},
                 status="pending", reference_only=True, **more)
        return "gap_keys"

    def done(self, status="succeeded", **error):
        self.unread = self.waiting()
        signal.signal(signal.SIGALRM, self.give_up)
        signal.alarm(2)
        self.say("DONE", status=status, records_emitted=self.sent, **({"error": error} if error else {}))
        signal.alarm(0)
        sys.stdin.buffer.read()  # Its end says that everything is saved.
        os._exit(0 if status == "succeeded" else 1)

    def waiting(self):
        """How much of what was said nobody has read yet."""
        return fcntl.ioctl(self.out, termios.FIONREAD, b"\0" * 4)

    def give_up(self, *_):
        """Two seconds have passed. If nobody read anything in them, nobody will."""
        if self.unread == self.waiting():
            os._exit(1)
        self.unread = self.waiting()
        signal.alarm(2)

    # What is done.

    def credential(self, name):
        value = os.environ.get(name, "").strip()
        if not value and self.exchanges.known is not None:
            value = f"placeholder-of-{name}"  # Answers come from a recording: nobody is signed in to.
        if not value and "interactive" in self.start["bindings"]:
            answer = self.ask("INTERACTION", kind="missing_credentials", message=f"{name} is needed to sign in",
                              schema={"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})
            if answer.get("status") == "cancelled":
                self.done("cancelled")
            value = (answer.get("data") or {}).get(name, "")
        if not value:
            self.done("failed", message=f"{name} is needed to sign in and is not set", retryable=False,
                      code="missing_credentials", recovery_hint={"action": "refresh_credentials"})
        self.exchanges.keep_secret(value)
        return value

    def client(self, headers=None, sample=None):
        """A function that asks: fetch(url), fetch(url, "POST", value). Answers with the JSON that came. With a sample, a
        recording beside the program answers instead of a provider."""
        if sample:
            self.exchanges.answer_from(sample)

        def fetch(url, method="GET", value=None):
            body = None if value is None else json.dumps(value).encode()
            more = {} if body is None else {"Content-Type": "application/json"}
            try:
                status, _, answer = self.exchanges.send(method, url, {**(headers or {}), **more}, body)
            except OSError:
                raise Temporary()
            error = {401: Refused, 404: Missing, 410: Missing, 408: Temporary, 429: Pressure}.get(status)
            if error or status >= 500:
                raise (error or Temporary)()
            if status >= 400:
                raise ValueError(f"the provider answered {status}")
            return json.loads(answer) if answer else None

        return fetch

    def collect(self, stream, list_page, detail):
        if stream not in self.scope:
            return
        self.outcomes = {}
        rest = self.recover(stream, detail)
        if rest or not self.start.get("recovery_only"):
            self.walk(stream, list_page, detail, rest)
        keys = {name: [] for name in ("hydrated_keys", "gap_keys", "optional_skip_keys")}
        for key, outcome in self.outcomes.items():
            keys[outcome].append(key)
        self.say("DETAIL_COVERAGE", stream=stream, state_stream=stream, required_keys=list(self.outcomes),
                 reference_only=True, **keys)

    def recover(self, stream, detail):
        """Every gap that earlier runs left, page after page; the one for the rest is the walk's to close."""
        rest, page = None, self.gaps
        while page:
            for gap in page:
                if gap["record_key"] == REST:
                    rest = gap
                    continue
                self.settle(stream, gap["record_key"], gap["detail_locator"], detail)
                if self.outcomes[gap["record_key"]] != "gap_keys":
                    self.say("DETAIL_GAP_RECOVERED", stream=stream, gap_id=gap["gap_id"], lease_id=gap["lease_id"],
                             record_key=gap["record_key"], reference_only=True)
            page = self.ask("DETAIL_GAPS_PAGE_REQUEST", streams=[stream], reference_only=True).get("detail_gaps")
        return rest

    def walk(self, stream, list_page, detail, rest):
        cursor, is_last = self.state.get(stream), False
        while not is_last:
            # What is left is one gap, not one for each of perhaps a hundred thousand.
            if self.details_left == 0 or not self.take():
                self.gap(stream, REST, "retry_exhausted", "run_cap_deferred", list_cursor=cursor)
                return
            items, is_last = self.listed(list_page, cursor)
            for item in items:
                self.settle(stream, item["key"], item["find"], detail)
            if is_last and rest:
                self.say("DETAIL_GAP_RECOVERED", stream=stream, gap_id=rest["gap_id"], lease_id=rest["lease_id"],
                         reference_only=True)
            if items:
                cursor = items[-1]["cursor"]
                self.say("STATE", stream=stream, cursor=cursor, slice=True)

    def listed(self, list_page, cursor):
        """A page of the list. Without it there is nothing to go on with, so what is wrong with it ends the run."""
        try:
            return list_page(cursor)
        except tuple(REASONS) as error:
            self.done("failed", message=f"the list cannot be read: {REASONS[type(error)]}", retryable=True,
                      code=REASONS[type(error)])
        except Refused:
            self.refused()

    def refused(self):
        self.done("failed", message="the credential is not accepted", retryable=False,
                  recovery_hint={"action": "refresh_credentials"})

    def settle(self, stream, key, find, detail):
        """One detail becomes a record, or a gap that says why not."""
        if self.scope[stream].get("resources") and key not in self.scope[stream]["resources"]:
            self.outcomes[key] = "optional_skip_keys"
            return
        if self.details_left == 0 or not self.take():
            reason, error = "retry_exhausted", "run_cap_deferred"  # Nothing failed, so there is no status.
            self.outcomes[key] = self.gap(stream, key, reason, error, detail_locator=find)
            return
        if self.details_left:
            self.details_left -= 1
        try:
            self.outcomes[key] = self.record(stream, key, detail(find))
        except tuple(REASONS) as error:
            reason = REASONS[type(error)]
            self.outcomes[key] = self.gap(stream, key, reason, type(error).__name__.lower(), detail_locator=find)
        except Refused:
            self.refused()

    def take(self):
        """Takes one request out of the run's caps, and keeps the owner's pace. Without a cap nothing is looked at."""
        if self.wall_clock is not None:
            self.began = self.began or time.monotonic()
            if (time.monotonic() - self.began) * 1000 >= self.wall_clock:
                return False
        if self.requests_left is not None:
            if self.requests_left == 0:
                return False
            self.requests_left -= 1
        if self.interval and self.exchanges.known is None:
            time.sleep(max(0.0, self.last + self.interval - time.monotonic()))
            self.last = time.monotonic()
        return True

    # Small things.

    def declared(self, stream):
        return next(declared for declared in self.manifest["streams"] if declared["name"] == stream)

    @staticmethod
    def fits(value, kind):
        kinds = [kind] if isinstance(kind, str) else kind or []
        return not kinds or (value is None and "null" in kinds) or any(
            isinstance(value, TYPES.get(k, ())) and (k == "boolean" or not isinstance(value, bool)) for k in kinds)

    @staticmethod
    def now():
        return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")

    def failed_by_accident(self, kind, error, trace):
        """The text may quote a record, so only the kind of the error is told."""
        sys.__excepthook__(kind, error, trace)
        if kind is exchanges.NotRecorded:
            self.done("failed", message=str(error), retryable=False)
        self.done("failed", message=f"the connector's code failed: {kind.__name__}", retryable=True)
