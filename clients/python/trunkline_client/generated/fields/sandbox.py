# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class CallFromSandboxFields(TypedDict):
    """
    Fields of `sandbox.call`.
    """

    to: str
    from_: NotRequired[str]
    behaviour: NotRequired[Literal['digits', 'echo', 'listen', 'speech', 'tone'] | None]
    send_digits: NotRequired[str | None]
    hangup_after_ringing_seconds: NotRequired[float | None]
    hangup_after_seconds: NotRequired[float]
