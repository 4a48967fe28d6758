"""Who may do what: every route and every page of the admin, for every kind of caller."""
