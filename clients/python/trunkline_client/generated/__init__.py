# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "52648de638d4d5e850c196177b612d3b9c877e89f3fae09fae010b05f914748e"
FILES = "9912981599be30a37651ae282b3c175d0883afc71cec751d9041a642a294659c"
