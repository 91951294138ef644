-- What the commands that look need, so that none of them goes through a whole table.

-- What a connector last said about one list of a stream: how many records it named, and what became of
-- them. The next report about the same list takes its place.
CREATE TABLE listings (
    stream INTEGER NOT NULL,
    -- The stream whose list it was.
    parent TEXT NOT NULL,
    run INTEGER NOT NULL,
    required INTEGER NOT NULL,
    hydrated INTEGER NOT NULL,
    gaps INTEGER NOT NULL,
    -- Left out on purpose.
    skipped INTEGER NOT NULL,
    -- Named, without an outcome, and not written as gaps either: the checkpoint waits for them.
    unaccounted INTEGER NOT NULL,
    PRIMARY KEY (stream, parent)
) STRICT, WITHOUT ROWID;

-- Whether a gap stands for a part of a list, and nobody knows how many records that is. It follows from
-- key and locator, so it is not hashed.
ALTER TABLE gaps ADD COLUMN part_of_list INTEGER NOT NULL DEFAULT 0;
UPDATE gaps SET part_of_list = 1
    WHERE record_key IS NULL OR (json_valid(locator)
        AND (json_type(locator, '$.watermark') IS NOT NULL OR locator ->> '$.kind' = 'backlog'));

-- Paging without sorting, and counting without looking at the rows. Closed gaps are kept for good and would
-- be in the way of both.
CREATE INDEX gaps_open ON gaps (connection, id) WHERE state != 'recovered';
CREATE INDEX gaps_by_reason ON gaps (connection, stream, state, reason, terminal_reason, run_cap, part_of_list)
    WHERE state != 'recovered';

CREATE INDEX runs_succeeded ON runs (connection, id) WHERE reason = 'succeeded';
