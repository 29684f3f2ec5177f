"""Ends the sessions of a previous process by BYE, CANCEL or a final response; answers their peers."""

import logging
from collections import deque
from collections.abc import Callable

from sip.aio.request_routing import RequestRouter
from sip.aio.transaction_io import ClientTransaction
from sip.aio.transaction_layer import TransactionLayer, make_token
from sip.aio.transport import Flow
from sip.auth.digest import Authenticator, Credentials
from sip.effects import Failure, Purpose
from sip.errors import SipError
from sip.location.rfc3263 import Destination
from sip.message.message import Request, Response, reply
from sip.recovery import RecoveredDialog
from sip.session.dialog import Dialog, Kind

logger = logging.getLogger(__name__)

BURST = 20
"""Sessions ended in one burst."""
BURST_SPACING_S = 0.05
AT_WORK = 500
"""Sessions being ended at a time: an unreachable peer occupies one place for 32 s."""

OnOver = Callable[[], None]


class RecoveredDialogs:
    """
    Sessions of a previous process, each ended once, at a rate that leaves room for new calls.

    Their Call-IDs and tags are kept until the process ends: the BYE of a peer that hangs up itself gets 200.
    `serves` tells if this process has a session for an INVITE.
    """

    def __init__(
        self, layer: TransactionLayer, router: RequestRouter, serves: Callable[[Request], bool]
    ) -> None:
        self.layer = layer
        self.router = router
        self.serves = serves
        self._names: set[tuple[str, str]] = set()
        self._waiting: deque[_Ending] = deque()
        self._at_work = 0
        self._armed = False

    def end(
        self, session: RecoveredDialog, reason: str, credentials: Credentials | None, on_over: OnOver
    ) -> None:
        """
        End a session soon.

        `reason` is the value of a Reason header field. `on_over` is called when the peer has answered, or has
        not answered within the time of RFC 3261.
        """
        self._names.add((session.call_id, session.local_tag))
        self._waiting.append(_Ending(self, session, reason, credentials, on_over))
        self._arm(0.0)

    def ends(self, request: Request) -> bool:
        """True if a request is the BYE of a session of the previous process, which ends it."""
        return request.method == "BYE" and (request.call_id, request.to.tag or "") in self._names

    def _end_burst(self, _: int) -> None:
        """End the next burst of sessions."""
        self._armed = False
        for _ in range(min(BURST, AT_WORK - self._at_work, len(self._waiting))):
            self._at_work += 1
            self._waiting.popleft().begin()
        self._arm(BURST_SPACING_S)

    def end_one(self) -> None:
        """Count a session that has ended."""
        self._at_work -= 1
        self._arm(BURST_SPACING_S)

    def _arm(self, delay_s: float) -> None:
        if self._waiting and not self._armed and self._at_work < AT_WORK:
            self._armed = True
            self.layer.arm(delay_s, self._end_burst)


class _Ending:
    """One session that is being ended."""

    def __init__(
        self,
        sessions: RecoveredDialogs,
        session: RecoveredDialog,
        reason: str,
        credentials: Credentials | None,
        on_over: OnOver,
    ) -> None:
        self._sessions = sessions
        self._session = session
        self._reason = reason
        self._authenticator = None if credentials is None else Authenticator(credentials, make_token)
        self._on_over: OnOver | None = on_over
        self._dialog = session.dialog

    def begin(self) -> None:
        """Send the ending message; a session without one counts as ended and delays no other."""
        session = self._session
        try:
            if session.kind is Kind.UP and session.dialog is not None:
                self._send_bye(session.dialog)
            elif session.request is None:
                self._over()
            elif session.kind is Kind.CALLING:
                self._cancel_invite(session.request)
            else:
                self._refuse(session.request)
        except SipError as error:
            named = {"call_id": session.call_id}
            logger.warning("cannot end a call of the previous process: %s", error, extra=named)
            self._over()

    def on_response(self, transaction: ClientTransaction, response: Response) -> None:
        """Handle a response to the BYE or to the cancelled INVITE."""
        if response.status < 200:
            return
        if transaction.purpose is Purpose.BYE:
            self._bye_answered(response)
        elif response.status < 300:
            self._answered_too_late(transaction.request, response)
        else:
            self._over()

    def on_failure(self, transaction: ClientTransaction, failure: Failure) -> None:
        """Count the session as ended: an unreachable peer finds out by its own timers."""
        self._over()

    def _over(self) -> None:
        on_over, self._on_over = self._on_over, None
        if on_over is not None:
            self._sessions.end_one()
            on_over()

    # A confirmed dialog.

    def _send_bye(self, dialog: Dialog) -> None:
        bye = dialog.request("BYE", headers=(("Reason", self._reason),))
        if self._authenticator is not None:
            bye.headers.extend(self._authenticator.headers("BYE", bye.uri, b""))

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is None:
                self._over()
            else:
                self._sessions.layer.start_client(bye, flow, self, Purpose.BYE)

        self._sessions.router.resolve_flow(Destination.of(dialog.next_hop()), self._current_flow(), send)

    def _current_flow(self) -> Flow | None:
        """Return the peer's last flow, None for a connection of the previous process, which is closed."""
        session = self._session
        transport = self._sessions.layer.transport_for(session.transport, session.peer[0])
        return None if transport is None or transport.reliable else transport.flow_to(session.peer)

    def _bye_answered(self, response: Response) -> None:
        authenticator, dialog = self._authenticator, self._dialog
        if authenticator is not None and dialog is not None and authenticator.learn(response):
            self._send_bye(dialog)
        else:
            self._over()  # Any final response ends the dialog (RFC 3261 15.1.2).

    # An INVITE of ours.

    def _cancel_invite(self, invite: Request) -> None:
        session, layer = self._session, self._sessions.layer
        flow = layer.flow_to(session.transport, session.peer, None, session.name)
        if flow is None:
            self._over()
            return
        transaction = layer.resume_invite(invite, flow, self)
        layer.cancel(transaction, self._reason)
        layer.arm(layer.timers.timeout_s, lambda _: self._over())

    def _answered_too_late(self, invite: Request, response: Response) -> None:
        """Acknowledge a 2xx that crossed the CANCEL, or came before it, and hang up."""
        dialog = Dialog.from_response(invite, response)
        ack = dialog.request("ACK", cseq=invite.cseq.number)
        self._sessions.router.acknowledge(ack, Destination.of(dialog.next_hop()), self._current_flow())
        if self._dialog is None:  # A repeated 2xx is acknowledged again, but gets one BYE only.
            self._dialog = dialog
            self._send_bye(dialog)

    # An INVITE of a peer.

    def _refuse(self, invite: Request) -> None:
        session, layer = self._session, self._sessions.layer
        if self._sessions.serves(invite):
            # The peer has repeated it, and it has become a call of this process: its response is that call's.
            self._over()
            return
        transport = layer.transport_for(session.transport, session.peer[0])
        if transport is not None:
            via = invite.via
            peer = (session.peer[0], via.port or transport.default_port)
            flow = transport.flow_to(peer if transport.reliable else session.peer, via.host)
            transaction = layer.start_server(invite, flow)
            transaction.tag = session.local_tag
            layer.respond(transaction, reply(invite, 503, headers=(("Reason", self._reason),)))
        self._over()
