-- What the owner does without, and what a step that is to be done by hand looks like.

-- A gap in the state `ignored` has both, any other has neither. They are hashed with the rest of the row where they are
-- there, so that a row that an older program wrote keeps its hash.
ALTER TABLE gaps ADD COLUMN ignored_note TEXT;
ALTER TABLE gaps ADD COLUMN ignored_at INTEGER;
ALTER TABLE streams ADD COLUMN gaps_ignored INTEGER NOT NULL DEFAULT 0;

-- The picture of what is to be done, as the name of a file in the run's folder.
ALTER TABLE interactions ADD COLUMN picture TEXT;
