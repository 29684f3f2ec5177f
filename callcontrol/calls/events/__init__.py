"""
Input events of the call machine, which handles them one at a time and in order.

They come from SIP sessions, RTP streams, the agent's socket, the API, timers and the wallet, translated by
``callcontrol.calls.aio``. SIP bodies pass through unchanged; the machine never parses them.
"""


class Event:
    """Base class of events."""

    __slots__ = ()
