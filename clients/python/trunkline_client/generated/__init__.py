# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "47b768de941c39b79e1c7d6a8d366175fb0afd2f49ad41fd725ff6770c78c97f"
FILES = "aba1045ba5a6db577de35ffabf3e491c10f074f552d5c89d14785693138a4a13"
