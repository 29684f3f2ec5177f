"""Writes the generated part of the client from the server's OpenAPI document; `scripts/client` runs it."""
