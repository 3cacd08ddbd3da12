-- Users and the keys of their agents. Of a key only the SHA-256 is kept.

CREATE TABLE users (
    user_id  TEXT {bytewise} NOT NULL PRIMARY KEY,
    name     TEXT NOT NULL,
    name_key TEXT {bytewise} NOT NULL UNIQUE,
    email    TEXT NOT NULL,
    created  BIGINT NOT NULL
);

CREATE TABLE access_keys (
    key_id       TEXT {bytewise} NOT NULL PRIMARY KEY,
    user_id      TEXT {bytewise} NOT NULL,
    label        TEXT NOT NULL,
    token_hash   TEXT {bytewise} NOT NULL UNIQUE,
    access_right TEXT NOT NULL,
    project_word TEXT NOT NULL,
    created      BIGINT NOT NULL,
    expires_at   BIGINT,
    revoked_at   BIGINT
);

CREATE INDEX access_key_by_user ON access_keys (user_id);
