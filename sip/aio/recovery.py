"""Ends what a former process left behind by BYE, CANCEL or a final response; answers what peers send."""

import logging
from collections import deque
from collections.abc import Callable

from sip.aio.endpoint import Endpoint
from sip.aio.request_routing import Ways
from sip.aio.transaction_io import DEAF, ClientRun
from sip.aio.transport import Flow
from sip.auth.client import Authenticator
from sip.auth.digest import Credentials
from sip.effects import CancelInvite, CancelStep, Failure, Purpose
from sip.errors import SipError
from sip.location.rfc3263 import Wanted
from sip.message.message import Request, Response
from sip.message.responses import reply
from sip.recovery import FormerSession, Kind
from sip.session.dialog import Dialog
from sip.transactions.table import server_key

__all__ = ["FormerSessions"]

logger = logging.getLogger(__name__)

BURST = 20
"""Sessions that are ended at a time."""
BURST_SPACING_S = 0.05
AT_WORK = 500
"""Ends that are on their way at a time: a peer that is gone keeps one for 32 s."""

OnOver = Callable[[], None]


class FormerSessions:
    """
    The sessions of a former process, each ended once, at a pace that leaves room for new calls.

    Their names are kept until the process ends: a peer that hangs up itself is told that it has.
    """

    def __init__(self, endpoint: Endpoint, ways: Ways, token: Callable[[], str]) -> None:
        self.endpoint = endpoint
        self.ways = ways
        self.token = token
        self._names: set[tuple[str, str]] = set()
        self._waiting: deque[_Ending] = deque()
        self._at_work = 0
        self._armed = False

    @property
    def left(self) -> int:
        """Sessions whose end is not through yet."""
        return len(self._waiting) + self._at_work

    def end(
        self, session: FormerSession, reason: str, credentials: Credentials | None, on_over: OnOver
    ) -> None:
        """
        End a session soon.

        `reason` is the value of a Reason header field; `on_over` hears that the peer has answered, or that it
        did not in the time RFC 3261 gives it.
        """
        self._names.add((session.call_id, session.local_tag))
        self._waiting.append(_Ending(self, session, reason, credentials, on_over))
        self._arm(0.0)

    def obeys(self, request: Request) -> bool:
        """Whether a request is the BYE of such a session, which is over with it."""
        return request.method == "BYE" and (request.call_id, request.to.tag or "") in self._names

    def on_timer(self, event: int) -> None:
        """End the next ones."""
        self._armed = False
        for _ in range(min(BURST, AT_WORK - self._at_work, len(self._waiting))):
            self._at_work += 1
            self._waiting.popleft().begin()
        self._arm(BURST_SPACING_S)

    def one_over(self) -> None:
        """Take note that an end is through."""
        self._at_work -= 1
        self._arm(BURST_SPACING_S)

    def _arm(self, delay_s: float) -> None:
        if self._waiting and not self._armed and self._at_work < AT_WORK:
            self._armed = True
            self.endpoint.arm(delay_s, self, 0)


class _Ending:
    """One session on its way to its end."""

    def __init__(
        self,
        sessions: FormerSessions,
        session: FormerSession,
        reason: str,
        credentials: Credentials | None,
        on_over: OnOver,
    ) -> None:
        self._sessions = sessions
        self._session = session
        self._reason = reason
        self._authenticator = None if credentials is None else Authenticator(credentials, sessions.token)
        self._on_over: OnOver | None = on_over
        self._dialog = session.dialog

    def begin(self) -> None:
        """Send what ends the session; one that nothing can be sent for is over, and holds up no other."""
        try:
            self._send_end(self._session)
        except SipError as error:
            named = {"call_id": self._session.call_id}
            logger.warning("a call of a former process cannot be ended: %s", error, extra=named)
            self._over()

    def _send_end(self, session: FormerSession) -> None:
        if session.kind is Kind.UP and session.dialog is not None:
            self._hang_up(session.dialog)
        elif session.request is None:
            self._over()
        elif session.kind is Kind.CALLING:
            self._take_back(session.request)
        else:
            self._refuse(session.request)

    def on_response(self, run: ClientRun, response: Response) -> None:
        """Take a response to the BYE, or to the INVITE that is taken back."""
        if response.status < 200:
            return
        if run.purpose is Purpose.BYE:
            self._bye_answered(response)
        elif response.status < 300:
            self._answered_too_late(run.machine.request, response)
        else:
            self._over()

    def on_failure(self, run: ClientRun, failure: Failure) -> None:
        """Nobody answers: the peer is gone, or will find out by its own timers."""
        self._over()

    def on_timer(self, event: int) -> None:
        """No final response came after the CANCEL."""
        self._over()

    def _over(self) -> None:
        on_over, self._on_over = self._on_over, None
        if on_over is not None:
            self._sessions.one_over()
            on_over()

    # A dialog that stands.

    def _hang_up(self, dialog: Dialog) -> None:
        bye = dialog.request("BYE", headers=(("Reason", self._reason),))
        if self._authenticator is not None:
            for name, value in self._authenticator.headers("BYE", bye.uri, b""):
                bye.headers.add(name, value)

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is None:
                self._over()
            else:
                self._sessions.endpoint.start_client(bye, flow, self, Purpose.BYE)

        self._sessions.ways.with_wanted(Wanted.of(dialog.next_hop()), self._near(), send)

    def _near(self) -> Flow | None:
        """The way by which the peer was heard; a connection of the former process is gone."""
        session = self._session
        transport = self._sessions.endpoint.transport_for(session.transport, session.peer[0])
        return None if transport is None or transport.reliable else transport.flow_to(session.peer)

    def _bye_answered(self, response: Response) -> None:
        authenticator, dialog = self._authenticator, self._dialog
        if authenticator is not None and dialog is not None and authenticator.learn(response):
            self._hang_up(dialog)
        else:
            self._over()  # Whatever it says, its dialog is no more (RFC 3261 15.1.2).

    # An INVITE of ours.

    def _take_back(self, invite: Request) -> None:
        session, endpoint = self._session, self._sessions.endpoint
        flow = endpoint.flow_to(session.transport, session.peer, None, session.name)
        if flow is None:
            self._over()
            return
        run = endpoint.resume_invite(invite, flow, self)
        endpoint.cancel(run, DEAF, CancelInvite(CancelStep.CANCEL, reason=self._reason))
        endpoint.arm(endpoint.timers.timeout_s, self, 0)

    def _answered_too_late(self, invite: Request, response: Response) -> None:
        """Acknowledge the answer that crossed the CANCEL, or came before it, and hang up."""
        dialog = Dialog.from_response(invite, response)
        ack = dialog.request("ACK", cseq=invite.cseq.number)
        self._sessions.ways.acknowledge(ack, Wanted.of(dialog.next_hop()), self._near())
        if self._dialog is None:  # Repeated answers are acknowledged again, and hung up on once.
            self._dialog = dialog
            self._hang_up(dialog)

    # An INVITE of a peer.

    def _refuse(self, invite: Request) -> None:
        session, endpoint = self._session, self._sessions.endpoint
        transport = endpoint.transport_for(session.transport, session.peer[0])
        if transport is not None:
            via = invite.via
            peer = (session.peer[0], via.port or transport.default_port)
            flow = transport.flow_to(peer if transport.reliable else session.peer, via.host)
            run = endpoint.start_server(invite, flow, server_key(invite))
            run.tag = session.local_tag
            run.respond(reply(invite, 503, headers=(("Reason", self._reason),)))
        self._over()
