"""Loader of the directory, and access to its rows."""
