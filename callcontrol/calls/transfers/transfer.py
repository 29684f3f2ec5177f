"""
Call transfer by REFER, as a table of states. The API may request it on behalf of a party.

The call goes on unchanged until the target answers: then the target replaces the party that asked, which
hangs up, or is hung up after ``GRACE_S``. A target that fails leaves everything as it was. The party that
asked may hang up at once and leave the other one waiting; when the target then fails, the call ends.

When the target is a party of another call of the same account (REFER with Replaces), nobody is dialled: the
remaining parties of the two calls are connected.
"""

from collections.abc import Iterator
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Final

from callcontrol.calls.dialer import Ending, FailoverState, GatewayFailover
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import PlayRingback, StopAudio
from callcontrol.calls.effects.records import Arm, Disarm, FindRoute, Save
from callcontrol.calls.effects.transfers import (
    AcceptTransfer,
    AskPartner,
    FindPartner,
    RefuseTransfer,
    TellTransfer,
)
from callcontrol.calls.events import Event
from callcontrol.calls.events.answers import RouteFound, RouteRefused, Timer, TimerFired
from callcontrol.calls.events.legs import LegEnded, LegProgress
from callcontrol.calls.events.transfers import (
    PartnerFound,
    PartnerGone,
    PartnerMissing,
    PartnerReady,
    PartnerRefused,
    TransferRequested,
)
from callcontrol.calls.hangup_cause import NORMAL_CLEARING, HangupCause, rejection_of
from callcontrol.calls.steps.bridge import BridgeStep
from callcontrol.errors import DomainError, Forbidden, ValidationFailed
from callcontrol.ids import LegId
from callcontrol.models import CallRecord, CallStatus
from callcontrol.models.parties import Party, PhoneTarget, SipTarget, Target
from callcontrol.trunks.number_format import number_in, user_of
from sip import ParseError, Replaces, SipUri
from sip.machine import Machine, Rules, compile_rules
from sip.session.replaces import uri_headers

if TYPE_CHECKING:
    from callcontrol.calls.call import CallMachine

GRACE_S: Final = 2.0
"""Time for a party to hang up after its transfer has succeeded, in seconds."""


class TransferState(IntEnum):
    """States of a transfer, in order."""

    NEW = 0
    SEEKING = 1
    """The REFER is not answered yet: a route, or the other call, is being looked up."""
    DIALING = 2
    ASKING = 3
    """The other call is being asked to connect its party."""
    DONE = 4
    """The target is connected; the party that asked has not hung up yet."""
    OVER = 5


class TransferInput(IntEnum):
    """Inputs of a transfer."""

    BEGIN = auto()
    ROUTED = auto()
    UNROUTABLE = auto()
    FOUND = auto()
    MISSING = auto()
    """The dialog to replace is no call of ours: the target has to replace it."""
    PROGRESS = auto()
    ANSWERED = auto()
    LOST = auto()
    READY = auto()
    REFUSED = auto()
    GONE = auto()
    """The party that asked hung up."""
    PATIENCE = auto()
    """The time for the party that asked to hang up is over."""
    STOP = auto()
    """Command: the call ends."""


