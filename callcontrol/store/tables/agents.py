"""Voice agents of accounts."""
