"""Stands for a connector: says what a transcript says, and nothing else.

    python3 replay.py TRANSCRIPT

A transcript has a line for each line that a connector wrote. Where the connector waited for the runtime, so does
this: for START, for the answer to a question, for a page of gaps, and at the end for its input to close. A gap that
the runtime served is called by the id that the runtime gave it, whatever the transcript calls it.
"""

import json
import sys


def hear():
    line = sys.stdin.readline()
    if not line:
        raise SystemExit("the runtime is gone")
    return json.loads(line)


def learn(gaps, served):
    for gap in served:
        gaps[(gap["stream"], gap["record_key"])] = gap


def renamed(message, gaps):
    gap = gaps.get((message.get("stream"), message.get("record_key")))
    if gap and "gap_id" in message:
        message["gap_id"] = gap["gap_id"]
        if "lease_id" in message:
            message["lease_id"] = gap["lease_id"]
    return message


def main():
    gaps = {}
    start = hear()
    assert start["type"] == "START", start
    learn(gaps, start["detail_gaps"])
    code = 0
    with open(sys.argv[1], encoding="utf-8") as transcript:
        for line in transcript:
            message = json.loads(line)
            # As it stands there, unless an id has to be put in: a transcript is also about how things are written.
            if message["type"].startswith("DETAIL_GAP") and "gap_id" in message:
                line = json.dumps(renamed(message, gaps)) + "\n"
            sys.stdout.write(line)
            sys.stdout.flush()
            if message["type"] == "INTERACTION":
                answer = hear()
                assert answer["request_id"] == message["request_id"], answer
                print("answered:", answer["status"], file=sys.stderr)
            elif message["type"] == "DETAIL_GAPS_PAGE_REQUEST":
                learn(gaps, hear()["detail_gaps"])
            elif message["type"] == "DONE":
                code = 0 if message["status"] == "succeeded" else 1
    sys.stdin.read()
    sys.exit(code)


main()
