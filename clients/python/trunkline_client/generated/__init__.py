# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "2664ca45b559b1dec61e0d2da3f0853dbc33cd177a9d1275ff3f5c7825f5ea24"
FILES = "7798610a74bd16bb4cb308858422f9ce96022315c3d5cf8973b514258118a393"
