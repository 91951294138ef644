-- What the store can confirm: durable counts, confirmed gaps and keys, the scope behind each cursor, what a run left open.

-- What a run did to the store, written with each slice, so that it is right also for a run that was killed; and how a
-- connector that crashed ended.

-- Records that were not there before, and records whose body changed. NULL: an older program ran it and did not tell
-- them apart; `collected` less `unchanged` is both together.
ALTER TABLE runs ADD COLUMN new_records INTEGER;
ALTER TABLE runs ADD COLUMN changed_records INTEGER;

-- How the process of a run ended: one of the two, where it is known.
ALTER TABLE runs ADD COLUMN exit_code INTEGER;
ALTER TABLE runs ADD COLUMN exit_signal INTEGER;
-- The last lines of its stderr, without secrets. Only of a run that did not succeed.
ALTER TABLE runs ADD COLUMN stderr_tail TEXT;

-- What the store can confirm of what connectors say.

-- By what a closed gap was confirmed: record, empty (only another stream has its key), or list (it stood for a part of
-- a list). Absent while it is open, and for what was closed before this was asked. Hashed where it is there.
ALTER TABLE gaps ADD COLUMN confirmed_by TEXT;
-- Of gaps_recovered, those that were closed as empty.
ALTER TABLE streams ADD COLUMN gaps_empty INTEGER NOT NULL DEFAULT 0;

-- Gaps that were called recovered: closed with their record, closed as empty, and not closed because nothing came.
ALTER TABLE runs ADD COLUMN recovered_by_record INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN recovered_empty INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN recovered_unconfirmed INTEGER NOT NULL DEFAULT 0;
-- Closed gaps that stood for a part of a list, and the records and gaps that took their place.
ALTER TABLE runs ADD COLUMN recovered_lists INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN list_records INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN list_gaps INTEGER NOT NULL DEFAULT 0;
-- What a connector did that the protocol forbids and that ends no run, as a JSON list.
ALTER TABLE runs ADD COLUMN warnings TEXT;
-- What a connector left out so that the run is incomplete, as a JSON list.
ALTER TABLE runs ADD COLUMN skipped TEXT;

-- Keys that a connector calls hydrated and of which the store has nothing; and those that only another stream has.
ALTER TABLE listings ADD COLUMN unconfirmed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE listings ADD COLUMN empty INTEGER NOT NULL DEFAULT 0;
-- The first keys for which the checkpoint waits, as a JSON list.
ALTER TABLE listings ADD COLUMN waiting TEXT;

-- Records that a run with a time range stored although their time could not be read.

-- How many of them a run brought.
ALTER TABLE runs ADD COLUMN times_unreadable INTEGER NOT NULL DEFAULT 0;

-- The present versions among them, by stream. A later version of the record takes the row away.
CREATE TABLE unreadable_times (
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;

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

-- Accounts that fell short in a run, as a JSON list: checkpoints wait for them.
ALTER TABLE runs ADD COLUMN shortfalls TEXT;
