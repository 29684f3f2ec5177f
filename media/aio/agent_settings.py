"""Settings of an agent stream."""

from __future__ import annotations

from dataclasses import dataclass, field

from media.aio.agent_dial import DialSettings


@dataclass(frozen=True, slots=True)
class AgentStreamSettings:
    """
    Limits and periods of a stream.

    Attributes:
        ping_interval_s: Time from the opening or a pong to the next ping.
        pong_timeout_s: Limit for a pong, after which the stream is closed.
        queue_ms: Audio kept for an agent that does not read; older audio is dropped.
        close_timeout_s: Limit for the agent's answer to our close frame.
        start_timeout_s: Limit for the agent's first message after the start; None for no limit.
        model_timeout_s: Limit for a vendor's model to accept the session, from the opening of the socket.
        malformed_limit: Malformed frames within `malformed_window_s` beyond which the stream is closed.
        command_limit: Commands to the call within `command_window_s` beyond which the stream is closed.
    """

    dial: DialSettings = field(default_factory=DialSettings)
    ping_interval_s: float = 5.0
    pong_timeout_s: float = 10.0
    queue_ms: int = 200
    start_timeout_s: float | None = None
    close_timeout_s: float = 2.0
    model_timeout_s: float = 8.0
    malformed_limit: int = 100
    malformed_window_s: float = 10.0
    command_limit: int = 1000
    command_window_s: float = 10.0
