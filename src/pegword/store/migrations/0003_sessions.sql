-- Scopes that several users share, their members, and sessions.

-- Projects (key p:…) and workstreams with members (key s:…). One that is being deleted keeps its row until its memories are gone.
CREATE TABLE shared_scopes (
    scope_key   TEXT {bytewise} NOT NULL PRIMARY KEY,
    owner       TEXT {bytewise} NOT NULL,      -- the user who made it, and who may change it
    title       TEXT NOT NULL,
    created     BIGINT NOT NULL,
    archived_at BIGINT,                        -- from then on no session has it
    deleted_at  BIGINT
);

CREATE INDEX shared_scope_by_owner ON shared_scopes (owner);

CREATE TABLE scope_members (
    scope_key TEXT {bytewise} NOT NULL,
    user_id   TEXT {bytewise} NOT NULL,
    may_write BIGINT NOT NULL,
    PRIMARY KEY (scope_key, user_id)
) {clustered};

CREATE INDEX scope_member_by_user ON scope_members (user_id);

-- One conversation of an agent each. Who made it set all of this; nothing of it ever comes from a model.
CREATE TABLE sessions (
    session_id     TEXT {bytewise} NOT NULL PRIMARY KEY,
    kind           TEXT NOT NULL,
    user_id        TEXT {bytewise} NOT NULL,   -- whose it is; of an anonymous one, who made it
    anonymous      BIGINT NOT NULL,
    made_by        TEXT {bytewise} NOT NULL,   -- the user whose credential made it
    credential     TEXT NOT NULL,
    workstream_id  TEXT NOT NULL,
    workstream_key TEXT {bytewise} NOT NULL,   -- '' when it has none
    project_key    TEXT {bytewise} NOT NULL,   -- '' when it has none
    persona        TEXT NOT NULL,
    memory         BIGINT NOT NULL,            -- whether its persona had memories when the session was made
    parent_id      TEXT {bytewise} NOT NULL,   -- '' but for a child
    created        BIGINT NOT NULL,
    resumed_at     BIGINT,
    closed_at      BIGINT
);

CREATE INDEX session_by_user ON sessions (user_id, created);
CREATE INDEX session_by_maker ON sessions (made_by, created);
CREATE INDEX session_by_parent ON sessions (parent_id);
CREATE INDEX session_by_workstream ON sessions (workstream_key);

-- Scopes whose memories are being deleted: those that were there when it was asked for.
CREATE TABLE removals (
    scope_key   TEXT {bytewise} NOT NULL PRIMARY KEY,
    before_slot BIGINT NOT NULL,
    asked_at    BIGINT NOT NULL
);
