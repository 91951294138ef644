"""Collects the notes of one account: a list, a detail per note, and what an answer means.

Everything here is yours to change. What is hard to get right (slices, gaps, caps, coverage, credentials,
a clean end) is in gleaner.py. The provider below is a sample without a network; put yours in its place.
"""
import gleaner

PAGE = 20  # How many notes the provider lists at a time.


def list_page(cursor, token):
    """The notes that changed after the cursor, oldest first, and whether that is all of them.

    Each has a `key`, a `cursor` to go on after it, and whatever `detail` needs to find it again.
    """
    after = (cursor or {}).get("after", "")
    ids = [note for note in SAMPLE if note > after][: PAGE + 1]
    items = [{"key": note, "cursor": {"after": note}, "find": {"id": note}} for note in ids[:PAGE]]
    return items, len(ids) <= PAGE


def detail(find, token):
    """One note. Raise Missing (404, 410), Pressure (429), Temporary (5xx, no connection), Refused (401)."""
    answer = SAMPLE[find["id"]]
    if answer is None:
        raise gleaner.Missing()
    return parse(find["id"], answer)


def parse(note, answer):
    """What the provider says, as the record that the manifest describes. Return None for one that was deleted."""
    return {"id": note, "changed_at": answer["t"], "title": answer["h"], "text": answer["b"]}


# The sample. With a real provider: urllib.request, a base URL from the environment, and `gleaner proxy` in
# front of it, which finds the provider's limit and keeps just under it.
SAMPLE = {
    f"n{n:03}": {"t": f"2030-01-01T{n // 60:02}:{n % 60:02}:00Z", "h": f"Note {n}", "b": "Once upon a time."}
    for n in range(1, 61)
}
SAMPLE["n042"] = None  # Listed, and no longer there: it becomes a gap.

if __name__ == "__main__":
    run = gleaner.Run("manifest.json")
    token = run.credential("EXAMPLE_TOKEN")
    run.collect("notes", lambda cursor: list_page(cursor, token), lambda find: detail(find, token))
    run.done()
