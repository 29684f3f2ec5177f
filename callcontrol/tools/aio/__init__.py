"""The tools of accounts, as they are registered and run."""
