# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "37a060660019772683cdfa10695a47cf86ea69d823a0c3143a1755190182948c"
FILES = "009fec7f0916239200be884ffe05bf7c9de5c5ad1e74f53d4896ecc97c870dd0"
