-- Accounts that fell short in a run, as a JSON list: checkpoints wait for them.
ALTER TABLE runs ADD COLUMN shortfalls TEXT;
