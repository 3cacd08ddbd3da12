-- A removal that is done stays noted for a while, and the scope with it: so no slot is given twice while anybody may still hold one.

ALTER TABLE removals ADD COLUMN done BIGINT NOT NULL DEFAULT 0;
