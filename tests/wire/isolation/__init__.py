"""Who sees and changes what: every principal and kind of session, on every path, for every scope, their own and others'."""
