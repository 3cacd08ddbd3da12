-- What has to be so still where a kept answer is given again: the right that its credential had, and what was seen of shared scopes,
-- as a JSON array of [scope key, user id, 1 outside of a session].

ALTER TABLE once_answers ADD COLUMN access_right TEXT NOT NULL DEFAULT 'read';
ALTER TABLE once_answers ADD COLUMN seen TEXT NOT NULL DEFAULT '[]';
