# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "7d792eec62222bb1128f216334babd8fa138d052d4bf8d71467ee8d838b0ad2d"
FILES = "32b88204ec56ccd69dd22784af461c5e78fe7fd5a0b523d39c6bb07f1c538fa5"
