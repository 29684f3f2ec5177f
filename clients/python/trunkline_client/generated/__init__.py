# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "a801c96f63331a052522348b2c50e94846c66776189bb3e32340e25e9ad5fb37"
FILES = "6ee48fa36f048abea69f0bf378f7e2e1710a23c221592484e03648d3bd75a519"
