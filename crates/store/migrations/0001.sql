-- What Gleaner knows, in one file. Times are milliseconds since 1970-01-01 UTC unless said otherwise.
-- You may read it with any SQLite program while Gleaner runs; one view per stream has the records.
-- Writing to it by other means breaks what Gleaner promises about it.

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value ANY
) STRICT, WITHOUT ROWID;

-- A connector with one account and its settings.
CREATE TABLE connections (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    connector_id TEXT NOT NULL,
    -- As its author wrote it.
    manifest TEXT NOT NULL,
    -- How it is started and what it is told, as JSON. Never a secret.
    settings TEXT NOT NULL DEFAULT '{}',
    -- active, paused, removed (what was collected stays), or purging: the last one never comes back.
    state TEXT NOT NULL DEFAULT 'active',
    created_at INTEGER NOT NULL
) STRICT;

-- The streams of a connection, with counters so that nobody has to count.
CREATE TABLE streams (
    id INTEGER PRIMARY KEY,
    connection INTEGER NOT NULL,
    name TEXT NOT NULL,
    semantics TEXT NOT NULL,
    primary_key TEXT NOT NULL,
    schema TEXT,
    view_name TEXT,
    -- Whether the manifest still has it. What was collected stays.
    declared INTEGER NOT NULL DEFAULT 1,
    records INTEGER NOT NULL DEFAULT 0,
    tombstones INTEGER NOT NULL DEFAULT 0,
    versions INTEGER NOT NULL DEFAULT 0,
    quarantined INTEGER NOT NULL DEFAULT 0,
    gaps_pending INTEGER NOT NULL DEFAULT 0,
    gaps_in_progress INTEGER NOT NULL DEFAULT 0,
    gaps_recovered INTEGER NOT NULL DEFAULT 0,
    gaps_terminal INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER,
    last_stored_at INTEGER,
    UNIQUE (connection, name)
) STRICT;

-- Every version of every record, in the order in which they became durable: the change feed.
CREATE TABLE versions (
    seq INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL,
    key TEXT NOT NULL,
    -- The body, byte for byte; NULL where the record was deleted without one.
    body TEXT,
    deleted INTEGER NOT NULL,
    emitted_at TEXT,
    stored_at INTEGER NOT NULL,
    run INTEGER NOT NULL,
    -- The version before it, of the same record: history without an index.
    previous INTEGER,
    -- Of all the above.
    hash INTEGER NOT NULL
) STRICT;

-- The present version of every record, tombstones included.
CREATE TABLE records (
    stream INTEGER NOT NULL,
    key TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (stream, key)
) STRICT, WITHOUT ROWID;

-- Records that do not fit their schema. They are kept, and they are not counted as collected.
CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL,
    key TEXT NOT NULL,
    body TEXT,
    emitted_at TEXT,
    -- The JSON pointer of the fault.
    pointer TEXT NOT NULL,
    run INTEGER NOT NULL,
    stored_at INTEGER NOT NULL
) STRICT;
CREATE INDEX quarantine_by_key ON quarantine (stream, key);

-- What we know of and do not have.
CREATE TABLE gaps (
    id INTEGER PRIMARY KEY,
    -- A hash of connection, grant, stream, parent and subject. Its text is the gap's id.
    identity BLOB NOT NULL UNIQUE,
    connection INTEGER NOT NULL,
    stream INTEGER NOT NULL,
    grant_id TEXT NOT NULL,
    parent_stream TEXT,
    record_key TEXT,
    record_key_is_number INTEGER NOT NULL,
    -- pending, in_progress, recovered, terminal
    state TEXT NOT NULL,
    lease TEXT,
    attempts INTEGER NOT NULL,
    counted_under TEXT,
    deferred_under TEXT,
    reason TEXT,
    run_cap INTEGER NOT NULL,
    http_status INTEGER,
    terminal_reason TEXT,
    last_error TEXT,
    not_before INTEGER,
    since INTEGER NOT NULL,
    -- By what gaps are served: see `Gap::order`.
    due INTEGER NOT NULL,
    locator TEXT,
    list_cursor TEXT,
    run INTEGER NOT NULL,
    -- Of all the above but the id.
    hash INTEGER NOT NULL
) STRICT;
CREATE INDEX gaps_due ON gaps (connection, state, due);
CREATE INDEX gaps_of_stream ON gaps (stream, state);
CREATE INDEX gaps_under_pressure ON gaps (connection, reason, since)
    WHERE state IN ('pending', 'in_progress') AND reason IN ('rate_limited', 'upstream_pressure');

