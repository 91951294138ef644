"""Collects the notes of one account: a list, a detail per note, and what an answer means.

Everything here is yours to change. What is hard to get right (slices, gaps, caps, coverage, credentials,
a clean end) is in gleaner.py. There is no provider yet: exchanges.jsonl, a recording of one, answers in its place.
"""
import gleaner

API = "https://notes.invalid"


def list_page(cursor, fetch):
    """The notes that changed after the cursor, oldest first, and whether that is all of them.

    Each has a `key`, a `cursor` to go on after it, and whatever `detail` needs to find it again.
    """
    after = (cursor or {}).get("after", "")
    page = fetch(f"{API}/notes?after={after}")
    items = [{"key": note, "cursor": {"after": note}, "find": {"id": note}} for note in page["ids"]]
    return items, not page["more"]


def detail(find, fetch):
    """One note. What fetch raises (Missing, Pressure, Temporary, Refused) becomes a gap or the end of the run."""
    return parse(find["id"], fetch(f"{API}/notes/{find['id']}"))


def parse(note, answer):
    """What the provider says, as the record that the manifest describes. Return None for one that was deleted."""
    return {"id": note, "changed_at": answer["t"], "title": answer["h"], "text": answer["b"]}


if __name__ == "__main__":
    run = gleaner.Run("manifest.json")
    token = run.credential("EXAMPLE_TOKEN")
    # With a real provider leave the sample out, and put `gleaner proxy` in front: it keeps just under the limit.
    fetch = run.client({"Authorization": f"Bearer {token}"}, sample="exchanges.jsonl")
    run.collect("notes", lambda cursor: list_page(cursor, fetch), lambda find: detail(find, fetch))
    run.done()
