# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "76b5c142ffe58d3c07c00ded3f2f92ede538e82165ca5cc19c1e83e1d6bf5620"
FILES = "bf19b785ac2520de2740fce8c68e6c882207ea757b8eeaecd9bbb389c78e3b25"
