# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "67993588b6dafa04eeeae83946779b8d51b320965f4fa5122780583cd790968d"
FILES = "bb80962021c0c1b06168b4b3816c34c60177071305db0d8a34dc6135e49c2eda"
