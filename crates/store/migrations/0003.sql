-- What a schedule needs: what the owner wants, what runs were for, and what the owner was told.

-- When a connection runs, as its owner said. What is not said is as its manifest recommends.
CREATE TABLE schedules (
    connection INTEGER PRIMARY KEY,
    -- automatic or manual. Paused is a state of the connection.
    mode TEXT,
    -- One of the two at most.
    every_ms INTEGER,
    cron TEXT,
    -- Hours in which nothing begins, as 22:00-07:00.
    quiet TEXT,
    -- Whose hours those are, as Europe/Berlin.
    zone TEXT
) STRICT;

-- A run that is wanted before its time. It is no longer when a run begins.
CREATE TABLE wanted (
    connection INTEGER PRIMARY KEY,
    -- owner, or handed_over: the service was stopped in the middle of it.
    by TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

-- What the owner was told, as long as it is so: nobody is told twice.
CREATE TABLE notices (
    connection INTEGER NOT NULL,
    event TEXT NOT NULL,
    told_at INTEGER NOT NULL,
    PRIMARY KEY (connection, event)
) STRICT, WITHOUT ROWID;

-- full, recovery_only, or probe: one request, to see whether a provider is back.
ALTER TABLE runs ADD COLUMN purpose TEXT NOT NULL DEFAULT 'full';
-- What it ran with. When these change, what failed may work.
ALTER TABLE runs ADD COLUMN connector_version TEXT;
-- A keyed hash, never the credential.
ALTER TABLE runs ADD COLUMN credential TEXT;
-- What the connector said about its failure.
ALTER TABLE runs ADD COLUMN error_retryable INTEGER;
ALTER TABLE runs ADD COLUMN error_action TEXT;
