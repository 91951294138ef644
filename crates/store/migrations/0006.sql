-- Why a record is in quarantine, and by what it was judged, so that it is judged again when that changes.

-- The rule of the schema that it breaks. Empty where nobody noted it.
ALTER TABLE quarantine ADD COLUMN reason TEXT NOT NULL DEFAULT '';
-- A digest of the manifest whose schema it was last held against. NULL: an older program put it there.
ALTER TABLE quarantine ADD COLUMN judged_by TEXT;
-- The version of the connector that sent it, or that listed its stream again since.
ALTER TABLE quarantine ADD COLUMN connector_version TEXT;

-- What a run left out of a stream, until a run goes over that stream again and leaves nothing out. A later run goes on
-- from behind it, so the run that skipped it is not the only one that is incomplete.
CREATE TABLE skips (
    stream INTEGER NOT NULL,
    track TEXT NOT NULL,
    run INTEGER NOT NULL,
    -- The version of the connector that skipped it, or that listed the stream again since.
    connector_version TEXT,
    -- In the connector's words.
    reason TEXT,
    message TEXT,
    -- Whether the next run goes on with the rest.
    continues INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (stream, track)
) STRICT, WITHOUT ROWID;

-- What the SDK and the runtime left of a stream stands for many records too.
UPDATE gaps SET part_of_list = 1 WHERE record_key LIKE 'gleaner:%';

-- Whether required keys of the coverage reports about the pair are keys of the list's records: unknown, of_list, other. NULL:
-- only gaps named the pair.
ALTER TABLE parents ADD COLUMN keys TEXT;
UPDATE parents SET keys = 'unknown' WHERE EXISTS
    (SELECT 1 FROM listings l WHERE l.stream = parents.stream AND l.parent = parents.parent);

-- The last cursor of the stream and track that an account stands behind. It differs from `token` while a cursor of a slice
-- waits for its report; NULL: there is none.
ALTER TABLE cursors ADD COLUMN proven TEXT;
UPDATE cursors SET proven = token;
-- The first number that a version had which was written after the cursor was said.
ALTER TABLE cursors ADD COLUMN next_seq INTEGER NOT NULL DEFAULT 0;
