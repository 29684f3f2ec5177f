"""
Identifiers of the call machinery.

Calls get theirs from ``callcontrol.aio.tokens``, so that the state machines stay free of randomness; objects
of a call derive their identifiers from the call's.
"""

from typing import Final
from uuid import UUID, uuid5

CallSid = str
"""The opaque UUID of a call."""

LegId = int
"""The number of a leg within its call, in the order the legs were made."""

A_LEG: Final[LegId] = 0
"""The first leg of a call: the caller of an inbound call, the called party of an outbound one."""


def stream_sid(call_sid: CallSid, number: int) -> str:
    """The identifier of the call's ``number``-th agent stream; ``call_sid`` must be a UUID."""
    return str(uuid5(UUID(call_sid), f"stream-{number}"))
