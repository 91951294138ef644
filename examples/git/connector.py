"""Collects the commits of a Git repository: a whole connector in one file, with the standard library alone.

It reads START from standard input and writes JSON lines to standard output (docs/protocol.md). The cursor is the last
commit that was sent, so the next run sends only newer ones. `gleaner new connector` makes one for a web service.
"""
import json
import os
import subprocess
import sys
from datetime import datetime, timezone

# A cursor is sent after so many commits. After a kill at most these are sent again.
SLICE = 500
FIELDS = ("id", "author", "committed_at", "subject")


def send(kind, **fields):
    print(json.dumps({"type": kind, **fields}), flush=True)


def git(repository, *arguments):
    command = ["git", "-C", repository, *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace")


def commits(repository, last):
    """Commits that came after `last`, parents first; all of them if there is no such commit any more."""
    is_known = last and git(repository, "merge-base", "--is-ancestor", last, "HEAD").returncode == 0
    revisions = f"{last}..HEAD" if is_known else "HEAD"
    log = git(repository, "log", "-z", "--topo-order", "--reverse", "--format=%H%x1f%an%x1f%cI%x1f%s", revisions)
    if log.returncode != 0:
        raise RuntimeError(log.stderr.strip())
    # Subjects may contain anything but NUL, which ends a commit.
    return [dict(zip(FIELDS, line.split("\x1f", 3))) for line in log.stdout.split("\0") if line]


def moment(text):
    """A time as Git and START write it: with a zone, without one (UTC), or a date."""
    time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def is_wanted(commit, stream):
    """Whether the run asked for it: `gleaner run git --since 2031-01-01` asks for a range of time."""
    wanted, time = stream.get("time_range") or {}, moment(commit["committed_at"])
    since, until = wanted.get("since"), wanted.get("until")
    return (not since or moment(since) <= time) and (not until or time < moment(until))


def collect(start):
    repository = os.environ.get("GIT_REPOSITORY") or "."
    cursor = (start.get("state") or {}).get("commits") or {}
    found = commits(repository, cursor.get("last"))
    sent = 0
    for number, commit in enumerate(found, 1):
        if is_wanted(commit, start["scope"]["streams"][0]):
            send("RECORD", stream="commits", key=commit["id"], data=commit, emitted_at=commit["committed_at"])
            sent += 1
        if number % SLICE == 0 or number == len(found):
            # Everything up to this commit has been sent, so Gleaner may commit the cursor once that is stored.
            send("STATE", stream="commits", cursor={"last": commit["id"]}, slice=True)
    return sent


def main():
    start = json.loads(sys.stdin.readline())
    try:
        sent = collect(start)
    except (OSError, RuntimeError) as error:
        send("DONE", status="failed", records_emitted=0, error={"message": str(error), "retryable": False})
        return 1
    send("DONE", status="succeeded", records_emitted=sent)
    # The end of standard input says that everything is stored.
    sys.stdin.read()
    return 0


sys.exit(main())
