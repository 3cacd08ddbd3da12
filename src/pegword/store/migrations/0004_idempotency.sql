-- Answers to writes that came with an Idempotency-Key, kept so that the same request again is answered the same and done once.

CREATE TABLE once_answers (
    once_id     TEXT {bytewise} NOT NULL PRIMARY KEY,  -- SHA-256 over credential, route and key
    fingerprint TEXT {bytewise} NOT NULL,              -- SHA-256 over the request
    at          BIGINT NOT NULL,
    status      BIGINT NOT NULL,                       -- 0: no answer is kept, for a memory that it told of was deleted since
    headers     TEXT NOT NULL,                         -- a JSON array of names and values
    body        {blob} NOT NULL
);

CREATE INDEX once_by_time ON once_answers (at);

-- Which memories a kept answer tells of, so that it does not outlive them. *at* is that of the answer.
CREATE TABLE once_memories (
    memory_id TEXT {bytewise} NOT NULL,
    once_id   TEXT {bytewise} NOT NULL,
    at        BIGINT NOT NULL,
    PRIMARY KEY (memory_id, once_id)
) {clustered};

CREATE INDEX once_memory_by_time ON once_memories (at);
