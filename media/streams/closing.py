"""Effect of a socket's close code on the call."""

from __future__ import annotations

from media.streams.model import AgentClosed

__all__ = ["BROKEN", "closed_by_agent"]

# Code of a connection that ended without a close frame (RFC 6455 7.4.1).
BROKEN = 1006

_NO_CODE = 1005


def closed_by_agent(code: int, reason: str = "") -> AgentClosed:
    """
    Evaluate a close frame of the agent.

    1000 and a frame without a code end the call once its queue is played; 4000 to 4099 end it at once.
    Other application codes (3000 to 4999) end it like 1000. All other codes are failures: the agent shuts
    down, crashed, or could not understand us.
    """
    code = code or _NO_CODE
    if 4000 <= code <= 4099:
        return AgentClosed(code, abnormal=False, drain=False, reason=reason)
    if code in (1000, _NO_CODE) or 3000 <= code <= 4999:
        return AgentClosed(code, abnormal=False, drain=True, reason=reason)
    return AgentClosed(code, abnormal=True, drain=False, reason=reason)
