"""What the close code of a socket means for the call."""

from __future__ import annotations

from media.streams.model import AgentClosed

__all__ = ["BROKEN", "closed_by_agent"]

# The code that stands for a connection that ended without one (RFC 6455 7.4.1).
BROKEN = 1006

_NO_CODE = 1005


def closed_by_agent(code: int, reason: str = "") -> AgentClosed:
    """
    Judge a close frame of the agent.

    1000 and a frame without a code end the call once its queue is played; 4000 to 4099 end it at once.
    Other codes of applications (3000 to 4999) end it like 1000. Everything else is a failure: the agent
    goes away, crashed, or could not understand us.
    """
    code = code or _NO_CODE
    if 4000 <= code <= 4099:
        return AgentClosed(code, abnormal=False, drain=False, reason=reason)
    if code in (1000, _NO_CODE) or 3000 <= code <= 4999:
        return AgentClosed(code, abnormal=False, drain=True, reason=reason)
    return AgentClosed(code, abnormal=True, drain=False, reason=reason)
