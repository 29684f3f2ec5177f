# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""The generated part of the client; the digests of its document and files."""

DOCUMENT = "b92b18363154b03bc23f05cced59a759af4adc9a7d0463f39ff53d1ae134a3c7"
FILES = "dfa33c70895a05dd3c5591934a4959e8ae891b196836561ecaadab2cdbac898c"
