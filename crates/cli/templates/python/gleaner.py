"""The connector's side of the protocol, with nothing but the standard library.

    run = Run("manifest.json")            # reads START
    token = run.credential("NAME")        # from the environment, or asks the owner
    fetch = run.client({"Authorization": f"Bearer {token}"})
    run.collect(stream, list_page, detail)
    run.done()

Gaps of earlier runs are tried first, each with the function of its own stream. Each page of the list is a slice:
its records, its gaps, then its cursor. A cap ends a run between two details; what is left becomes gaps, and the
next run goes on there. At the end every key that was looked at is accounted for: as a record that was sent, as a
gap, or as left out because the owner did not ask for it. You need not change this file.
"""
import email.utils
import fcntl
import json
import os
import re
import signal
import sys
import termios
import time
from datetime import datetime, timedelta, timezone

import exchanges

REST = "gleaner:rest-of-stream"  # The gap that stands for everything after the last cursor.
CAPPED = ("retry_exhausted", "run_cap_deferred")  # Nothing failed, so there is no status.
IN_A_ROW_MAX = 3  # So many equal failures in a row are not the fault of one record.
TRIES_MAX = 3  # How often one thing is asked for, where the provider says when to come back.
WAIT_MAX = 300  # Seconds. When the provider says to come back later than that, another run does.
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "object": dict, "array": list}


class Missing(Exception):
    """It is not there (404, 410)."""


class Refused(Exception):
    """The credential is not accepted (401)."""


class Forbidden(Exception):
    """This account may not see it (403)."""


class Pressure(Exception):
    """The provider rate-limits (429). The only one that causes a cooldown."""


class Temporary(Exception):
    """It usually passes: a 5xx, a lost connection."""


class Unexpected(Exception):
    """An answer that makes no sense, or a record that does not fit its schema. The connector may be corrected."""


# What becomes a gap, and with which reason. Later runs try it again.
REASONS = {Missing: "not_found", Refused: "auth_failure", Forbidden: "permanent_forbidden", Pressure: "rate_limited",
           Temporary: "temporary_unavailable", Unexpected: "temporary_unavailable"}
STATUSES = {401: Refused, 403: Forbidden, 404: Missing, 410: Missing, 408: Temporary, 425: Temporary, 429: Pressure}


def number(name):
    """A cap of the owner's. Unset, empty, no number, zero or less mean that there is none."""
    text = os.environ.get(name, "").strip()
    return int(text) if text.isdecimal() and int(text) > 0 else None


def least(*numbers):
    return min((n for n in numbers if n), default=None)


def instant(value):
    """A moment: ISO 8601, in UTC if there is no zone, or seconds or milliseconds since 1970. None if it cannot be read;
    what could be anything else is not guessed."""
    try:
        if isinstance(value, str) and not re.fullmatch(r"(\d{9,10}|\d{12,13})(\.\d+)?", value):
            if not re.match(r"\d{4}-\d\d-\d\d($|[Tt ])", value):
                return None
            # Older interpreters want three or six digits.
            text = re.sub(r"\.(\d+)", lambda found: "." + found[1][:6].ljust(6, "0"), value.strip())
            when = datetime.fromisoformat(re.sub("[Zz]$", "+00:00", text))
            return when if when.tzinfo else when.replace(tzinfo=timezone.utc)
        number = float(value)
        if isinstance(value, bool) or number == 0 or abs(number) >= 1e14:
            return None
        return datetime.fromtimestamp(number / 1000 if abs(number) >= 1e11 else number, timezone.utc)
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def seconds_of(retry_after):
    """How long the provider says to wait: a number of seconds, or a date."""
    try:
        if re.fullmatch(r"\s*\d+\s*", retry_after):
            return float(retry_after)
        return max(0.0, (email.utils.parsedate_to_datetime(retry_after) - datetime.now(timezone.utc)).total_seconds())
    except (TypeError, ValueError):
        return 0.0


