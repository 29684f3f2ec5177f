# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import NotRequired, TypedDict


class GetRecordingFields(TypedDict):
    """
    Fields of `recordings.get`.
    """

    expires: NotRequired[str | None]
    signature: NotRequired[str | None]
