-- Records that a run with a time range stored although their time could not be read.

-- How many of them a run brought.
ALTER TABLE runs ADD COLUMN times_unreadable INTEGER NOT NULL DEFAULT 0;

-- The present versions among them, by stream. A later version of the record takes the row away.
CREATE TABLE unreadable_times (
    stream INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (stream, seq)
) STRICT, WITHOUT ROWID;
