# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "595035a5ac633388a46b2c878f495d83e9619fa1fc451c2897d9bae965c402b3"
FILES = "ad4471f771b1695e1a129f97a6b4e94b145c88d07667fc89fed4ed78afe63eab"
