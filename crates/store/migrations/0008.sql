-- What a run asked for, and what a cursor accounts for.

-- What the run asked for and what its owner allowed at the time, as JSON. NULL: a run of an older program, which moved
-- the ordinary cursor whatever it asked for.
ALTER TABLE runs ADD COLUMN scope TEXT;
ALTER TABLE runs ADD COLUMN grant_scope TEXT;
-- The streams whose bodies the run asked only some fields of, as JSON; NULL where there is none.
ALTER TABLE runs ADD COLUMN partial TEXT;

-- What was looked at on the way to this cursor, as JSON. A run goes on from it only if that is all that it is about.
ALTER TABLE cursors ADD COLUMN basis TEXT;
-- Those of older programs are taken as they are: for the streams that the connection has now.
UPDATE cursors SET basis = (
    SELECT json_object('streams', json_group_array(json_object('name', other.name)))
    FROM streams own JOIN streams other ON other.connection = own.connection AND other.declared = 1
    WHERE own.id = cursors.stream);

-- Pairs of which a connector said that records of the one are found by the list of the other: in a coverage report or a
-- gap of any run.
CREATE TABLE parents (
    stream INTEGER NOT NULL,
    parent TEXT NOT NULL,
    PRIMARY KEY (stream, parent)
) STRICT, WITHOUT ROWID;
INSERT INTO parents SELECT l.stream, l.parent FROM listings l JOIN streams s ON s.id = l.stream WHERE s.name != l.parent;
INSERT OR IGNORE INTO parents SELECT DISTINCT g.stream, g.parent_stream FROM gaps g JOIN streams s ON s.id = g.stream
    WHERE g.parent_stream IS NOT NULL AND s.name != g.parent_stream;

-- Whether a run of an older program is in the lineage of the cursor: it may have moved it past records. It stays so until
-- the stream was listed again.
ALTER TABLE cursors ADD COLUMN is_assumed INTEGER NOT NULL DEFAULT 0;
UPDATE cursors SET is_assumed = 1;
