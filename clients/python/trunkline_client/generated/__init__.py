# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "d53b3141c659c7db923528d1a06123ad2f59a2decc613d0e493aec645277286b"
FILES = "a809d4b929d5e4cbe47b608dad968679ae1eef63c71f88bdc218f9929876943c"
