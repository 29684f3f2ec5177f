"""Composition root: opens the database and builds every service once."""