class Transfer(Machine[TransferState]):
    """One transfer of one call; no I/O, no clock."""

    def __init__(
        self,
        call: "CallMachine",
        leg: LegId,
        party: Party,
        *,
        replaces: Replaces | None = None,
        by_api: bool = False,
    ) -> None:
        """With ``by_api`` the API asks on behalf of the party of ``leg``, which gets no NOTIFY."""
        self.state = TransferState.NEW
        self.leg = leg
        """The leg of the party that asked."""
        self.dialled = False
        """True after the target was dialled."""
        self.ending: Ending | None = None
        """Ending of the call, when the transfer failed after the party that asked had left."""
        self._call = call
        self._replaces = replaces
        self._by_api = by_api
        self._failover = GatewayFailover(party, call)
        self._gone = False
        self._ringback: LegId | None = None

    @property
    def over(self) -> bool:
        """True after the transfer has ended."""
        return self.state is TransferState.OVER

    @property
    def pending(self) -> bool:
        """True until the target is connected."""
        return self.state < TransferState.DONE

    def begin(self) -> Iterator[Effect]:
        """Look up the target."""
        yield from self.trigger(TransferInput.BEGIN)

    def stop(self) -> Iterator[Effect]:
        """Abandon the target, because the call ends."""
        yield from self.trigger(TransferInput.STOP)

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        match event:
            case LegEnded() if event.leg == self.leg:
                yield from self.trigger(TransferInput.GONE, event)
            case TimerFired(Timer.TRANSFER):
                yield from self.trigger(TransferInput.PATIENCE, event)
            case _:
                what = _INPUTS.get(type(event))
                yield from self.trigger(what, event) if what is not None else self._handle_dialing(event)

    def _handle_dialing(self, event: Event) -> Iterator[Effect]:
        if self.state is not TransferState.DIALING:
            return
        yield from self._failover.handle(event)
        if self._failover.state is FailoverState.ANSWERED:
            yield from self.trigger(TransferInput.ANSWERED)
        elif self._failover.state is FailoverState.FAILED:
            yield from self.trigger(TransferInput.LOST)
        elif isinstance(event, LegProgress) and self._failover.owns(event.leg):
            yield from self.trigger(TransferInput.PROGRESS, event)

    # --- looking up the target ----------------------------------------------------------------------------

    def _seek(self, _: Event | None) -> Iterator[Effect]:
        if self._replaces is not None:
            yield FindPartner(self._replaces)
        else:
            yield FindRoute(self._failover.party)

    def _seek_way(self, _: Event | None) -> Iterator[Effect]:
        yield FindRoute(self._failover.party)

    def _refuse(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, RouteRefused)
        status = rejection_of(event.cause)
        yield from self._tell(RefuseTransfer(self.leg, status))
        yield from self._report(None, event.cause)

    def _dial(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, RouteFound)
        self.dialled = True
        yield from self._tell(AcceptTransfer(self.leg))
        yield from self._failover.begin(event.attempts)

    def _ask(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, PartnerFound)
        yield AcceptTransfer(self.leg)
        yield AskPartner(event.call_sid, event.leg)

    # --- progress -----------------------------------------------------------------------------------------

    def _progress(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, LegProgress)
        yield from self._tell(TellTransfer(self.leg, event.status))

    def _left_alone(self, _: Event | None) -> Iterator[Effect]:
        """The party that asked hung up early: play ringback to the one it leaves."""
        self._gone = True
        waiting = peer_of(self._call, self.leg)
        if waiting is not None:
            self._ringback = waiting
            yield PlayRingback(waiting)

    def _answered(self, _: Event | None) -> Iterator[Effect]:
        assert self._failover.leg is not None
        yield from self._silence()
        yield from self._call.transfers.replace_leg(self.leg, self._failover.leg)
        yield from self._succeed(str(self._failover.party.target), "bridge" if self._by_api else "blind")

    def _joined(self, event: Event | None) -> Iterator[Effect]:
        assert isinstance(event, PartnerReady)
        yield from self._silence()
        yield from self._call.transfers.join(self.leg, event)
        yield from self._succeed(str(self._failover.party.target), "attended")

    def _succeed(self, target: str, mode: str) -> Iterator[Effect]:
        yield from self._tell(TellTransfer(self.leg, 200))
        yield Save("call.transferred", {"transfer": {"mode": mode, "to": target}})
        # With nobody left to hang up, the transfer ends at once, in order with other queued events.
        yield Arm(Timer.TRANSFER, 0.0 if self._gone or self._by_api else GRACE_S)

    def _lost(self, _: Event | None) -> Iterator[Effect]:
        ending = self._failover.ending
        assert ending is not None
        yield from self._failed(rejection_of(ending.cause, ending.sip_status), ending)

    def _refused(self, _: Event | None) -> Iterator[Effect]:
        yield from self._failed(603, None)

    def _failed(self, status: int, ending: Ending | None) -> Iterator[Effect]:
        yield from self._silence()
        yield from self._tell(TellTransfer(self.leg, status))
        if ending is not None:
            yield from self._report(ending.sip_status, ending.cause)
        if self._gone:
            self.ending = ending or NOBODY_LEFT

    def _stopped(self, _: Event | None) -> Iterator[Effect]:
        yield from self._failover.abandon(NORMAL_CLEARING)
        yield from self._tell(TellTransfer(self.leg, 487))

    def _dismiss(self, _: Event | None) -> Iterator[Effect]:
        yield from self._call.transfers.drop_leg(self.leg)

    def _settle(self, _: Event | None) -> Iterator[Effect]:
        yield Disarm(Timer.TRANSFER)

    def _part(self, event: Event | None) -> Iterator[Effect]:
        """The call ends, so hang up the party that asked at once."""
        yield from self._settle(event)
        yield from self._dismiss(event)

    def _tell(self, news: Effect) -> Iterator[Effect]:
        if not self._by_api:
            yield news

    def _report(self, status: int | None, cause: HangupCause) -> Iterator[Effect]:
        """Report the failure of a transfer requested over the API, by an event."""
        if self._by_api:
            yield transfer_failed(self._failover.party, status, cause)

    def _silence(self) -> Iterator[Effect]:
        if self._ringback is not None:
            yield StopAudio(self._ringback)
            self._ringback = None


def transfer_failed(party: Party, sip_status: int | None, cause: HangupCause | None) -> Save:
    """Return the event for a failed transfer."""
    failed = {
        "mode": "bridge",
        "to": str(party.target),
        "sip_status": sip_status,
        "hangup_cause": cause.name if cause is not None else None,
    }
    return Save("call.transfer_failed", {"transfer": failed})


NOBODY_LEFT: Final = Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "system")
"""The party that asked has left, and its target could not be reached."""

