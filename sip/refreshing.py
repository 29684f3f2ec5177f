"""How a session keeps its session timer: what it says, hears and sends to refresh itself (RFC 4028)."""

from collections.abc import Sequence

from sip.effects import Effect, Purpose
from sip.machine import NOTHING
from sip.message import Request, Response
from sip.responses import ALLOW, supported_fields
from sip.session_core import SessionCore
from sip.session_model import Event, SessionSettings, State
from sip.session_timer import SessionTimer

__all__ = ["Refreshing"]


class Refreshing(SessionCore):
    """
    The session timer of a session; `timer` is None as long as neither side asks for one.

    `described` is our session description as the peer has it: what a re-INVITE that changes nothing offers.
    """

    __slots__ = ("described", "timer")

    def __init__(self, call_id: str, local_tag: str, settings: SessionSettings, *, caller: bool) -> None:
        super().__init__(call_id, local_tag, settings, caller=caller)
        self.timer: SessionTimer | None = None
        self.described = b""

    def _offer_if_free(self) -> Sequence[Effect]:
        """Send what waits for its turn: an offer, or else a refresh that is due."""
        raise NotImplementedError

    def _timer_fields(self) -> Sequence[tuple[str, str]]:
        return () if self.timer is None else self.timer.request_fields()

    def _heed_answer(self, response: Response) -> Sequence[Effect]:
        """Take what a 2xx to a request of ours decides about the session timer."""
        if self.timer is None:
            if response.headers.first("session-expires") is None:
                return NOTHING
            self.timer = SessionTimer(None, self.settings.min_se_s)
        return self.timer.take_answer(response)

    def _heed_request(self, request: Request) -> Sequence[tuple[str, str]]:
        """Take what the peer's request asks of the session timer; the header fields of its 2xx."""
        if self.timer is None:
            if request.headers.first("session-expires") is None:
                return ()
            self.timer = SessionTimer(None, self.settings.min_se_s)
        return self.timer.take_request(request)

    def _run_timer(self) -> Sequence[Effect]:
        return NOTHING if self.timer is None else self.timer.run()

    def _refresh_due(self, _: None) -> Sequence[Effect]:
        timer = self.timer
        assert timer is not None
        return (*timer.fall_due(), *self._offer_if_free())

    def _refresh_if_due(self) -> Sequence[Effect]:
        """Refresh the session in the lightest way the peer knows."""
        timer = self.timer
        if timer is None or not timer.due:
            return NOTHING
        timer.due = False
        if timer.updates or not self.described:
            headers = (("Allow", ALLOW), *supported_fields(), *timer.request_fields())
            return (self._start("UPDATE", Purpose.REFRESH, headers=headers),)
        timer.in_offer = True
        self.offers.wanted = self.described
        return self._offer_if_free()

    def _refreshed(self, response: Response) -> Sequence[Effect]:
        """Take the final response to an UPDATE that only refreshes."""
        timer, status = self.timer, response.status
        if timer is None or self.state is not State.CONFIRMED:
            return NOTHING
        if status < 300:
            assert self.dialog is not None
            self.dialog.refresh_target(response)
            return timer.take_answer(response)
        if status in (408, 481):
            return self.handle(Event.DIALOG_GONE)
        if status in (405, 501):
            timer.updates = False  # Whatever its Allow said.
        elif status != 422 or not timer.take_too_small(response):
            glare_s = self.offers.glare_delay_s() if status == 491 else None
            return timer.retry(response.retry_after_s if glare_s is None else glare_s)
        timer.due = True
        return self._offer_if_free()
