# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Any, NotRequired, TypedDict


class ExecuteToolFields(TypedDict):
    """
    Fields of `tools.execute`.
    """

    arguments: NotRequired[dict[str, Any]]
