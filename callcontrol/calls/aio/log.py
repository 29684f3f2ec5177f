"""Log lines of calls."""

import logging
from collections.abc import MutableMapping
from typing import Any

_CALLS = logging.getLogger("callcontrol.calls.call")


class CallLogger(logging.LoggerAdapter[logging.Logger]):
    """
    Logger of one call: each line carries its ``call_sid``, in the text and as a field of the log record.

    Once the first party's dialog is known, ``call_id`` (its SIP Call-ID) is a field as well.
    """

    def __init__(self, call_sid: str) -> None:
        super().__init__(_CALLS, {"call_sid": call_sid})
        self._call_sid = call_sid
        self.call_id: str | None = None

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Prefix the line with the identifier, and add it to the fields of the log record."""
        kwargs["extra"] = {"call_sid": self._call_sid, "call_id": self.call_id, **kwargs.get("extra", {})}
        return f"call {self._call_sid}: {msg}", kwargs
