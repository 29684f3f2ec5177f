"""
Registration client: keeps one address registered with one registrar.

No I/O, no clock: responses, timer events and commands are method calls, and effects are returned. The states
are the lifecycle and only advance; `status` is the registrar's latest verdict and may change at any time.

Source: RFC 3261 10.2, RFC 3327, RFC 3608; back-off by RFC 5626 4.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from itertools import product
from typing import Final

from sip.auth.digest import Authenticator, Credentials
from sip.effects import Arm, Disarm, Done, Effect, Failure, Purpose, StartRequest
from sip.errors import ParseError
from sip.location.rfc3263 import Destination
from sip.machine import NOTHING, Machine, Rules, compile_rules
from sip.message.fields import NameAddr
from sip.message.grammar import parse_number
from sip.message.message import Headers, Request, Response
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri
from sip.session.model import SessionSettings

RECONNECT_WITHIN_S: Final = 5.0
"""Longest random delay after a connection broke, to spare a restarted registrar (RFC 5626 4.5)."""
FIRST_WAIT_S: Final = 5.0
"""Delay after the first failure; doubles with each further one."""
MAX_REJECTED_WAIT_S: Final = 1800.0
MAX_UNREACHABLE_WAIT_S: Final = 600.0
MAX_RETRY_AFTER_S: Final = 3600
MAX_EXPIRES_S: Final = 604_800
"""Longest Min-Expires that is accepted: one week."""
REFRESH_FRACTION: Final = 0.9
REFRESH_AHEAD_S: Final = 30.0
MIN_REFRESH_S: Final = 5.0
"""Shortest refresh interval, for a registrar that grants almost no time."""
MAX_SERVICE_ROUTES: Final = 10


@dataclass(frozen=True, slots=True)
class OutboundRegistration:
    """
    Parameters of an outbound registration.

    `uri` is the Request-URI: the domain alone. `aor` is the registered address-of-record, `contact_user` the
    user part of the Contact that receives its calls; `contact` is that Contact if calls come by another
    address than the transport's. The requests go to `destination` with the Route header fields `routes`.
    """

    uri: SipUri
    aor: NameAddr
    contact_user: str
    destination: Destination
    credentials: Credentials | None = None
    expires_s: int = 3600
    routes: tuple[str, ...] = ()
    contact: SipUri | None = None


class RegistrationState(Enum):
    """Result of a registration so far."""

    REGISTERING = "registering"
    """The first REGISTER is under way; no result is known yet."""
    REGISTERED = "registered"
    UNREACHABLE = "unreachable"
    """The registrar did not answer, or answered 408, 480 or 5xx."""
    REJECTED = "rejected"
    """The registrar refused the registration or its credentials."""
    UNREGISTERED = "unregistered"


@dataclass(frozen=True, slots=True)
class RegistrationStatus:
    """
    Status of a registration.

    `reason` is our wording of the latest failure, `code` the status code of the registrar's answer; both are
    None without a failure. `expires_s` is the lifetime of the binding from the report on, None without a
    binding or when its lifetime has not changed.
    """

    state: RegistrationState
    reason: str | None = None
    code: int | None = None
    expires_s: float | None = None


@dataclass(slots=True)
class Report(Effect):
    """Report the current status to the owner."""

    status: RegistrationStatus


class State(IntEnum):
    """Lifecycle states, passed through in this order only."""

    IDLE = 0
    ACTIVE = 1
    STOPPING = 2
    """Stopping; the removal waits for the response to the request under way (RFC 3261 10.2)."""
    REMOVING = 3
    """Removing the binding with Expires 0."""
    ENDED = 4


class Event(IntEnum):
    """Events of a registration."""

    START = 0
    STOP = 1
    """Remove the binding."""
    STOP_LATER = 2
    """Remove the binding after the request under way."""
    STOP_NOW = 3
    """End at once, without a binding to remove."""
    ACCEPTED = 4
    CHALLENGED = 5
    """A 401 or 407 for which there are credentials."""
    TOO_BRIEF = 6
    REFUSED = 7
    FAILED = 8
    """No final response came."""
    TIMER_REFRESH = 9
    """The next REGISTER is due, as a refresh or a retry."""
    TIMER_LAPSE = 10
    """The binding has expired."""


class Registration(Machine[State]):
    """
    One registration, with one Call-ID and a rising CSeq for its whole lifetime.

    `service_route` is the route of outbound requests to the registrar's domain, as set by the registrar
    (RFC 3608 6.1).
    """

    def __init__(
        self, registration: OutboundRegistration, contact: SipUri, settings: SessionSettings
    ) -> None:
        self.state = State.IDLE
        self.status = RegistrationStatus(RegistrationState.REGISTERING)
        self.service_route: tuple[str, ...] = ()
        self._registration = registration
        self._settings = settings
        self._contact = contact
        self._call_id = settings.token()
        self._from = str(registration.aor.with_tag(settings.token()))
        self._cseq = 0
        self._expires_s = registration.expires_s
        self._failures = 0
        self._busy = False
        self._bound = False
        self._authenticator: Authenticator | None = None

    # Commands and input from the network.

    def stop(self) -> Sequence[Effect]:
        """Remove the binding, and end."""
        return self.trigger(Event.STOP_LATER if self._busy else self._stop_event())

    def receive(self, response: Response) -> Sequence[Effect]:
        """Handle a response to the request under way."""
        status = response.status
        if status < 200 or not self._busy:
            return NOTHING
        self._busy = False
        if self.state is State.STOPPING:
            self._bound = self._bound or status < 300
            return self.trigger(self._stop_event())
        if status < 300:
            return self.trigger(Event.ACCEPTED, response)
        if status in (401, 407) and self._learn(response):
            return self.trigger(Event.CHALLENGED)
        if status == 423 and (longer_s := self._longer_s(response)) is not None:
            return self.trigger(Event.TOO_BRIEF, longer_s)
        return self.trigger(Event.REFUSED, response)

    def fail(self, failure: Failure) -> Sequence[Effect]:
        """Handle the failure of the request under way: it got no final response."""
        if not self._busy:
            return NOTHING
        self._busy = False
        if self.state is State.STOPPING:
            return self.trigger(self._stop_event())
        return self.trigger(Event.FAILED, failure)

    def reconnect(self) -> Sequence[Effect]:
        """Handle the loss of the connection that the registrar may use to reach us: refresh soon."""
        if self.state is not State.ACTIVE or self._busy or not self._bound:
            return NOTHING
        return (Arm(Event.TIMER_REFRESH, self._settings.random_between(0.5, RECONNECT_WITHIN_S)),)

    def _stop_event(self) -> Event:
        return Event.STOP if self._bound else Event.STOP_NOW

    # Requests.

    def _request(self, expires_s: int) -> StartRequest:
        registration = self._registration
        self._cseq += 1
        self._busy = True
        fields = [
            ("Max-Forwards", "70"),
            ("From", self._from),
            ("To", str(registration.aor)),
            ("Call-ID", self._call_id),
            ("CSeq", f"{self._cseq} REGISTER"),
            *(("Route", route) for route in registration.routes),
            ("Contact", f"<{self._contact}>"),
            ("Expires", str(expires_s)),
            ("Supported", "path"),
            ("User-Agent", self._settings.product),
        ]
        if self._authenticator is not None:
            fields += self._authenticator.headers("REGISTER", registration.uri, b"")
        request = Request("REGISTER", registration.uri, Headers(fields))
        return StartRequest(request, Purpose.REGISTER, None)

    def _learn(self, response: Response) -> bool:
        credentials = self._registration.credentials
        if credentials is None:
            return False
        if self._authenticator is None:
            self._authenticator = Authenticator(credentials, self._settings.token)
        return self._authenticator.learn(response)

    def _longer_s(self, response: Response) -> int | None:
        longer_s = _seconds(response.headers.get("Min-Expires"))
        if longer_s is None or not self._expires_s < longer_s <= MAX_EXPIRES_S:
            return None
        return longer_s

    # Actions of the table.

    def _register(self, _: object) -> Sequence[Effect]:
        return (self._request(self._expires_s),)

    def _begin(self, _: None) -> Sequence[Effect]:
        return (Report(self.status), self._request(self._expires_s))

    def _ask_longer(self, longer_s: int) -> Sequence[Effect]:
        self._expires_s = longer_s
        return (self._request(longer_s),)

    def _accept(self, response: Response) -> Sequence[Effect]:
        granted_s = self._granted_s(response)
        if not granted_s:
            return self._fail_with("the registrar kept no binding", response.status, rejected=True)
        if self._authenticator is not None:
            self._authenticator.accepted()
        self._failures = 0
        self._bound = True
        self.service_route = _service_route(response)
        self.status = RegistrationStatus(RegistrationState.REGISTERED, expires_s=float(granted_s))
        return (
            Arm(Event.TIMER_REFRESH, self._refresh_after_s(granted_s)),
            Arm(Event.TIMER_LAPSE, float(granted_s)),
            Report(self.status),
        )

    def _granted_s(self, response: Response) -> int:
        """
        Return the lifetime of the binding: by our Contact, by Expires, else as requested; never longer.

        A registrar beyond a NAT may have rewritten our Contact. If no entry matches ours, the shortest of all
        entries counts.
        """
        try:
            contacts = response.contacts
        except ParseError:
            contacts = []
        ours = [contact for contact in contacts if _same_place(contact.uri, self._contact)]
        lengths = [_seconds(contact.param("expires")) for contact in ours or contacts]
        granted = [length for length in lengths if length is not None]
        if granted:
            return min(*granted, self._expires_s)
        length = _seconds(response.headers.get("Expires"))
        return self._expires_s if length is None else min(length, self._expires_s)

    def _refresh_after_s(self, granted_s: int) -> float:
        early_s = min(granted_s * REFRESH_FRACTION, granted_s - REFRESH_AHEAD_S)
        return max(early_s * self._settings.random_between(0.95, 1.0), granted_s / 2, MIN_REFRESH_S)

    def _refuse(self, response: Response) -> Sequence[Effect]:
        status = response.status
        reason = _WORDS.get(status) or reason_phrase(status) or "refused"
        if 300 <= status < 400:
            reason = "redirects are not followed"
        if status in (401, 407):
            # The next attempt starts without credentials: the registrar may have been corrected by then.
            self._authenticator = None
            if self._registration.credentials is None:
                reason = "a password is asked for, and there is none"
        rejected = status not in (408, 480) and not 500 <= status < 600
        return self._fail_with(reason, status, rejected=rejected, retry_after_s=response.retry_after_s)

    def _fail_unheard(self, failure: Failure) -> Sequence[Effect]:
        return self._fail_with(_UNHEARD[failure], None, rejected=False)

    def _fail_with(
        self, reason: str, code: int | None, *, rejected: bool, retry_after_s: int | None = None
    ) -> Sequence[Effect]:
        """Report a failure and retry later; unless rejected, an unexpired binding stays REGISTERED."""
        self._failures += 1
        state = RegistrationState.REJECTED if rejected else RegistrationState.UNREACHABLE
        if self._bound and not rejected:
            state = RegistrationState.REGISTERED
        self.status = RegistrationStatus(state, reason, code)
        wait_s = self._wait_s(MAX_REJECTED_WAIT_S if rejected else MAX_UNREACHABLE_WAIT_S)
        if retry_after_s is not None:
            wait_s = max(
                wait_s, min(retry_after_s, MAX_RETRY_AFTER_S) * self._settings.random_between(1.0, 1.1)
            )
        return (Arm(Event.TIMER_REFRESH, wait_s), Report(self.status))

    def _wait_s(self, longest_s: float) -> float:
        doubled_s = FIRST_WAIT_S * 2.0 ** min(self._failures - 1, 16)
        return min(doubled_s, longest_s) * self._settings.random_between(1.0, 1.25)

    def _lapse(self, _: None) -> Sequence[Effect]:
        self._bound = False
        if self.status.state is RegistrationState.REJECTED:
            return NOTHING
        reason = self.status.reason or "the registrar did not answer in time"
        self.status = RegistrationStatus(RegistrationState.UNREACHABLE, reason, self.status.code)
        return (Report(self.status),)

    # Removal.

    def _quiet(self, _: object = None) -> Sequence[Effect]:
        return (Disarm(Event.TIMER_REFRESH), Disarm(Event.TIMER_LAPSE))

    def _remove(self, _: object) -> Sequence[Effect]:
        return (*self._quiet(), self._request(0))

    def _end(self, _: object) -> Sequence[Effect]:
        self._bound = False
        self.status = RegistrationStatus(RegistrationState.UNREGISTERED)
        return (*self._quiet(), Report(self.status), Done())


_WORDS: Final = {
    401: "the user name or password was refused",
    403: "the registrar forbids it",
    404: "the registrar does not know the user",
    407: "the user name or password was refused",
    408: "the registrar did not answer",
    423: "the registrar asks for an unreasonable time",
}
_UNHEARD: Final = {
    Failure.TIMEOUT: "the registrar did not answer",
    Failure.TRANSPORT: "the registrar cannot be reached",
    Failure.RESOLVE: "the registrar's name cannot be found",
}


def _seconds(text: str | None) -> int | None:
    return parse_number((text or "").strip())


def _same_place(one: SipUri, other: SipUri) -> bool:
    return (one.user, one.host, one.port or 5060) == (other.user, other.host, other.port or 5060)


def _service_route(response: Response) -> tuple[str, ...]:
    """Return the Service-Route if every entry is usable, else nothing: a partial route leads nowhere."""
    values = response.headers.get_all("Service-Route")
    if len(values) > MAX_SERVICE_ROUTES:
        return ()
    try:
        routes = [NameAddr.parse(value) for value in values]
    except ParseError:
        return ()
    usable = all(route.uri.host and route.uri.param("lr") is not None for route in routes)
    return tuple(str(route) for route in routes) if usable else ()


_S, _E, _R = State, Event, Registration

RULES: Rules[State, Event] = {
    (_S.IDLE, _E.START): (_S.ACTIVE, _R._begin),
    (_S.IDLE, _E.STOP_NOW): (_S.ENDED, _R._end),
    (_S.ACTIVE, _E.ACCEPTED): (_S.ACTIVE, _R._accept),
    (_S.ACTIVE, _E.CHALLENGED): (_S.ACTIVE, _R._register),
    (_S.ACTIVE, _E.TOO_BRIEF): (_S.ACTIVE, _R._ask_longer),
    (_S.ACTIVE, _E.REFUSED): (_S.ACTIVE, _R._refuse),
    (_S.ACTIVE, _E.FAILED): (_S.ACTIVE, _R._fail_unheard),
    (_S.ACTIVE, _E.TIMER_REFRESH): (_S.ACTIVE, _R._register),
    (_S.ACTIVE, _E.TIMER_LAPSE): (_S.ACTIVE, _R._lapse),
    (_S.ACTIVE, _E.STOP): (_S.REMOVING, _R._remove),
    (_S.ACTIVE, _E.STOP_LATER): (_S.STOPPING, _R._quiet),
    (_S.ACTIVE, _E.STOP_NOW): (_S.ENDED, _R._end),
    (_S.STOPPING, _E.STOP): (_S.REMOVING, _R._remove),
    (_S.STOPPING, _E.STOP_NOW): (_S.ENDED, _R._end),
    (_S.REMOVING, _E.ACCEPTED): (_S.ENDED, _R._end),
    (_S.REMOVING, _E.CHALLENGED): (_S.REMOVING, _R._remove),
    (_S.REMOVING, _E.TOO_BRIEF): (_S.ENDED, _R._end),
    (_S.REMOVING, _E.REFUSED): (_S.ENDED, _R._end),
    (_S.REMOVING, _E.FAILED): (_S.ENDED, _R._end),
}

_ANSWERS = (_E.ACCEPTED, _E.CHALLENGED, _E.TOO_BRIEF, _E.REFUSED, _E.FAILED)
_TIMERS = (_E.TIMER_REFRESH, _E.TIMER_LAPSE)

IGNORED = {
    (_S.ACTIVE, _E.START),
    # Before the start there is no request and no binding.
    *product((_S.IDLE,), (*_ANSWERS, *_TIMERS, _E.STOP, _E.STOP_LATER)),
    # `receive` and `fail` turn any answer into a stop; the timers are disarmed.
    *product((_S.STOPPING,), (*_ANSWERS, *_TIMERS, _E.START, _E.STOP_LATER)),
    # A second stop.
    *product((_S.REMOVING,), (*_TIMERS, _E.START, _E.STOP, _E.STOP_LATER, _E.STOP_NOW)),
    *product((_S.ENDED,), Event),
}

Registration.ROWS = compile_rules(RULES)
