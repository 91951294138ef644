-- Whether a cursor may be resumed is decided when it is committed, by what its run sent for each record of the list.

-- Whether the run had sent a detail, a gap or a quarantined record for every record of the list when it committed `token`.
ALTER TABLE cursors ADD COLUMN is_complete INTEGER NOT NULL DEFAULT 0;
-- It was used to look for the details in the store, where those of an earlier version of the record count, too.
ALTER TABLE cursors DROP COLUMN next_seq;

-- Required keys of the last coverage reports that had no outcome and withheld a checkpoint. A later report that does not name
-- them any more makes them gaps.
CREATE TABLE awaited_keys (
    stream INTEGER NOT NULL,
    parent TEXT NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (stream, parent, key)
) STRICT, WITHOUT ROWID;
