"""The part of an agent stream that only a session with a vendor's speech model has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from media.streams import AgentClosed, AgentFailed, AgentReady, ModelDialect, StreamConnectError
from media.streams.speech_models import without_key

# Keys that follow one another this fast are one number; `#` completes it at once.
_KEY_GAP_S = 1.5
_MAX_KEYS = 64
_CONFIRMS = "#"


class ModelLink:
    """
    Readiness of a session, its last error, and the keys that the party is pressing.

    `send` writes a frame to the socket, also before the call was answered.
    """

    def __init__(
        self, dialect: ModelDialect, key: str, loop: asyncio.AbstractEventLoop, send: Callable[[bytes], None]
    ) -> None:
        self.dialect = dialect
        self.error: AgentFailed | None = None
        self._key = key
        self._loop = loop
        self._send = send
        self._ready: asyncio.Future[None] = loop.create_future()
        self._keys = ""
        self._timer: asyncio.TimerHandle | None = None

    async def until_ready(self, timeout_s: float) -> None:
        """
        Wait until the vendor has accepted the session.

        Raises:
            StreamConnectError: It has not within the time, refused, or closed the socket.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._ready
        except TimeoutError:
            raise StreamConnectError("timeout", attempts=1, detail="the session is not accepted") from None

    def note(self, command: AgentReady | AgentFailed) -> None:
        """Record that the session is accepted, or its error."""
        if isinstance(command, AgentFailed):
            self.error = replace(command, message=self.redacted(command.message))
        elif not self._ready.done():
            self._ready.set_result(None)

    def closed(self, code: int, reason: str) -> AgentClosed:
        """Evaluate the vendor's close frame."""
        reason = self.redacted(reason)
        error = self.dialect.closed(code, reason)
        if error is not None:
            self.note(error)
        return AgentClosed(code, abnormal=error is not None, drain=error is None, reason=reason, error=error)

    def redacted(self, text: str) -> str:
        """Return a text of the vendor without the key."""
        return without_key(text, self._key)

    def send(self, frames: Iterable[bytes]) -> None:
        """Send frames to the vendor."""
        for frame in frames:
            self._send(frame)

    @property
    def takes_audio(self) -> bool:
        """True when the vendor has accepted the session."""
        return self.dialect.is_ready

    def press(self, key: str) -> None:
        """Collect a key; the keys are sent together."""
        self._keys = (self._keys + key)[-_MAX_KEYS:]
        self._stop_timer()
        if key == _CONFIRMS:
            self._flush()
        else:
            self._timer = self._loop.call_later(_KEY_GAP_S, self._flush)

    def interrupt(self, unplayed_ms: int) -> None:
        """Notify the vendor of what the party has heard."""
        self.send(self.dialect.interrupted(unplayed_ms))

    def keep_alive(self) -> None:
        """Keep an idle session open."""
        frame = self.dialect.keep_alive()
        if frame is not None:
            self._send(frame)

    def close(self, reason: str) -> None:
        """Stop: the socket is closed, or about to be."""
        self._stop_timer()
        if self._ready.done():
            return
        error = self.error
        detail = f"{error.code}: {error.message}" if error is not None else self.redacted(reason)
        refusal = StreamConnectError("rejected", attempts=1, detail=detail, error=error)
        self._ready.set_exception(refusal)
        # Retrieved here, since nobody waits where the socket was abandoned.
        self._ready.exception()

    def _flush(self) -> None:
        keys, self._keys = self._keys, ""
        self._stop_timer()
        if keys:
            self.send(self.dialect.pressed(keys))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
