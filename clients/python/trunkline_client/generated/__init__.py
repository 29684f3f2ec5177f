# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "c38b22074ffb75f09e84a9d3c257ecec3ac4cd90cdc32ea51f7cc9f68be8726a"
FILES = "62bff2cffe564e0b75b8beb1cab229081e94d07a00d25333506793616bab8ef3"
