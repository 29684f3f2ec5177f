# Written by scripts/client from the OpenAPI document of the server; do not edit.