-- The committed cursors. Nothing else is a place to go on from.
CREATE TABLE cursors (
    stream INTEGER NOT NULL,
    track TEXT NOT NULL,
    token TEXT NOT NULL,
    seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    run INTEGER NOT NULL,
    committed_at INTEGER NOT NULL,
    PRIMARY KEY (stream, track)
) STRICT, WITHOUT ROWID;

-- Each commit of a cursor, for the proof that they go forward under one holder.
CREATE TABLE commits (
    id INTEGER PRIMARY KEY,
    stream INTEGER NOT NULL,
    track TEXT NOT NULL,
    seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    run INTEGER NOT NULL,
    -- The slice that it was part of; NULL at the end of a run.
    slice INTEGER,
    committed_at INTEGER NOT NULL,
    -- Of the cursor that was committed.
    hash INTEGER NOT NULL
) STRICT;
CREATE INDEX commits_of_stream ON commits (stream, track, seq);

-- Cursors that wait for the end of their run. They are no place to go on from.
CREATE TABLE staged (
    run INTEGER NOT NULL,
    stream INTEGER NOT NULL,
    token TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (run, stream)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    connection INTEGER NOT NULL,
    track TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    lease TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    reason TEXT,
    violation TEXT,
    -- What the connector said went wrong, without secrets.
    error_code TEXT,
    error_message TEXT,
    pressure TEXT,
    seen INTEGER NOT NULL DEFAULT 0,
    collected INTEGER NOT NULL DEFAULT 0,
    deleted INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    gaps INTEGER NOT NULL DEFAULT 0,
    recovered INTEGER NOT NULL DEFAULT 0,
    unaccounted INTEGER NOT NULL DEFAULT 0,
    slices INTEGER NOT NULL DEFAULT 0,
    -- Records that were the same as what was there, and those that came twice in one slice.
    unchanged INTEGER NOT NULL DEFAULT 0,
    repeated INTEGER NOT NULL DEFAULT 0,
    commit_is_unknown INTEGER NOT NULL DEFAULT 0,
    committed TEXT,
    withheld TEXT,
    failed_streams TEXT,
    -- The last word about the pace and the circuit, as the connector wrote it.
    collection_rate TEXT,
    provider_budget TEXT,
    events_dropped INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX runs_of_connection ON runs (connection, id);
CREATE INDEX runs_open ON runs (connection) WHERE ended_at IS NULL;

-- What a connector said besides data, as messages of the protocol.
CREATE TABLE events (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    message TEXT NOT NULL
) STRICT;
CREATE INDEX events_of_run ON events (run, id);

-- Questions to the owner. Answers are never here.
CREATE TABLE interactions (
    id INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    message TEXT NOT NULL,
    schema TEXT,
    stream TEXT,
    asked_at INTEGER NOT NULL,
    expires_at INTEGER,
    -- open, answered, cancelled, expired, withdrawn
    state TEXT NOT NULL,
    settled_at INTEGER,
    UNIQUE (run, request_id)
) STRICT;
CREATE INDEX interactions_open ON interactions (run) WHERE state = 'open';

CREATE TABLE cooldowns (
    connection INTEGER PRIMARY KEY,
    reason TEXT NOT NULL,
    escalation INTEGER NOT NULL,
    until INTEGER NOT NULL,
    armed_by TEXT NOT NULL
) STRICT;

-- Who works on what. Times of leases count from the machine's start, so that no calendar can move them.
CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    process_started INTEGER NOT NULL,
    boot TEXT NOT NULL,
    pid_namespace TEXT NOT NULL,
    since INTEGER NOT NULL,
    heartbeat_boot_ms INTEGER NOT NULL,
    expires_boot_ms INTEGER NOT NULL,
    released INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
