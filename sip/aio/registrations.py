"""Registrations at work: the machine of each with its timers, its transactions and its connection."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from sip.aio.endpoint import Endpoint
from sip.aio.request_routing import SendOn
from sip.aio.transaction_io import ClientRun
from sip.aio.transport import Flow, Handle
from sip.effects import Arm, Disarm, Done, Effect, Failure, Purpose, StartRequest
from sip.message.message import Response
from sip.message.uri import SipUri
from sip.registration import (
    Event,
    OutboundRegistration,
    Registration,
    RegistrationSettings,
    RegistrationState,
    RegistrationStatus,
    Report,
    State,
)
from sip.session.outbound_invite import Destination

__all__ = ["OnRegistration", "RegistrationHost", "RegistrationRun"]

logger = logging.getLogger(__name__)


class RegistrationHost(Protocol):
    """What a registration needs of its user agent."""

    endpoint: Endpoint

    def find_way(self, destination: Destination, send: SendOn) -> None:
        """Call `send` with the way to a destination."""

    def note_outcome(self, destination: Destination, flow: Flow, failure: Response | Failure | None) -> None:
        """Take what came of a request: the next one goes to another server of the name if this one failed."""

    def forget_registration(self, run: "RegistrationRun") -> None:
        """Take a registration that has ended out of the table."""


OnRegistration = Callable[["RegistrationRun"], None]


class RegistrationRun:
    """
    One registration at work.

    `on_change` is called whenever its status has changed. `expires_at_s` is when the binding ends, by the
    clock of the user agent, None without one.
    """

    def __init__(
        self,
        host: RegistrationHost,
        registration: OutboundRegistration,
        contact: SipUri,
        settings: RegistrationSettings,
        on_change: OnRegistration,
    ) -> None:
        self.registration = registration
        self.expires_at_s: float | None = None
        self._host = host
        self._machine = Registration(registration, contact, settings)
        self._on_change = on_change
        self._alarms: dict[int, Handle] = {}
        self._flow: Flow | None = None
        self._abandoned = False

    @property
    def status(self) -> RegistrationStatus:
        """How it stands."""
        return self._machine.status

    @property
    def service_route(self) -> tuple[str, ...]:
        """What outbound requests are to be routed by, while it stands (RFC 3608)."""
        return self._machine.service_route if self.expires_at_s is not None else ()

    @property
    def ended(self) -> bool:
        """It was stopped, and nothing is left to be done."""
        return self._machine.state is State.ENDED

    # Commands.

    def start(self, after_s: float = 0.0) -> None:
        """Register, after a while if told so; many at once would hit a registrar like a flood."""
        if after_s > 0.0:
            self._arm(Event.START, after_s)
        else:
            self._perform(self._machine.start())

    def stop(self) -> None:
        """Take the registration back; it ends when the registrar has answered, or gave no answer."""
        self._disarm(Event.START)
        self._perform(self._machine.stop())

    def abandon(self) -> None:
        """Forget it without a word to the registrar; what still comes of its requests is nobody's."""
        self._abandoned = True
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        self._hold(None)

    # As the user of transactions.

    def on_response(self, run: ClientRun, response: Response) -> None:
        """Take a response."""
        if self._abandoned:
            return
        if response.status >= 200:
            self._note_outcome(run.flow, response if response.status == 503 else None)
        if 200 <= response.status < 300:
            self._hold(run.flow)
        self._perform(self._machine.receive(response))

    def on_failure(self, run: ClientRun, failure: Failure) -> None:
        """Take the news that there will be none."""
        if not self._abandoned:
            self._note_outcome(run.flow, failure)
        self._fail(failure)

    def _note_outcome(self, flow: Flow, failure: Response | Failure | None) -> None:
        self._host.note_outcome(self.registration.destination, flow, failure)

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
            self._tell()

    def _send(self, effect: StartRequest) -> None:
        endpoint = self._host.endpoint

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is None:
                # Never from within the command that wanted it sent.
                endpoint.clock.call_soon(self._fail, failure)
            else:
                endpoint.start_client(effect.request, flow, self, Purpose.REGISTER)

        self._host.find_way(self.registration.destination, send)

    def _fail(self, failure: Failure) -> None:
        if not self._abandoned:
            self._perform(self._machine.fail(failure))

    def _arm(self, event: int, delay_s: float) -> None:
        # Every delay is different here, which the timer queue of the endpoint is not made for.
        self._disarm(event)
        clock = self._host.endpoint.clock
        self._alarms[event] = clock.call_at(clock.time() + delay_s, lambda: self._on_alarm(event))

    def _disarm(self, event: int) -> None:
        alarm = self._alarms.pop(event, None)
        if alarm is not None:
            alarm.cancel()

    def _on_alarm(self, event: int) -> None:
        self._alarms.pop(event, None)
        self._perform(self._machine.handle(event))

    def _hold(self, flow: Flow | None) -> None:
        """Keep the connection the registrar may call us by."""
        if flow is self._flow:
            return
        if self._flow is not None:
            self._flow.unwatch(self)
            self._flow.release()
        self._flow = flow
        if flow is not None:
            flow.hold()
            flow.watch(self)

    def on_flow_broken(self) -> None:
        """Take the news that the connection broke: another one is to be made soon."""
        self._perform(self._machine.reconnect())

    def _note(self, status: RegistrationStatus) -> None:
        if status.expires_s is not None:
            self.expires_at_s = self._host.endpoint.clock.time() + status.expires_s
        elif status.state is not RegistrationState.REGISTERED:
            # A registrar that says no keeps what it granted before, but nobody should count on it.
            self.expires_at_s = None

    def _tell(self) -> None:
        try:
            self._on_change(self)
        except Exception:  # The registration goes on whatever its listener does.
            logger.exception("The callback of a registration failed")
