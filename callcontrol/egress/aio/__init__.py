"""Resolver and HTTP client for customers' hosts."""
