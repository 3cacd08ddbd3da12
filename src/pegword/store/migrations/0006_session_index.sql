-- The index of a session as it was given to a model, so that it stays the same to the last byte while the conversation goes on.

CREATE TABLE session_indexes (
    index_key TEXT {bytewise} NOT NULL PRIMARY KEY,   -- whose it is: a session, or a workstream where no session was made
    index_id  TEXT {bytewise} NOT NULL UNIQUE,        -- of this making; made again, it has another one
    basis     TEXT {bytewise} NOT NULL,               -- a digest of all that it follows from beside the memories
    made_at   BIGINT NOT NULL,
    body      TEXT NOT NULL
);

CREATE INDEX session_index_by_time ON session_indexes (made_at);

-- Which memories it names, each as it then stood, so that it goes with every one of them.
CREATE TABLE session_index_memories (
    index_id  TEXT {bytewise} NOT NULL,
    memory_id TEXT {bytewise} NOT NULL,
    version   BIGINT NOT NULL,
    PRIMARY KEY (index_id, memory_id)
) {clustered};

CREATE INDEX session_index_memory_by_id ON session_index_memories (memory_id);
