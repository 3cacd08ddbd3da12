-- Memories, their versions, and the index that finds them.
-- One text for both engines: an engine fills in {blob} (a type for bytes), {bytewise} (compare texts byte by byte) and
-- {clustered} (keep the rows in the order of the key). Every key begins with the scope, so rows can be spread by it.

CREATE TABLE structured_memories (
    memory_id     TEXT {bytewise} NOT NULL PRIMARY KEY,
    scope_key     TEXT {bytewise} NOT NULL,
    shelf         TEXT {bytewise} NOT NULL,
    name_key      TEXT {bytewise} NOT NULL,
    slot          BIGINT NOT NULL,            -- its number in its scope; every change takes the next one. -1: not in the index
    place         BIGINT NOT NULL,            -- its place in its sitting, 0-255
    length        BIGINT NOT NULL,            -- words, as the index counts them
    scope         TEXT NOT NULL,
    scope_id      TEXT NOT NULL,
    name          TEXT NOT NULL,
    kind          TEXT NOT NULL,
    kind_word     TEXT NOT NULL,
    priority      TEXT NOT NULL,
    source        TEXT NOT NULL,
    author        TEXT NOT NULL,              -- the name of the user whose credential wrote it
    author_user   TEXT NOT NULL,
    credential    TEXT NOT NULL,
    verified_by   TEXT NOT NULL,              -- who confirmed it; where verified_at is NULL, who had until the last change
    verified_at   BIGINT,                     -- times are microseconds since 1970, UTC
    confidence    DOUBLE PRECISION NOT NULL,
    expires_at    BIGINT,
    created       BIGINT NOT NULL,
    updated       BIGINT NOT NULL,
    version       BIGINT NOT NULL,
    access_count  BIGINT NOT NULL,
    last_accessed BIGINT,
    content_hash  TEXT NOT NULL,
    tags          TEXT NOT NULL,              -- a JSON array, in the order given
    description   TEXT NOT NULL,
    content       TEXT NOT NULL,
    UNIQUE (scope_key, shelf, name_key)
);

-- Where a hit of the index lies, and all that a list sorts and filters by, so that it reads no text but that of the rows it shows.
-- Not those that are being saved (slot -2): each save would write it twice.
CREATE INDEX memory_by_slot ON structured_memories (scope_key, slot, updated, memory_id, kind, expires_at, confidence) WHERE slot >= -1;

-- The few memories that a read must look at one by one: those that run out, are doubted, or always show.
CREATE INDEX memory_marked ON structured_memories (scope_key, slot, expires_at, confidence, priority, updated)
    WHERE expires_at IS NOT NULL OR confidence = 0 OR priority = 'critical';

CREATE TABLE memory_versions (
    scope_key    TEXT {bytewise} NOT NULL,
    memory_id    TEXT {bytewise} NOT NULL,
    version      BIGINT NOT NULL,
    action       TEXT NOT NULL,
    name         TEXT NOT NULL,
    kind         TEXT NOT NULL,
    priority     TEXT NOT NULL,
    source       TEXT NOT NULL,
    author       TEXT NOT NULL,
    credential   TEXT NOT NULL,
    verified     BIGINT NOT NULL,
    confidence   DOUBLE PRECISION NOT NULL,
    expires_at   BIGINT,
    saved        BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    tags         TEXT NOT NULL,
    description  TEXT NOT NULL,
    content      TEXT NOT NULL,
    PRIMARY KEY (scope_key, memory_id, version)
);

CREATE TABLE memory_tags (
    scope_key TEXT {bytewise} NOT NULL,
    memory_id TEXT {bytewise} NOT NULL,
    tag_key   TEXT {bytewise} NOT NULL,
    PRIMARY KEY (scope_key, memory_id, tag_key)
) {clustered};

CREATE INDEX memory_tag_by_key ON memory_tags (scope_key, tag_key);

-- The index. Statistics of a scope, changed in the transaction of the save.
CREATE TABLE ix_scope (
    scope_key     TEXT {bytewise} NOT NULL PRIMARY KEY,
    next_slot     BIGINT NOT NULL,
    n             BIGINT NOT NULL,            -- memories in the index
    words         BIGINT NOT NULL,            -- the sum of their lengths
    tail_n        BIGINT NOT NULL,
    dead_n        BIGINT NOT NULL,
    version       BIGINT NOT NULL,            -- moves when blocks are written
    sitting       TEXT NOT NULL,              -- whose sitting the last save belonged to
    sitting_place BIGINT NOT NULL,
    sitting_at    BIGINT NOT NULL,
    analyser      TEXT NOT NULL
) {clustered};

-- The newest memories of a scope, one row each, until they are folded into blocks.
CREATE TABLE ix_tail (
    scope_key TEXT {bytewise} NOT NULL,
    slot      BIGINT NOT NULL,
    place     BIGINT NOT NULL,
    length    BIGINT NOT NULL,
    counts    {blob} NOT NULL,
    marks     {blob} NOT NULL,                -- eight bytes a term
    unspelt   TEXT NOT NULL,                  -- the terms that are longer, a line each
    PRIMARY KEY (scope_key, slot)
) {clustered};

-- Packed postings, at most 512 a row, by slot. A term is its own text, so nothing outlives its last memory.
CREATE TABLE ix_block (
    scope_key  TEXT {bytewise} NOT NULL,
    term       TEXT {bytewise} NOT NULL,
    first_slot BIGINT NOT NULL,
    n          BIGINT NOT NULL,
    postings   {blob} NOT NULL,
    PRIMARY KEY (scope_key, term, first_slot)
) {clustered};

-- Slots in blocks whose memory has been changed since.
CREATE TABLE ix_dead (
    scope_key TEXT {bytewise} NOT NULL,
    slot      BIGINT NOT NULL,
    PRIMARY KEY (scope_key, slot)
) {clustered};

-- What a turn showed: a head row with memory_id '' and a row a memory.
CREATE TABLE receipts (
    receipt_id TEXT {bytewise} NOT NULL,
    memory_id  TEXT {bytewise} NOT NULL,
    user_id    TEXT {bytewise} NOT NULL,
    at         BIGINT NOT NULL,
    version    BIGINT NOT NULL,
    body       TEXT NOT NULL,
    PRIMARY KEY (receipt_id, memory_id)
);

CREATE INDEX receipt_by_memory ON receipts (memory_id);
CREATE INDEX receipt_by_time ON receipts (at);

CREATE TABLE facts (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);
