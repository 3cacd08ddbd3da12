-- What sessions were nudged of, what waits to be, and which call of a tool came last. A session key is a session's id, or, of
-- conversations without a session, the key of the scope that they share.

-- The last nudge of each kind, and when the session had its first turn (kind 'opened').
CREATE TABLE nudge_marks (
    session_key TEXT {bytewise} NOT NULL,
    kind        TEXT {bytewise} NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (session_key, kind)
) {clustered};

CREATE INDEX nudge_mark_by_age ON nudge_marks (at);

-- What hosts reported and no turn has taken yet.
CREATE TABLE nudge_events (
    session_key TEXT {bytewise} NOT NULL,
    event_id    TEXT {bytewise} NOT NULL,
    kind        TEXT {bytewise} NOT NULL,
    channel     TEXT {bytewise} NOT NULL,
    at          BIGINT NOT NULL,
    valid_until BIGINT NOT NULL,
    PRIMARY KEY (session_key, event_id)
) {clustered};

CREATE INDEX nudge_event_by_end ON nudge_events (valid_until);

-- The last reported call of a tool, as a hash of its name and arguments, and how often in a row it came.
CREATE TABLE nudge_calls (
    session_key TEXT {bytewise} NOT NULL PRIMARY KEY,
    fingerprint TEXT {bytewise} NOT NULL,
    times       BIGINT NOT NULL,
    at          BIGINT NOT NULL
) {clustered};

CREATE INDEX nudge_call_by_age ON nudge_calls (at);
