-- Closed sessions by when they were closed, and removals that are done by when they were asked for: so that those which are to be forgotten
-- are found without reading all.

CREATE INDEX session_by_end ON sessions (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX removal_by_time ON removals (asked_at) WHERE done = 1;
