"""
Writing of `trunkline_client/generated`, and what tells that it is up to date.

The document is that of the server in this tree. Models of responses are pydantic's, fields of requests are
typed dictionaries; both are made by datamodel-code-generator, one module for each group.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from api.openapi.document import openapi_document
from api.routes import ENDPOINTS
from client_generator.document import Part, digest_of, read_document
from client_generator.render import HEADER, client_module, resource_module

__all__ = ["GENERATED", "current_document", "rendered", "write", "written_digest"]

GENERATED: Final = Path(__file__).resolve().parents[1] / "trunkline_client" / "generated"
_COMMON: Final = (
    *("--input-file-type", "openapi", "--schema-version", "3.1", "--target-python-version", "3.11"),
    *(
        "--use-union-operator",
        "--use-standard-collections",
        "--use-annotated",
        "--enum-field-as-literal",
        "all",
    ),
    *("--use-schema-description", "--disable-timestamp", "--formatters", "builtin"),
    *("--custom-file-header", HEADER),
)
_OF_FIELDS: Final = ("--output-model-type", "typing.TypedDict")
_OF_RESULTS: Final = (
    *("--output-model-type", "pydantic_v2.BaseModel", "--output-datetime-class", "datetime"),
    *("--base-class", "trunkline_client.operation.Result"),
)


def current_document() -> dict[str, Any]:
    """OpenAPI document of the server in this tree."""
    return openapi_document(ENDPOINTS, (), "http://127.0.0.1:8080")


def written_digest() -> str:
    """SHA-256 of the files of the generated package, but for the one that has the digests."""
    digest = hashlib.sha256()
    for path in sorted(GENERATED.rglob("*.py")):
        if path != GENERATED / "__init__.py":
            digest.update(f"{path.relative_to(GENERATED)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def write(codegen: str) -> None:
    """Write the package anew; nothing of the former one stays."""
    document = current_document()
    part = read_document(document)
    shutil.rmtree(GENERATED, ignore_errors=True)
    GENERATED.mkdir(parents=True)
    _write_models(codegen, part.fields, "fields", _OF_FIELDS)
    _write_models(codegen, part.results, "results", _OF_RESULTS)
    (GENERATED / "resources").mkdir()
    for path, text in rendered(part).items():
        path.write_text(text)
    text = (
        f'{HEADER}\n"""The generated part of the client; the digests of its document and files."""\n\n'
        f'DOCUMENT = "{digest_of(document)}"\nFILES = "{written_digest()}"\n'
    )
    (GENERATED / "__init__.py").write_text(text)


def _write_models(codegen: str, schemas: Mapping[str, Any], package: str, options: tuple[str, ...]) -> None:
    with TemporaryDirectory() as folder:
        source = Path(folder) / f"{package}.json"
        described = {"title": package, "version": "1"}
        components = {"openapi": "3.1.0", "info": described, "paths": {}, "components": {"schemas": schemas}}
        source.write_text(json.dumps(components))
        command: list[str | Path] = [
            codegen,
            "--input",
            source,
            "--output",
            GENERATED / package,
            *_COMMON,
            *options,
        ]
        subprocess.run(command, check=True)


def rendered(part: Part) -> dict[Path, str]:
    """Modules of the resources, which need no other generator, by their paths."""
    groups = sorted({operation.group for operation in part.operations})
    modules = {
        GENERATED / "client.py": client_module(groups),
        GENERATED / "resources" / "__init__.py": f'{HEADER}\n"""Resources of the API."""\n',
    }
    for group in groups:
        operations = [operation for operation in part.operations if operation.group == group]
        modules[GENERATED / "resources" / f"{group}.py"] = resource_module(group, operations)
    return modules
