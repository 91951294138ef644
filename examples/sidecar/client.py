#!/usr/bin/env python3
"""Sixty requests through the sidecar, with nothing but Python's standard library.

    python3 client.py                 starts a toy provider and a sidecar, runs, prints the status
    python3 client.py URL             runs against a sidecar that listens there already
    python3 client.py --provider PORT only the toy provider, for curl.sh

The only thing a program of yours has to change is its base URL: see `fetch`.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REQUESTS = 60
# What the toy provider allows. It tells nobody.
PER_SECOND, BURST = 10, 5


def fetch(base_url, path):
    """What your program does anyway. No sleep, no retry, no backoff: the sidecar does that."""
    request = urllib.request.Request(base_url + path)
    # Optional: rather a 429 with an honest Retry-After than a wait of more than a minute.
    request.add_header("Gleaner-Max-Wait", "60")
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def run(base_url):
    start = time.monotonic()
    with ThreadPoolExecutor(max_workers=8) as pool:
        items = list(pool.map(lambda n: fetch(base_url, f"/items/{n}"), range(REQUESTS)))
    took = time.monotonic() - start
    assert [item["item"] for item in items] == [f"/items/{n}" for n in range(REQUESTS)]
    print(f"{len(items)} of {REQUESTS} items in {took:.1f} s, without an error")


def show_status(base_url):
    status = fetch(base_url, "/.gleaner/status")
    print(f"the sidecar stands for {status['upstream']}")
    for key in status["keys"]:
        print(f"  {key['key']}: learned {key['rate_per_s']:.1f} requests per second ({key['mode']})")
        print(f"  sent {key['sent']}, accepted {key['accepted']}, refused {key['rejected']}, repeated {key['retried']}")


class Provider(BaseHTTPRequestHandler):
    """A provider with a token bucket that answers 429 when it is empty."""

    protocol_version = "HTTP/1.1"
    lock, tokens, at = threading.Lock(), float(BURST), time.monotonic()

    def is_allowed(self):
        cls = type(self)
        with cls.lock:
            now = time.monotonic()
            cls.tokens = min(BURST, cls.tokens + (now - cls.at) * PER_SECOND)
            cls.at = now
            if cls.tokens < 1:
                return False
            cls.tokens -= 1
            return True

    def do_GET(self):
        is_allowed = self.is_allowed()
        body = json.dumps({"item": self.path} if is_allowed else {"error": "too fast"}).encode()
        self.send_response(200 if is_allowed else 429)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if not is_allowed:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def start_sidecar(upstream, home):
    """Starts `gleaner proxy` on a port that is free, and finds out which."""
    program = os.environ.get("GLEANER", "gleaner")
    command = [program, "proxy", "--upstream", upstream, "--listen", "127.0.0.1:0", "--home", home]
    try:
        sidecar = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit(f"{program} is not installed; set GLEANER=/path/to/gleaner")
    line = sidecar.stderr.readline()
    if " stands for " not in line:
        sys.exit(line + sidecar.stderr.read())
    print(line, end="")
    return sidecar, line.split()[2]


def main():
    if sys.argv[1:2] == ["--provider"]:
        ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Provider).serve_forever()
    if sys.argv[1:]:
        base_url = sys.argv[1].rstrip("/")
        run(base_url)
        show_status(base_url)
        return
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as home:
        sidecar, base_url = start_sidecar(f"http://127.0.0.1:{provider.server_port}", home)
        try:
            run(base_url)
            show_status(base_url)
        finally:
            sidecar.terminate()
            sidecar.wait()


if __name__ == "__main__":
    main()
