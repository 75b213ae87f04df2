CREATE TABLE aftercommit_queue_queues (
    -- Never used again: a queue that is deleted and made again is another one.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE aftercommit_queue_exchanges (
    name TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

CREATE TABLE aftercommit_queue_routes (
    exchange TEXT NOT NULL REFERENCES aftercommit_queue_exchanges (name) ON DELETE CASCADE,
    -- Compared as a whole; '#' matches every key.
    key TEXT NOT NULL,
    queue INTEGER NOT NULL REFERENCES aftercommit_queue_queues (id) ON DELETE CASCADE,
    PRIMARY KEY (exchange, key, queue)
) STRICT, WITHOUT ROWID;

CREATE INDEX aftercommit_queue_routes_by_queue ON aftercommit_queue_routes (queue);

-- What changes of a message, apart from what does not: a claim must not write the body again.
CREATE TABLE aftercommit_queue_messages (
    -- The order of publishing; never used again.
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    queue INTEGER NOT NULL REFERENCES aftercommit_queue_queues (id) ON DELETE CASCADE,
    -- 0: ready. Else milliseconds since 1970 until which a lease or a delay lasts.
    visible_at INTEGER NOT NULL DEFAULT 0,
    -- How long that lease or delay is in all, in milliseconds: shows that the clock jumped back.
    hidden_for INTEGER NOT NULL DEFAULT 0,
    -- Who has it: NULL for nobody.
    token BLOB CHECK (length(token) = 16),
    deliveries INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX aftercommit_queue_messages_due ON aftercommit_queue_messages (queue, visible_at);

CREATE TABLE aftercommit_queue_contents (
    position INTEGER PRIMARY KEY REFERENCES aftercommit_queue_messages (position) ON DELETE CASCADE,
    published_at INTEGER NOT NULL,
    exchange TEXT NOT NULL,
    routing_key TEXT NOT NULL,
    message_id BLOB,
    event_type TEXT,
    schema_version TEXT,
    aggregate_id TEXT,
    trace_id TEXT,
    correlation_id TEXT,
    -- Seconds since 1970, nanoseconds beside them, and the offset from UTC in seconds.
    occurred_at INTEGER,
    occurred_nanos INTEGER,
    occurred_offset INTEGER,
    key BLOB,
    -- [[name, type, value], ...] as JSON.
    headers TEXT,
    native TEXT,
    -- NULL is absent, which is not empty.
    body BLOB
) STRICT;
