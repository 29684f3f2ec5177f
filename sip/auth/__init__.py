"""Digest authentication, client and server."""
