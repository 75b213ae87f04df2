-- Keys compare byte by byte (COLLATE "C"), whatever the database's default collation is.
CREATE TABLE {messages} (
    consumer_name text COLLATE "C" NOT NULL CHECK (octet_length(consumer_name) BETWEEN 1 AND 128),
    message_id    text COLLATE "C" NOT NULL CHECK (octet_length(message_id) BETWEEN 1 AND 255),
    processed_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_name, message_id)
);
CREATE TABLE {attempts} (
    consumer_name   text COLLATE "C" NOT NULL CHECK (octet_length(consumer_name) BETWEEN 1 AND 128),
    message_id      text COLLATE "C" NOT NULL CHECK (octet_length(message_id) BETWEEN 1 AND 255),
    failures        integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    starts          integer NOT NULL DEFAULT 0 CHECK (starts >= 0),
    first_failed_at timestamptz,
    last_failed_at  timestamptz,
    last_error      text,
    PRIMARY KEY (consumer_name, message_id)
);
