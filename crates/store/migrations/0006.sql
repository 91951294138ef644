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
