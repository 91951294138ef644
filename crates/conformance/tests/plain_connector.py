"""A connector as many are: no slices, states at the end, no gaps, a coverage report that counts only.

It does nothing wrong, and nothing that is optional. With PLAIN_SIGN_IN it cannot sign in.
"""
import json, os, sys


def say(**message):
    sys.stdout.write(json.dumps(message) + "\r\n")
    sys.stdout.flush()


def finish(status, records, **more):
    say(type="DONE", status=status, records_emitted=records, **more)
    sys.stdin.read()
    sys.exit(0 if status == "succeeded" else 1)


start = json.loads(sys.stdin.readline())
names = [stream["name"] for stream in start["scope"]["streams"]]
if os.environ.get("PLAIN_SIGN_IN"):
    finish("failed", 0, error={"message": "plain_credentials_rejected", "retryable": False})
count = 0
say(type="PROGRESS", message="Reading", phase="start", stream=names[0])
for name in names:
    known = ((start.get("state") or {}).get(name) or {}).get("fingerprints", {})
    for n in range(20):
        if str(n) not in known:
            say(type="RECORD", stream=name, key=str(n), data={"id": n, "start": f"2030-01-{n + 1:02}T00:00:00Z"},
                emitted_at="2031-01-01T00:00:00.123Z")
            count += 1
    say(type="SKIP_RESULT", stream=name, reason="shape_check_failed", message="one was odd", diagnostics={"id": "x"})
    say(type="DETAIL_COVERAGE", reference_only=True, stream=name, state_stream=name, required_keys=[], hydrated_keys=[],
        considered=20, covered=20)
for name in names:
    say(type="STATE", stream=name, cursor={"fingerprints": {str(n): "f" for n in range(20)}})
print(file=sys.stdout)
finish("succeeded", count)