class Run:
    def __init__(self, manifest):
        folder = os.path.dirname(os.path.abspath(sys.argv[0]))
        with open(os.path.join(folder, manifest), encoding="utf-8") as file:
            self.manifest = json.load(file)
        self.out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # Whatever prints by mistake goes to the errors.
        sys.excepthook = self.failed_by_accident
        self.sent, self.outcomes, self.asked = 0, {}, 0
        self.stopped, self.gate, self.row = None, 0.0, (None, 0)
        self.start = json.loads(sys.stdin.buffer.readline())
        self.scope = {stream["name"]: stream for stream in self.start["scope"]["streams"]}
        self.gaps = self.start["detail_gaps"]
        self.state = self.start.get("state") or {}  # None of another scope: the runtime keeps those apart.
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
        """Says a record, or with None that it was deleted. What became of it: only what was said is hydrated."""
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
            raise Unexpected()
        field = declared.get("consent_time_field")
        when = instant(data.get(field)) if field and time_range else None
        if when:  # A record whose time cannot be read is kept.
            since, until = instant(time_range.get("since")), instant(time_range.get("until"))
            if (since and when < since) or (until and when >= until):
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
                status, answered, answer = self.exchanges.send(method, url, {**(headers or {}), **more}, body)
            except OSError:
                raise Temporary()
            if status < 400:
                return json.loads(answer) if answer else None
            wait = next((value for name, value in answered.items() if name.lower() == "retry-after"), None)
            if wait is not None and (status == 429 or status >= 500):
                self.gate = time.monotonic() + seconds_of(wait)
            raise STATUSES.get(status, Temporary if status >= 500 else Unexpected)()

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

    def served(self, stream):
        """Every gap of one stream that earlier runs left, page after page. Those of others wait for their own turn."""
        page = self.gaps
        while page:
            yield from (gap for gap in page if gap["stream"] == stream)
            page = self.ask("DETAIL_GAPS_PAGE_REQUEST", streams=[stream], reference_only=True).get("detail_gaps")

    def recover(self, stream, detail):
        """Tries what earlier runs left. A gap is recovered when its record was said, and never otherwise: one that the
        owner did not ask for now, or that no budget is left for, waits as it is. The one for the rest is the walk's."""
        rest = None
        for gap in self.served(stream):
            key, ids = gap["record_key"], {"gap_id": gap["gap_id"], "lease_id": gap["lease_id"]}
            if key == REST:
                rest = gap
            elif key is not None and self.wants(stream, key) and self.take(is_detail=True):
                self.say("DETAIL_GAP_ATTEMPTED", stream=stream, reference_only=True, **ids)
                self.settle(stream, key, gap["detail_locator"], detail, ids)
                if self.outcomes[key] == "hydrated_keys":
                    self.say("DETAIL_GAP_RECOVERED", stream=stream, record_key=key, reference_only=True, **ids)
        return rest

    def walk(self, stream, list_page, detail, rest):
        cursor, is_last = self.state.get(stream), False
        while not is_last:
            # What is left is one gap, not one for each of perhaps a hundred thousand.
            if self.details_left == 0 or not self.take():
                return self.put_off_rest(stream, cursor, rest)
            items, is_last = self.listed(list_page, cursor)
            for item in items:
                self.look_at(stream, item["key"], item["find"], detail)
            if is_last and rest and self.covers(rest):
                self.say("DETAIL_GAP_RECOVERED", stream=stream, gap_id=rest["gap_id"], lease_id=rest["lease_id"],
                         record_key=REST, reference_only=True)
            if not is_last and (not items or items[-1]["cursor"] == cursor):
                self.done("failed", message="the list does not get past its cursor", retryable=False)
            if items:
                cursor = items[-1]["cursor"]
                self.say("STATE", stream=stream, cursor=cursor, slice=True)

    def put_off_rest(self, stream, cursor, rest):
        find = {"scope": self.narrowed(stream)}
        if rest and not self.covers(rest):  # What it stands for is more than this run was asked for.
            cursor, find = rest.get("list_cursor"), rest["detail_locator"]
        self.gap(stream, REST, *(self.stopped or CAPPED), list_cursor=cursor, detail_locator=find)

    def narrowed(self, stream):
        scope = self.scope[stream]
        return {name: scope[name] for name in ("resources", "time_range", "fields") if scope.get(name)} or None

    def covers(self, rest):
        """Whether this run was asked for all that the gap for the rest stands for."""
        mine = self.narrowed(rest["stream"])
        return mine is None or mine == (rest["detail_locator"] or {}).get("scope")

    def listed(self, list_page, cursor):
        """A page of the list. Without it there is nothing to go on with, so what is wrong with it ends the run."""
        try:
            return self.patiently(lambda: list_page(cursor))
        except Refused:
            self.refused()
        except tuple(REASONS) as error:
            reason = self.reason_of(error)
            self.done("failed", message=f"the list cannot be read: {reason}", retryable=True, code=reason)

    def refused(self):
        self.done("failed", message="the credential is not accepted", retryable=False,
                  recovery_hint={"action": "refresh_credentials"})

    def wants(self, stream, key):
        resources = self.scope[stream].get("resources")
        return not resources or key in resources

    def look_at(self, stream, key, find, detail):
        """What becomes of an item of the list."""
        if self.outcomes.get(key) == "gap_keys":
            return  # It failed in this run already: the gap stands for it, however it has changed since.
        if not self.wants(stream, key):
            self.outcomes.setdefault(key, "optional_skip_keys")
        elif self.take(is_detail=True):
            self.settle(stream, key, find, detail)
        else:
            self.outcomes[key] = self.gap(stream, key, *self.stopped, detail_locator=find)

    def settle(self, stream, key, find, detail, ids={}):
        """One detail becomes a record, or a gap that says why not."""
        try:
            outcome = self.record(stream, key, self.patiently(lambda: detail(find)))
            self.row = (None, 0)
            if outcome == "hydrated_keys" or key not in self.outcomes:
                self.outcomes[key] = outcome
            return
        except exchanges.NotRecorded:
            raise
        except Exception as error:
            known = isinstance(error, tuple(REASONS))
            if not known:  # The author's code. Others may be read all the same.
                sys.__excepthook__(type(error), error, error.__traceback__)
            more = {"detail_locator": find, **ids}
            if self.gate > time.monotonic():
                more["not_before"] = self.now(self.gate - time.monotonic())
            reason, name = self.reason_of(error), type(error).__name__.lower()
            self.outcomes[key] = self.gap(stream, key, reason, name if known else "connector_error", **more)
            self.count_in_a_row(error)

    def count_in_a_row(self, error):
        self.row = (type(error), self.row[1] + 1 if self.row[0] is type(error) else 1)
        if self.row[1] < IN_A_ROW_MAX or isinstance(error, (Missing, Forbidden)):
            return
        if isinstance(error, Refused):
            self.refused()
        if not isinstance(error, tuple(REASONS)):
            raise error
        if isinstance(error, Pressure):
            self.stopped = (REASONS[Pressure], "pressure")

    def patiently(self, ask):
        """Asks. Where the provider says when to come back, waits until then and asks again."""
        for _ in range(TRIES_MAX - 1):
            try:
                return ask()
            except (Pressure, Temporary):
                if self.gate <= time.monotonic() or not self.take():
                    raise
        return ask()

    def take(self, is_detail=False):
        """Takes one request out of the run's caps, and keeps the provider's Retry-After and the owner's pace. False:
        this run asks for no more, and `stopped` says why."""
        if self.stopped:
            return False
        now, left = time.monotonic(), None
        wait = self.gate - now
        if self.wall_clock is not None:
            self.began = self.began or now
            left = self.wall_clock / 1000 - (now - self.began)
        if (is_detail and self.details_left == 0) or self.requests_left == 0 or (left is not None and left <= 0):
            self.stopped = CAPPED
        elif wait > WAIT_MAX or (left is not None and wait >= left):
            self.stopped = (REASONS[Pressure], "pressure")
        if self.stopped:
            return False
        if wait > 0:
            self.say("PROGRESS", message=f"waiting until {self.now(wait)}: the provider sent Retry-After")
            time.sleep(wait)
        if is_detail and self.details_left is not None:
            self.details_left -= 1
        if self.requests_left is not None:
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
    def reason_of(error):
        return next((reason for kind, reason in REASONS.items() if isinstance(error, kind)), REASONS[Unexpected])

    @staticmethod
    def now(later=0.0):
        return (datetime.now(timezone.utc) + timedelta(seconds=later)).isoformat().replace("+00:00", "Z")

    def failed_by_accident(self, kind, error, trace):
        """The text may quote a record, so only the kind of the error is told."""
        sys.__excepthook__(kind, error, trace)
        if kind is exchanges.NotRecorded:
            self.done("failed", message=str(error), retryable=False)
        self.done("failed", message=f"the connector's code failed: {kind.__name__}", retryable=True)
