"""Directory: in-memory read model of accounts, numbers and trunks."""
