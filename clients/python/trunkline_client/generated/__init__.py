# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "9959319954198de0eaaa65a050fbf7a2a643a3fe4afa78e077c395f0cb6e4bcf"
FILES = "622dad96f8c4cfd360167c255a4b0bc0afdd012a2183132b752fedd682748a8a"
