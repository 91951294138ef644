-- Why a record is in quarantine, and by what it was judged, so that it is judged again when that changes.

-- The rule of the schema that it breaks. Empty where nobody noted it.
ALTER TABLE quarantine ADD COLUMN reason TEXT NOT NULL DEFAULT '';
-- A digest of the manifest whose schema it was last held against. NULL: an older program put it there.
ALTER TABLE quarantine ADD COLUMN judged_by TEXT;
-- The version of the connector that sent it, or that listed its stream again since.
ALTER TABLE quarantine ADD COLUMN connector_version TEXT;
