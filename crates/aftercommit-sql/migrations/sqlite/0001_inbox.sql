-- BINARY is SQLite's default collation; it is spelled out because the keys' meaning hangs on it.
-- length() of a blob counts bytes, of text characters.
CREATE TABLE {messages} (
    consumer_name TEXT NOT NULL COLLATE BINARY CHECK (length(CAST(consumer_name AS BLOB)) BETWEEN 1 AND 128),
    message_id    TEXT NOT NULL COLLATE BINARY CHECK (length(CAST(message_id AS BLOB)) BETWEEN 1 AND 255),
    processed_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    PRIMARY KEY (consumer_name, message_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE {attempts} (
    consumer_name   TEXT NOT NULL COLLATE BINARY CHECK (length(CAST(consumer_name AS BLOB)) BETWEEN 1 AND 128),
    message_id      TEXT NOT NULL COLLATE BINARY CHECK (length(CAST(message_id AS BLOB)) BETWEEN 1 AND 255),
    failures        INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    starts          INTEGER NOT NULL DEFAULT 0 CHECK (starts >= 0),
    first_failed_at TEXT,
    last_failed_at  TEXT,
    last_error      TEXT,
    PRIMARY KEY (consumer_name, message_id)
) STRICT, WITHOUT ROWID;
