# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "b2798bd8ed13d5e052f2aca4ab1fb9a29fc5ec7d17dcece9e6ff58070ac5e865"
FILES = "9bea6ddda8143acc89dd5c7e8402edad70e48e151a76d0c231d26b8336af215a"
