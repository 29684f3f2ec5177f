# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "be366a027654f9a4e4cb66d2775246e1073e961f305db7aa0ed15b60ce2da7f5"
FILES = "d03b3584b4442333a6bbe4761249ccd6d73a582ab88b79aab336d944133beb2d"
