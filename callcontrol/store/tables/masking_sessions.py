"""Masking sessions and their mappings."""
