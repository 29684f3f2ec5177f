"""Active registrations: the state machine of each with its timers, transactions and connection."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sip.aio.resolver import is_address
from sip.aio.transaction_io import ClientTransaction
from sip.aio.transport import Flow, Handle
from sip.effects import Arm, Disarm, Done, Effect, Failure, Purpose, StartRequest
from sip.location.rfc3263 import Target
from sip.message.message import Response
from sip.message.uri import SipUri
from sip.registration import (
    Event,
    OutboundRegistration,
    Registration,
    RegistrationState,
    RegistrationStatus,
    Report,
    State,
)

if TYPE_CHECKING:
    from sip.aio.user_agent import UserAgent

logger = logging.getLogger(__name__)


OnRegistration = Callable[["RegistrationIO"], None]


class RegistrationIO:
    """
    One active registration.

    `on_change` is called after each change of its status. `expires_at_s` is the end of the binding by the
    clock of the user agent, None without a binding.
    """

    def __init__(
        self,
        host: "UserAgent",
        registration: OutboundRegistration,
        contact: SipUri,
        on_change: OnRegistration,
    ) -> None:
        self.registration = registration
        self.expires_at_s: float | None = None
        self._host = host
        self._machine = Registration(registration, contact, host.settings)
        self._on_change = on_change
        self._alarms: dict[int, Handle] = {}
        self._flow: Flow | None = None
        self._abandoned = False

    @property
    def status(self) -> RegistrationStatus:
        """Status of the registration."""
        return self._machine.status

    @property
    def service_route(self) -> tuple[str, ...]:
        """Route of outbound requests while the binding lasts (RFC 3608)."""
        return self._machine.service_route if self.expires_at_s is not None else ()

    @property
    def ended(self) -> bool:
        """True after it was stopped and its last request is done."""
        return self._machine.state is State.ENDED

    # Commands.

    def start(self, after_s: float = 0.0) -> None:
        """Register, after `after_s` seconds if given; many at once would flood a registrar."""
        if after_s > 0.0:
            self._arm(Event.START, after_s)
        else:
            self._perform(self._machine.trigger(Event.START))

    def stop(self) -> None:
        """Unregister; the registration ends when the registrar has answered, or gave no answer."""
        self._disarm(Event.START)
        self._perform(self._machine.stop())

    def drop(self) -> None:
        """End the registration at once, without a request: its binding is another process's from now on."""
        self.abandon()
        self._host.forget_registration(self)

    def abandon(self) -> None:
        """Drop the registration without unregistering; later responses are ignored."""
        self._abandoned = True
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        self._hold(None)

    # As the user of transactions.

    def on_response(self, transaction: ClientTransaction, response: Response) -> None:
        """Handle a response."""
        if self._abandoned:
            return
        if response.status >= 200:
            self._note_outcome(transaction.flow, response if response.status == 503 else None)
        if 200 <= response.status < 300:
            self._hold(transaction.flow)
        self._perform(self._machine.receive(response))

    def on_failure(self, transaction: ClientTransaction, failure: Failure) -> None:
        """Handle a request that got no final response."""
        if not self._abandoned:
            self._note_outcome(transaction.flow, failure)
        self._fail(failure)

    def _note_outcome(self, flow: Flow, failure: Response | Failure | None) -> None:
        """
        Back off the target after a 503 or no response; an address has no other target.

        Source: RFC 3263 4.3.
        """
        destination, backoff = self.registration.destination, self._host.router.backoff
        if is_address(destination.host):
            return
        name = flow.name or destination.verify or destination.host
        target = Target(flow.transport.name, *flow.remote, name)
        if failure is None:
            backoff.answered(target)
        else:
            retry_after_s = failure.retry_after_s if isinstance(failure, Response) else None
            backoff.failed(target, self._host.layer.clock.time(), retry_after_s)

    # Effects.

    def _perform(self, effects: Sequence[Effect]) -> None:
        reported = False
        for effect in effects:
            if isinstance(effect, StartRequest):
                self._send(effect)
            elif isinstance(effect, Arm):
                self._arm(effect.event, effect.delay_s)
            elif isinstance(effect, Disarm):
                self._disarm(effect.event)
            elif isinstance(effect, Report):
                self._note(effect.status)
                reported = True
            elif isinstance(effect, Done):
                self.abandon()
                self._host.forget_registration(self)
        if reported:
            self._report()

    def _send(self, effect: StartRequest) -> None:
        layer = self._host.layer

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is None:
                # Never report from within the command that sends.
                layer.clock.call_soon(self._fail, failure)
            else:
                layer.start_client(effect.request, flow, self, Purpose.REGISTER)

        self._host.router.resolve_flow(self.registration.destination, None, send)

    def _fail(self, failure: Failure) -> None:
        if not self._abandoned:
            self._perform(self._machine.fail(failure))

    def _arm(self, event: int, delay_s: float) -> None:
        # The layer's timer queue is made for few distinct delays; here every delay differs.
        self._disarm(event)
        clock = self._host.layer.clock
        self._alarms[event] = clock.call_at(clock.time() + delay_s, lambda: self._on_alarm(event))

    def _disarm(self, event: int) -> None:
        alarm = self._alarms.pop(event, None)
        if alarm is not None:
            alarm.cancel()

    def _on_alarm(self, event: int) -> None:
        self._alarms.pop(event, None)
        self._perform(self._machine.trigger(event))

    def _hold(self, flow: Flow | None) -> None:
        """Hold the connection by which the registrar may send us requests."""
        if flow is self._flow:
            return
        if self._flow is not None:
            self._flow.unwatch(self.on_flow_broken)
            self._flow.release()
        self._flow = flow
        if flow is not None:
            flow.hold()
            flow.watch(self.on_flow_broken)

    def on_flow_broken(self) -> None:
        """Handle a broken connection: the machine registers again soon."""
        self._perform(self._machine.reconnect())

    def _note(self, status: RegistrationStatus) -> None:
        if status.expires_s is not None:
            self.expires_at_s = self._host.layer.clock.time() + status.expires_s
        elif status.state is not RegistrationState.REGISTERED:
            # A registrar that refuses keeps the earlier binding, but nobody should rely on it.
            self.expires_at_s = None

    def _report(self) -> None:
        try:
            self._on_change(self)
        except Exception:  # The registration continues if its listener fails.
            logger.exception("The callback of a registration failed")
