"""Python of the resources: for each group the methods of its operations, for both kinds of client."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from client_generator.document import Operation

__all__ = ["HEADER", "client_module", "resource_module"]

HEADER: Final = "# Written by scripts/client from the OpenAPI document of the server; do not edit."

# Results with methods of their own: the classes for both clients, of the module `trunkline_client.calls`.
_BOUND: Final = {"calls.Call": ("Call", "AsyncCall")}
_LINE_CHARS: Final = 110
_RESULT_KINDS: Final = {"none": "nothing", "bytes": "file"}


def resource_module(group: str, operations: Sequence[Operation]) -> str:
    """Return the module of a group."""
    names = [operation.name for operation in operations]
    assert len(names) == len(set(names)), f"two operations of {group} have one name: {names}"
    lines = [HEADER, f'"""Operations of `client.{group}`."""', "", "from __future__ import annotations", ""]
    lines += _imports(group, operations)
    for operation in operations:
        lines += _constant(operation)
    for is_async in (False, True):
        base = "AsyncResource" if is_async else "Resource"
        lines += ["", "", f"class {_class_name(group, is_async)}({base}):"]
        lines += [f'    """Operations of `client.{group}`."""']
        for operation in operations:
            lines += ["", *_method(operation, is_async)]
    return "\n".join(lines) + "\n"


def client_module(groups: Sequence[str]) -> str:
    """Return the module of the classes that have all resources as attributes."""
    lines = [HEADER, '"""All resources of a client."""', "", "from __future__ import annotations", ""]
    lines += [
        f"from trunkline_client.generated.resources.{group} import {', '.join(_class_names(group))}"
        for group in groups
    ]
    lines += ["from trunkline_client.transport import AsyncTransport, Transport"]
    for is_async in (False, True):
        prefix = "Async" if is_async else ""
        lines += ["", "", f"class {prefix}Resources:"]
        lines += ['    """Each resource of the API is an attribute."""', ""]
        lines += [f"    def __init__(self, transport: {prefix}Transport) -> None:"]
        lines += [f"        self.{group} = {_class_name(group, is_async)}(transport)" for group in groups]
    return "\n".join(lines) + "\n"


def _imports(group: str, operations: Sequence[Operation]) -> Iterator[str]:
    if any(operation.paging == "whole" for operation in operations):
        yield "from collections.abc import Sequence"
    has_fields = any(operation.fields for operation in operations)
    if has_fields:
        yield "from typing import Unpack"
    yield ""
    if any(operation.result in _BOUND for operation in operations):
        yield "from trunkline_client.calls import AsyncCall, Call"
    if has_fields:
        yield f"from trunkline_client.generated.fields import {group} as fields_of"
    modules = {
        operation.result.split(".")[0]
        for operation in operations
        if operation.result and operation.result not in _BOUND
    }
    if modules:
        yield f"from trunkline_client.generated.results import {', '.join(sorted(modules))}"
    yield "from trunkline_client.operation import Operation"
    if any(operation.paging in ("cursor", "page") for operation in operations):
        yield "from trunkline_client.pages import AsyncPages, Pages"
    yield "from trunkline_client.transport import AsyncResource, Resource"
    yield ""


def _constant(operation: Operation) -> Iterator[str]:
    arguments = [f'"{operation.method}"', f'"{operation.path}"']
    if operation.queries:
        listed = ", ".join(f'"{name}"' for name in operation.queries)
        arguments.append(f"queries=frozenset({{{listed}}})")
    if operation.idempotent:
        arguments.append("idempotent=True")
    if operation.envelope == "bare":
        arguments.append("bare=True")
    yield from _fitting(f"_{operation.name.upper()} = Operation(", arguments, ")")


def _method(operation: Operation, is_async: bool) -> Iterator[str]:
    parameters = [(_snake(name), kind) for name, kind in operation.parameters]
    signature = ["self", *(f"{name}: {kind}" for name, kind in parameters)]
    if parameters:
        signature.append("/")
    if operation.idempotent:
        signature += ["*", "idempotency_key: str | None = None"]
    if operation.fields:
        signature.append(f"**fields: Unpack[fields_of.{operation.fields.split('.')[1]}]")
    result, call = _result(operation, is_async)
    path = ", ".join(name for name, _ in parameters) + ("," if parameters else "")
    given = [f"_{operation.name.upper()}", f"({path})", "fields" if operation.fields else "{}"]
    if operation.result:
        given.append(_class_of(operation, is_async))
    if operation.idempotent:
        given.append("idempotency_key")
    awaited = is_async and operation.paging not in ("cursor", "page")
    begins = f"    {'async ' if awaited else ''}def {operation.name}("
    yield from _fitting(begins, signature, f") -> {result}:")
    yield f'        """{operation.summary.rstrip(".")}."""'
    yield from _fitting(f"        return {'await ' if awaited else ''}self._transport.{call}(", given, ")")


def _fitting(begins: str, parts: Sequence[str], ends: str) -> Iterator[str]:
    """Lines of a bracket: one, or three when that is too long."""
    whole = f"{begins}{', '.join(parts)}{ends}"
    if len(whole) <= _LINE_CHARS:
        yield whole
        return
    indent = begins[: len(begins) - len(begins.lstrip())]
    yield begins
    yield f"{indent}    {', '.join(parts)}"
    yield f"{indent}{ends}"


def _result(operation: Operation, is_async: bool) -> tuple[str, str]:
    """Annotation of what a method returns, and the method of the transport that does it."""
    if operation.result is None:
        return ("bytes" if operation.envelope == "bytes" else "None"), _RESULT_KINDS[operation.envelope]
    item = _class_of(operation, is_async)
    if operation.paging == "whole":
        return f"Sequence[{item}]", "items"
    if operation.paging is not None:
        return f"{'Async' if is_async else ''}Pages[{item}]", "pages"
    return item, "item"


def _class_of(operation: Operation, is_async: bool) -> str:
    assert operation.result is not None
    bound = _BOUND.get(operation.result)
    return bound[is_async] if bound else operation.result


def _class_names(group: str) -> list[str]:
    return [_class_name(group, True), _class_name(group, False)]


def _class_name(group: str, is_async: bool) -> str:
    return ("Async" if is_async else "") + "".join(word.title() for word in group.split("_")) + "Resource"


def _snake(name: str) -> str:
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return "identifier" if snake == "id" else snake
