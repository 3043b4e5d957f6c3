-- The archive (ARV-01). `events` is the truth and only ever grows; every other table is a
-- projection that is rebuilt from it.
CREATE TABLE events (
    seq   INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    kind  TEXT NOT NULL,
    node  INTEGER,
    json  TEXT NOT NULL,
    prev  TEXT NOT NULL,
    hash  TEXT NOT NULL
) STRICT;

CREATE TRIGGER events_never_change BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_never_go BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE nodes (
    node             INTEGER PRIMARY KEY,
    operator         TEXT NOT NULL,
    parent           INTEGER REFERENCES nodes (node),
    family           TEXT,
    seed_program     TEXT,
    status           TEXT NOT NULL,
    no_progress      INTEGER NOT NULL DEFAULT 0,
    same_as_parent   INTEGER NOT NULL DEFAULT 0,
    budget_cut       INTEGER NOT NULL DEFAULT 0,
    detail           TEXT NOT NULL DEFAULT '',
    commit_id        TEXT,
    tree             TEXT,
    runtime_key      TEXT,
    plan_json        TEXT,
    review           TEXT,
    promotion        TEXT NOT NULL DEFAULT 'none',
    mean             REAL,
    refuted          TEXT,
    epoch            INTEGER,
    origin           TEXT,
    created_at       INTEGER NOT NULL,
    settled_at       INTEGER
) STRICT;

CREATE TABLE executions (
    node         INTEGER NOT NULL REFERENCES nodes (node),
    exec         TEXT NOT NULL,
    result       TEXT,
    detail       TEXT NOT NULL DEFAULT '',
    wall_json    TEXT,
    max_rss_kib  INTEGER,
    harness_ms   INTEGER,
    digests_json TEXT,
    started_at   INTEGER,
    ended_at     INTEGER,
    PRIMARY KEY (node, exec)
) STRICT, WITHOUT ROWID;

CREATE TABLE scores (
    node            INTEGER NOT NULL REFERENCES nodes (node),
    exec            TEXT NOT NULL,
    total           REAL,
    components_json TEXT,
    parts_json      TEXT,
    detail          TEXT NOT NULL DEFAULT '',
    at              INTEGER NOT NULL,
    PRIMARY KEY (node, exec)
) STRICT, WITHOUT ROWID;

CREATE TABLE effects (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    node       INTEGER NOT NULL REFERENCES nodes (node),
    started_at INTEGER,
    ended_at   INTEGER,
    outcome    TEXT
) STRICT, WITHOUT ROWID;
