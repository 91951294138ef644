"""A connector as the Python template makes them, with two streams of a model provider on this machine."""
import os

import gleaner

API = os.environ["MODEL_URL"]


def functions(stream, fetch):
    def list_page(cursor):
        page = fetch(f"{API}/{stream}?after={(cursor or {}).get('after', 0)}")
        items = [{"key": key, "cursor": {"after": place}, "find": {"id": key}} for key, place in page["items"]]
        return items, not page["more"]

    return list_page, lambda find: fetch(f"{API}/{stream}/{find['id']}")


if __name__ == "__main__":
    run = gleaner.Run("manifest.json")
    fetch = run.client()
    for stream in ("items", "others"):
        run.collect(stream, *functions(stream, fetch))
    run.done()
