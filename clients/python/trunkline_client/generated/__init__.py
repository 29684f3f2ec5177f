# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "e8a8d4723f1018d46c023e06d4ce1ba6fea851cda06ec8fd0154777e937d1538"
FILES = "005a7dfaa08979b29ba867d45f0873e1cbf0ed853b256cf0aee3f33e824e7be1"
