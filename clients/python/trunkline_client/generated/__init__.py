# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "0c537a20043a940b566fb880c87e5f2c88ab70d6c18ab2e86cc5fc0ae83d10a8"
FILES = "27e137d589c9e48d9fd0b3b28dac511f2409814cf618a58f5472b8a2b83daac6"