_INPUTS: Final[dict[type, TransferInput]] = {
    RouteFound: TransferInput.ROUTED,
    RouteRefused: TransferInput.UNROUTABLE,
    PartnerFound: TransferInput.FOUND,
    PartnerMissing: TransferInput.MISSING,
    PartnerReady: TransferInput.READY,
    PartnerRefused: TransferInput.REFUSED,
    PartnerGone: TransferInput.REFUSED,
}

_S, _I = TransferState, TransferInput
RULES: Final[Rules[TransferState, TransferInput]] = {
    (_S.NEW, _I.BEGIN): (_S.SEEKING, Transfer._seek),
    (_S.SEEKING, _I.ROUTED): (_S.DIALING, Transfer._dial),
    (_S.SEEKING, _I.UNROUTABLE): (_S.OVER, Transfer._refuse),
    (_S.SEEKING, _I.FOUND): (_S.ASKING, Transfer._ask),
    (_S.SEEKING, _I.MISSING): (_S.SEEKING, Transfer._seek_way),
    (_S.SEEKING, _I.STOP): (_S.OVER, Transfer._stopped),
    (_S.DIALING, _I.PROGRESS): (_S.DIALING, Transfer._progress),
    (_S.DIALING, _I.ANSWERED): (_S.DONE, Transfer._answered),
    (_S.DIALING, _I.LOST): (_S.OVER, Transfer._lost),
    (_S.DIALING, _I.GONE): (_S.DIALING, Transfer._left_alone),
    (_S.DIALING, _I.STOP): (_S.OVER, Transfer._stopped),
    (_S.ASKING, _I.READY): (_S.DONE, Transfer._joined),
    (_S.ASKING, _I.REFUSED): (_S.OVER, Transfer._refused),
    (_S.ASKING, _I.GONE): (_S.ASKING, Transfer._left_alone),
    (_S.ASKING, _I.STOP): (_S.OVER, Transfer._stopped),
    (_S.DONE, _I.GONE): (_S.OVER, Transfer._settle),
    (_S.DONE, _I.PATIENCE): (_S.OVER, Transfer._dismiss),
    (_S.DONE, _I.STOP): (_S.OVER, Transfer._part),
}


def _ignored(state: TransferState, *handled: TransferInput) -> set[tuple[TransferState, TransferInput]]:
    return {(state, what) for what in TransferInput if what not in handled}


IGNORED: Final = frozenset(
    # The call creates and begins a transfer in one step, and looks up its route at once.
    _ignored(_S.NEW, _I.BEGIN)
    | _ignored(_S.SEEKING, _I.ROUTED, _I.UNROUTABLE, _I.FOUND, _I.MISSING, _I.STOP)
    | _ignored(_S.DIALING, _I.PROGRESS, _I.ANSWERED, _I.LOST, _I.GONE, _I.STOP)
    | _ignored(_S.ASKING, _I.READY, _I.REFUSED, _I.GONE, _I.STOP)
    | _ignored(_S.DONE, _I.GONE, _I.PATIENCE, _I.STOP)
    | _ignored(_S.OVER)
)


# --- target of a REFER --------------------------------------------------------------------------------------


def peer_of(call: "CallMachine", leg: LegId) -> LegId | None:
    """Return the leg that hears the given one; None when an agent or nobody does."""
    step, first = call.step, call.a_leg
    if not isinstance(step, BridgeStep) or not step.joined:
        return None
    return step.b_leg if leg == first.id else first.id


def party_of(asked: TransferRequested, record: CallRecord) -> Party:
    """
    Return the party to dial for a transfer; its caller-ID is the account's number of the call.

    Raises:
        DomainError: This server does not call the target.
    """
    uri = asked.target
    try:
        headers = tuple(uri_headers(uri.headers))
    except ParseError as error:
        raise ValidationFailed.of("Refer-To", error.reason) from None
    return Party(
        _target_of(uri, local=asked.local),
        record.to if record.direction == "inbound" else record.from_,
        headers=tuple(field for field in headers if field[0][:2].lower() == "x-"),
        replaces=str(asked.replaces) if asked.replaces is not None else None,
    )


def _target_of(uri: SipUri, *, local: bool) -> Target:
    """Return a number, from `tel:` or a URI of this server, or a user at a host that must be a gateway's."""
    if uri.scheme == "sips":
        raise Forbidden("A sips: target requires TLS on every hop, which is not available.")
    if uri.scheme == "sip" and not local:
        if not uri.user:
            raise ValidationFailed.of("Refer-To", "names no user")
        return SipTarget(uri.user, uri.host, uri.port)
    number = number_in(user_of(uri))
    if number is None:
        raise ValidationFailed.of("Refer-To", "names no telephone number")
    return PhoneTarget(number)


def refusal_of(error: DomainError) -> int:
    """Return the status that refuses a REFER whose target cannot be dialled."""
    return 403 if isinstance(error, Forbidden) else 404


Transfer.ROWS = compile_rules(RULES)
