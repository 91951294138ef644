"""Asking a provider; writing down what was asked and what came back; and answering from such a recording.

    GLEANER_RECORD=FILE    writes every exchange down, without secrets
    GLEANER_REPLAY=FILE    answers from it: no network, no credential, no waiting

The file is JSON lines: a header, then an exchange per line. You need not change this file.
"""
import base64
import json
import os
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from datetime import datetime, timezone

MASK = "[secret]"  # In a URL that is replayed it stands for anything.
FILE_MAX, EXCHANGES_MAX, BODY_MAX = 64 << 20, 10_000, 4 << 20
TIMEOUT = 60  # Seconds: longer than load balancers on the way allow.

# What carries credentials, by its name; letters and digits only.
HEADERS = re.compile(r"^proxy|auth$|authoriz|cookie|token|secret|apikey|accesskey|password|credential|session|signature"
                     r"|csrf|xsrf|jwt")
PARAMETERS = re.compile(r"token|secret|apikey|accesskey|password|passwd|credential|session|signature|assertion|jwt"
                        r"|^(key|sig|auth|pwd|pass|otp|hmac)$")
PLACES = re.compile(r"(page|next|continu|cursor|sync|delta|start).*token$")
FIELDS = re.compile(r"^((access|refresh|id|auth|session|bearer|csrf)?token|(client|api|token)?secret|(secret|private|api"
                    r"|access)key|password|passwd|sessionid|jwt|otp)$")
PARAMETER = re.compile(r"([?&;]|\\u0026|^)([\w.%\[\]-]{1,64})=([^&#\"'<>\\\s]+)")
USER = re.compile(r"://[^/?#\s\"'<>\\]*@")
DULL = {"user-agent", "accept-encoding", "connection", "keep-alive", "transfer-encoding", "content-length", "host"}


class NotRecorded(Exception):
    """A request that the recording does not have."""


class KeepCredentials(urllib.request.HTTPRedirectHandler):
    """Whoever is redirected to does not get what was meant for another."""

    def redirect_request(self, request, *rest):
        new = super().redirect_request(request, *rest)
        if new and urllib.parse.urlsplit(new.full_url)[:2] != urllib.parse.urlsplit(request.full_url)[:2]:
            new.headers = {name: value for name, value in new.headers.items() if name in ("Accept", "User-agent")}
        return new


def plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def forms(secret):
    """A secret in every way of writing it, the base64 ones at all three alignments."""
    raw, quote, both = secret.encode(), urllib.parse.quote, []
    for text in (secret, quote(secret, safe=""), quote(secret), urllib.parse.quote_plus(secret)):
        once = [text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]]
        both += once + [json.dumps(form, ensure_ascii=way)[1:-1] for form in once for way in (True, False)]
        both += [form.replace("/", "\\/") for form in once]
    both += [raw.hex(), raw.hex().upper()] + [re.sub("%..", lambda found: found[0].lower(), form) for form in both]
    for lead in range(3):
        text = base64.b64encode(b"\0" * lead + raw).decode()
        part = text[-(-lead * 8 // 6):(lead + len(raw)) * 8 // 6]
        both += [part, part.translate(str.maketrans("+/", "-_"))] if len(part) >= 6 else []
    return {form for form in both if len(form) >= 4}


class Exchanges:
    def __init__(self, folder):
        self.folder, self.forms, self.given, self.sample = folder, [], {}, None
        replay, record = os.environ.get("GLEANER_REPLAY"), os.environ.get("GLEANER_RECORD")
        self.known = load(replay) if replay else None
        self.file = open(record, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) if record else None
        if self.file and os.path.getsize(record):
            raise SystemExit(f"{record}: there is something in it already")
        self.count, self.size = 0, 0
        self.line({"gleaner_exchanges": 1, "recorded_at": now()})

    def keep_secret(self, secret):
        self.forms = sorted({*self.forms, *forms(secret)}, key=len, reverse=True)

    def answer_from(self, sample):
        """A recording beside the program that answers where there is no provider yet."""
        self.sample = self.sample or load(os.path.join(self.folder, sample))

    def send(self, method, url, headers, body):
        """Status, headers and body of the answer. Raises OSError when there is none."""
        began, known = time.monotonic(), self.known if self.known is not None else self.sample
        if known is not None:
            answer = self.play(known, method, url)
        else:
            answer = ask(method, url, headers, body)
        self.record(method, url, headers, body, answer, time.monotonic() - began)
        if isinstance(answer, str):
            raise OSError(answer)
        return answer

    def play(self, known, method, url):
        url = in_order(self.text(url))
        found = [line for line in known if line["request"]["method"].upper() == method and like(line, url)]
        if not found and known is self.sample:
            return 404, {}, b""
        if not found:
            raise NotRecorded(f"{method} {url} is not in the recording; {nearest(known, url)}; record again, or correct "
                              "the request")
        number = self.given[method, url] = self.given.get((method, url), -1) + 1
        line = found[min(number, len(found) - 1)]
        if "no_answer" in line:
            return line["no_answer"]
        answer = line["response"]
        if answer.get("body_end") in ("too_large", "withheld"):
            raise NotRecorded(f"the answer to {method} {url} was not recorded: {answer['body_end']}")
        body = answer.get("body", "")
        body = body if isinstance(body, str) else json.dumps(body)
        raw = base64.b64decode(answer["body_base64"]) if "body_base64" in answer else body.encode()
        return answer["status"], answer.get("headers", {}), raw

    def record(self, method, url, headers, body, answer, took):
        if not self.file or self.count >= EXCHANGES_MAX or self.size >= FILE_MAX:
            return
        self.count += 1
        # Twice: what one part gives away by its name is masked in all of them.
        for _ in range(2):
            request = {"method": method, "url": self.text(url), **self.message(headers, body)}
            line = {"at": now(), "took_ms": int(took * 1000), "request": request}
            if isinstance(answer, str):
                line["no_answer"] = answer
            elif len(answer[2]) > BODY_MAX:
                line["response"] = {"status": answer[0], **self.message(answer[1], b""), "body_end": "too_large"}
            else:
                line["response"] = {"status": answer[0], **self.message(answer[1], answer[2])}
        if any(form in json.dumps(line) for form in self.forms):
            line["request"] = {"method": method, "url": self.text(url.split("?")[0])}
            if "response" in line:
                line["response"] = {"status": answer[0], "body_end": "withheld"}
        self.line(line)

    def line(self, value):
        """One line in one write: whoever kills us leaves a recording that is good up to its last whole line."""
        if self.file:
            text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
            self.size += len(text)
            self.file.write(text)
            self.file.flush()

    # What is kept out of it.

    def message(self, headers, body):
        kept = {name.lower(): self.header(name, value) for name, value in headers.items() if name.lower() not in DULL}
        said = {"headers": kept} if kept else {}
        if body:
            try:
                text = body.decode()
                said["body"] = self.value(json.loads(text)) if text[:1] in "{[" else self.text(text)
            except json.JSONDecodeError:
                said["body"] = self.text(text)
            except UnicodeDecodeError:
                said["body_base64"] = base64.b64encode(body).decode()
        return said

    def header(self, name, value):
        if not HEADERS.search(plain(name)) or "ratelimit" in plain(name):
            return self.text(value)
        cookies = plain(name) in ("cookie", "setcookie")
        self.learn(value.split("=", 1)[-1].split(";")[0] if cookies else value.split(" ", 1)[-1], 16 if cookies else 8)
        return MASK

    def value(self, value, field=""):
        if isinstance(value, str):
            if value and FIELDS.match(plain(field)):
                self.learn(value, 8)
                return MASK
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.value(inner, name) for name, inner in value.items()}
        return [self.value(inner) for inner in value] if isinstance(value, list) else value

    def text(self, text):
        def parameter(found):
            name, value = plain(urllib.parse.unquote(found[2])), urllib.parse.unquote_plus(found[3])
            is_secret = PARAMETERS.search(name) and not PLACES.search(name)
            if is_secret:
                self.learn(value, 8)
            hides = any(form in value or form in urllib.parse.unquote_plus(value) for form in self.forms)
            return f"{found[1]}{found[2]}={MASK}" if is_secret or hides else found[0]

        text = USER.sub(f"://{MASK}@", PARAMETER.sub(parameter, text))
        for form in self.forms:
            text = text.replace(form, MASK)
        return text

    def learn(self, value, least):
        if len(value) >= least and MASK not in value and len(self.forms) < 4000:
            self.keep_secret(value)


def ask(method, url, headers, body):
    """Status, headers and body; or in a word why there is no answer."""
    request = urllib.request.Request(url, data=body, headers=headers, method=method)
    try:
        with urllib.request.build_opener(KeepCredentials).open(request, timeout=TIMEOUT) as answer:
            return answer.status, dict(answer.headers), answer.read(FILE_MAX)
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read(FILE_MAX)
    except TimeoutError:
        return "timeout"
    except urllib.error.URLError as error:
        return "timeout" if isinstance(error.reason, TimeoutError) else "connect"
    except OSError:
        return "lost"


def load(path):
    with open(path, encoding="utf-8") as file:
        text = file.read(FILE_MAX + 1)
    lines = text.split("\n")
    if len(text) > FILE_MAX or len(lines) > EXCHANGES_MAX + 3:
        raise SystemExit(f"{path}: it is larger than a recording may be")
    known = []
    for number, line in enumerate(lines, 1):
        try:
            value = json.loads(line) if line.strip() or number == 1 else {"end": ""}
            if number == 1 and value.get("gleaner_exchanges") != 1:
                raise ValueError('a recording begins with {"gleaner_exchanges": 1}')
            if number > 1 and "end" not in value:
                known.append({**value, "url": in_order(value["request"]["url"]), "line": number})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if number < len(lines):  # Half a line at the end is a writer that was killed.
                raise SystemExit(f"{path}: line {number}: {error}")
    return known


def in_order(url):
    place, mark, query = url.partition("?")
    return place + mark + "&".join(sorted(filter(None, query.split("&"))))


def like(line, url):
    pattern = line["url"]
    return pattern == url or MASK in pattern and re.fullmatch(".*".join(map(re.escape, pattern.split(MASK))), url)


def nearest(known, url):
    if not known:
        return "it has no exchange at all"
    best = max(known, key=lambda line: len(os.path.commonprefix([line["url"], url])))
    return f"the nearest is {best['request']['method']} {best['url']} (line {best['line']})"


def now():
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
