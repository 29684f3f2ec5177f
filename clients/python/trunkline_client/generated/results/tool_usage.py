# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import Field
from trunkline_client.operation import Result


class UsageRow(Result):
    """
    Usage of a tool by a key on a day.
    """

    day: date
    tool: str
    key_id: str
    calls: int
    errors: Annotated[int, Field(description='Of the calls, those without a result.')]
    mean_ms: int
    max_ms: int


class Usage(Result):
    """
    Usage: totals and rows.
    """

    calls: int
    errors: int
    truncated: Annotated[
        bool, Field(description='There are more rows; ask for fewer days.')
    ]
    rows: list[UsageRow]
