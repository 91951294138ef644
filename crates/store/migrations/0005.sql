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
