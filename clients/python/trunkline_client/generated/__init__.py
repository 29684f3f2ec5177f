# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "9fa381e9729999049ed7364b1e80450b778162d8cddf5a1a35ea7b576a25d22f"
FILES = "bb80962021c0c1b06168b4b3816c34c60177071305db0d8a34dc6135e49c2eda"
