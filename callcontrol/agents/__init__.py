"""Voice agents of accounts, and the built-in one."""
