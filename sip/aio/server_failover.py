"""Failover of one request to a name: sent to one target after another until one answers (RFC 3263 4.3)."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sip.aio.session import OutboundSession, Session
from sip.aio.transaction_io import DEAF, ClientRun
from sip.aio.transport import Flow, settle_contact
from sip.effects import CancelInvite, CancelStep, Failure, Purpose, StartRequest
from sip.location.failover import Failover, Outcome, Tried
from sip.location.rfc3263 import Target, Wanted
from sip.message.message import Request, Response
from sip.session.dialog import Dialog
from sip.session.model import State
from sip.timers import Timer

if TYPE_CHECKING:
    from sip.aio.request_routing import Ways

__all__ = ["Attempt", "prefer"]

logger = logging.getLogger(__name__)

BYE_SILENCE_S = 4.0
"""Time without a response after which a BYE is also sent to the next target, if there is one."""
MAX_LATE = 16
"""Late answers of one attempt that get a BYE; others time out at the peer."""


class Attempt:
    """
    One request to a name: the user of its transactions, one for each target tried.

    The session receives the responses of the current target, and the last failure. A target that was given
    up gets an ACK and a BYE if it answers an INVITE late, and a CANCEL if it rings late.
    """

    def __init__(self, ways: "Ways", session: Session, effect: StartRequest, wanted: Wanted) -> None:
        self._ways = ways
        self._session = session
        self._request = effect.request
        self._purpose = effect.purpose
        self.wanted = wanted
        self._near = session.flow if effect.next_hop is not None else None
        self._failover: Failover | None = None
        self._run: ClientRun | None = None
        self._timer: Timer | None = None
        self._done = False
        self._late: dict[str, Request] = {}
        self._cancelled: set[ClientRun] = set()

    @property
    def tried(self) -> tuple[Tried, ...]:
        """Targets that were tried, with their outcome."""
        return () if self._failover is None else tuple(self._failover.tried)

    @property
    def _invites(self) -> bool:
        return self._purpose is Purpose.INVITE

    def start(self) -> None:
        """Look up the name and send."""
        self._ways.resolver.locate(self.wanted, self._found)

    def send_again(self, request: Request) -> None:
        """Send the changed request, with credentials for example, to the target that asked for it."""
        self._request = request
        self._done = False
        run = self._run
        assert run is not None
        self._send(run.flow)

    def on_silence(self) -> bool:
        """
        Try the next target after no response to the INVITE in time.

        Returns False if the session must handle the silence itself.
        """
        failover, run, session = self._failover, self._run, self._session
        if failover is None:
            self._await_response()  # The name is still being looked up; look-ups are short.
            return True
        if run is None or session.state >= State.CANCELLING:
            return False
        self._ways.endpoint.abandon(run, give_up=False)
        if self._move("timeout"):
            return True
        if session.state is State.SETUP:
            return False
        # An earlier target sent a 100, so the session's own timer for silence has ended.
        session.on_unsent(self._purpose, Failure.TIMEOUT)
        return True

    # As the user of transactions.

    def on_response(self, run: ClientRun, response: Response) -> None:
        """Handle a response of one of the targets."""
        status = response.status
        if run is not self._run:
            self._receive_late(run, response)
            return
        failover = self._failover
        if self._done and not self._invites:
            return
        if failover is not None and failover.current is not None:
            if status == 503 and self._move("unavailable", response.retry_after_s):
                return
            self._note(failover, response)
        if status >= 200:
            self._finish()
        self._session.on_response(run, response)

    def on_failure(self, run: ClientRun, failure: Failure) -> None:
        """Handle a target that gave no final response."""
        if run is not self._run or self._done:
            return
        outcome: Outcome = "transport" if failure is Failure.TRANSPORT else "timeout"
        if not self._move(outcome):
            self._finish()
            self._session.on_failure(run, failure)

    def on_timer(self, event: int) -> None:
        """Send an unanswered BYE to the next target, which may know the dialog too."""
        self._timer = None
        if not self._done:
            self._move("timeout")

    # Targets.

    def _found(self, targets: Sequence[Target]) -> None:
        ways, session = self._ways, self._session
        now = ways.endpoint.clock.time()
        self._failover = Failover(prefer(ways.rests.order(targets, now), self._near), now)
        if self._invites and session.state >= State.CANCELLING:
            session.on_unsent(self._purpose, Failure.RESOLVE)  # Hung up while its name was looked up.
        elif self._try_next():
            return
        elif not targets and self._near is not None and not self._near.closed:
            self._send(self._near)  # The name does not resolve; use the peer's last flow.
        else:
            failure = Failure.TRANSPORT if targets else Failure.RESOLVE
            ways.endpoint.clock.call_soon(session.on_unsent, self._purpose, failure)

    def _try_next(self) -> bool:
        failover, ways = self._failover, self._ways
        assert failover is not None
        while (target := failover.next(ways.endpoint.clock.time())) is not None:
            flow = ways.flow_to(target, self._near)
            if flow is not None:
                self._send(flow)
                return True
            failover.note("transport")
        return False

    def _move(self, outcome: Outcome, retry_after_s: int | None = None) -> bool:
        """Record the failure of the current target and try the next; False if none is left or we hung up."""
        failover, ways = self._failover, self._ways
        if failover is None:
            return False
        target = failover.current
        if target is not None:
            ways.rests.failed(target, ways.endpoint.clock.time(), retry_after_s)
        failover.note(outcome, retry_after_s)
        if target is not None:
            logger.info(
                "A server of %s failed a request: %s",
                self.wanted.host,
                failover.tried[-1],
                extra={"call_id": self._session.call_id},
            )
        if self._invites and self._session.state >= State.CANCELLING:
            return False
        return self._try_next()

    def _note(self, failover: Failover, response: Response) -> None:
        status, target = response.status, failover.current
        if target is not None and status != 503:
            self._ways.rests.answered(target)
        if status in (401, 407):
            return  # The request is sent again with credentials, and may fail then.
        failover.hear(status)
        if status >= 300:
            failover.note("response", response.retry_after_s)

    def _send(self, flow: Flow) -> None:
        request, ways = self._request, self._ways
        if request.headers.first("via") is not None:
            headers = request.headers.copy()
            headers.remove("Via")
            request = Request(request.method, request.uri, headers, request.body)
        if self._invites:
            # Requests within the dialog go to this Contact, which the machine reads from its own copy.
            settle_contact(request, flow.transport)
            settle_contact(self._request, flow.transport)
        run = self._run = ways.endpoint.start_client(request, flow, self, self._purpose)
        session = self._session
        session.on_started(run)
        if self._invites:
            self._await_response()
        elif self._purpose is Purpose.BYE:
            self._timer = ways.endpoint.arm(BYE_SILENCE_S, self, 0)

    def _await_response(self) -> None:
        if isinstance(self._session, OutboundSession):
            self._session.await_response()

    def _finish(self) -> None:
        self._done = True
        timer, self._timer = self._timer, None
        if timer is not None:
            self._ways.endpoint.disarm(timer)

    # Targets that were given up.

    def _receive_late(self, run: ClientRun, response: Response) -> None:
        status = response.status
        if not self._invites:
            if status >= 200 and status != 503 and not self._done:
                self._finish()
                self._session.on_response(run, response)
        elif status < 200:
            self._cancel_late(run)
        elif status < 300:
            self._end_late(run, response)

    def _cancel_late(self, run: ClientRun) -> None:
        if run in self._cancelled:
            return
        self._cancelled.add(run)
        self._ways.endpoint.cancel(run, DEAF, CancelInvite(CancelStep.CANCEL))

    def _end_late(self, run: ClientRun, response: Response) -> None:
        """Send ACK and BYE to a target that answered after it was given up (RFC 3261 13.2.2.4)."""
        tag = response.to.tag or ""
        ways, invite = self._ways, run.machine.request
        dialog = Dialog.from_response(invite, response)
        wanted = Wanted.of(dialog.next_hop())
        ack = self._late.get(tag)
        if ack is None:
            if len(self._late) >= MAX_LATE:
                return
            ack = self._late[tag] = dialog.request("ACK", cseq=invite.cseq.number)
            ways.acknowledge(ack, wanted, run.flow)
            bye = dialog.request("BYE")
            ways.send_alone(bye, wanted, run.flow)
        else:
            ways.acknowledge(ack, wanted, run.flow)


def prefer(targets: list[Target], near: Flow | None) -> list[Target]:
    """Sort the target of the peer's last flow first, so that a dialog stays on its server."""
    if near is None:
        return targets
    place = (near.transport.name, *near.remote)
    return sorted(targets, key=lambda item: (item.transport, item.host, item.port) != place)
