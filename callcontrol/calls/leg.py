"""
One party's side of a call: a dialog and its RTP stream, as a table of states.

A leg is either outbound (``OutboundLeg``) or inbound (``InboundLeg``). It has one dialog only: another
gateway is another leg. States are ordered and never go back. A leg that we end is over at once; the SIP
session handles later messages of the far end, such as a 200 that crossed our CANCEL.
"""

from collections.abc import Sequence
from enum import IntEnum, auto
from typing import Final, NamedTuple

from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import AnswerOffer, CloseMedia, ConnectMedia, MuteLeg
from callcontrol.calls.effects.signalling import AnswerLeg, DialLeg, HangUpLeg, RejectLeg, RingLeg, TakeOffer
from callcontrol.calls.events.commands import MuteDirection, PartyName
from callcontrol.calls.hangup_cause import (
    BEARERCAPABILITY_NOTAVAIL,
    NORMAL_CIRCUIT_CONGESTION,
    NORMAL_CLEARING,
    HangupCause,
)
from callcontrol.ids import LegId
from callcontrol.models.parties import Party, RouteAttempt
from sip.machine import Machine, Rules, compile_rules
from sip.values import frozen


class LegState(IntEnum):
    """States of a leg, in order."""

    NEW = 0
    TRYING = 1
    RINGING = 2
    UP = 3
    ENDED = 4


class LegInput(IntEnum):
    """Inputs of a leg: commands of the call, and reports of the far end."""

    START = auto()
    """Command: dial, or accept the offer of the inbound INVITE."""
    RING = auto()
    """Command: send ringing or early media to the caller."""
    ACCEPT = auto()
    """Command: answer the caller."""
    HANG_UP = auto()
    """Command: end the leg, in any state."""
    PROGRESS = auto()
    """The far end sent a provisional response."""
    ANSWERED = auto()
    """The called party answered; its SDP is not applied yet."""
    CONNECTED = auto()
    """The SDP of its answer is applied: the leg is up."""
    CONFIRMED = auto()
    """The caller acknowledged our answer."""
    OFFERED = auto()
    """The far end offers changed media."""
    REFUSED = auto()
    """No media is possible on this leg."""
    LOST = auto()
    """The far end is gone: rejected, cancelled, hung up, or unreachable."""


@frozen
class LegParams:
    """Parameters of an input; each input uses those it needs."""

    body: bytes = b""
    status: int = 180
    early_media: bool = False
    cause: HangupCause = NORMAL_CLEARING


NO_PARAMS: Final = LegParams()


class LegView(NamedTuple):
    """
    A leg as people see it.

    ``party`` is the address that was dialled, None for a caller; ``name`` the party by which commands name
    it, None for a leg that takes none now; ``muted`` as in a command, None when it is not.
    """

    leg: LegId
    state: str
    party: str | None
    name: PartyName | None = None
    muted: MuteDirection | None = None


class Leg(Machine[LegState]):
    """Common part of both kinds of leg; no I/O, no clock."""

    def __init__(self, leg_id: LegId) -> None:
        self.id = leg_id
        self.state = LegState.NEW
        self.rang = False
        """True after the party was alerted, by ringing or early media."""
        self.up = False
        """True while the leg is answered and not over."""
        self.over = False
        """True after the leg has ended."""
        self.muted_says = False
        self.muted_hears = False
        self.tracks: dict[str, int] = {}
        """Sounds that its party hears beside everything else: number in the media engine by name."""

    @property
    def dialled(self) -> str | None:
        """Address that was dialled; None for a caller."""
        return None

    def view(self, name: PartyName | None) -> LegView:
        """Return the leg as people see it, as the party of that name."""
        return LegView(self.id, self.state.name.lower(), self.dialled, name, self.muted)

    @property
    def muted(self) -> MuteDirection | None:
        """Direction in which it is muted; None when it is not."""
        if self.muted_says:
            return "both" if self.muted_hears else "says"
        return "hears" if self.muted_hears else None

    def mute(self, says: bool | None, hears: bool | None) -> list[Effect]:
        """Mute or unmute what its party says or hears; None leaves that unchanged."""
        wanted = (
            self.muted_says if says is None else says,
            self.muted_hears if hears is None else hears,
        )
        if wanted == (self.muted_says, self.muted_hears):
            return []
        self.muted_says, self.muted_hears = wanted
        return [MuteLeg(self.id, *wanted)]

    def handle(self, what: LegInput, params: LegParams = NO_PARAMS) -> list[Effect]:
        """Handle one input and return the effects; inputs without a rule in this state do nothing."""
        effects = self.trigger(what, params)
        self.up, self.over = self.state is _UP, self.state is _ENDED
        return effects

    def _quiet(self, params: LegParams) -> Sequence[Effect]:
        return ()

    def _answer_offer(self, params: LegParams) -> Sequence[Effect]:
        return (AnswerOffer(self.id, params.body),)

    def _hang_up(self, params: LegParams) -> Sequence[Effect]:
        return (HangUpLeg(self.id, params.cause), CloseMedia(self.id))

    def _close(self, params: LegParams) -> Sequence[Effect]:
        return (CloseMedia(self.id),)

    def _hang_up_without_media(self, params: LegParams) -> Sequence[Effect]:
        return (HangUpLeg(self.id, BEARERCAPABILITY_NOTAVAIL), CloseMedia(self.id))


class OutboundLeg(Leg):
    """A leg that we dial."""

    def __init__(
        self, leg_id: LegId, attempt: RouteAttempt, party: Party, peer_leg: LegId | None = None
    ) -> None:
        super().__init__(leg_id)
        self.attempt = attempt
        self.party = party
        self._peer_leg = peer_leg

    @property
    def dialled(self) -> str | None:
        """Address that was dialled."""
        return str(self.party.target)

    def _dial(self, params: LegParams) -> Sequence[Effect]:
        return (DialLeg(self.id, self.attempt, self.party, self._peer_leg),)

    def _progress(self, params: LegParams) -> Sequence[Effect]:
        self.rang = True
        return (ConnectMedia(self.id, params.body, early=True),) if params.body else ()

    def _answered(self, params: LegParams) -> Sequence[Effect]:
        return (ConnectMedia(self.id, params.body),)


class InboundLeg(Leg):
    """A leg of an inbound call."""

    def __init__(self, leg_id: LegId) -> None:
        super().__init__(leg_id)
        self._told: tuple[int, bool] | None = None

    def _take(self, params: LegParams) -> Sequence[Effect]:
        return (TakeOffer(self.id),)

    def _ring(self, params: LegParams) -> Sequence[Effect]:
        """Send the provisional response, unless the same one was sent last."""
        self.rang = True
        news = (params.status, params.early_media)
        if news == self._told:
            return ()
        self._told = news
        return (RingLeg(self.id, params.status, params.early_media),)

    def _accept(self, params: LegParams) -> Sequence[Effect]:
        return (AnswerLeg(self.id),)

    def _confirmed(self, params: LegParams) -> Sequence[Effect]:
        """The ACK carries an SDP answer only when the INVITE had no offer (RFC 3261 13.2.1)."""
        return (ConnectMedia(self.id, params.body),) if params.body else ()

    def _reject(self, params: LegParams) -> Sequence[Effect]:
        return (RejectLeg(self.id, params.status, params.cause), CloseMedia(self.id))

    def _reject_without_media(self, params: LegParams) -> Sequence[Effect]:
        """Reject with ``params.status``: 488 for SDP without common media, 503 without a free port."""
        cause = NORMAL_CIRCUIT_CONGESTION if params.status == 503 else BEARERCAPABILITY_NOTAVAIL
        return (RejectLeg(self.id, params.status, cause), CloseMedia(self.id))


def _pairs(states: tuple[LegState, ...], *inputs: LegInput) -> set[tuple[LegState, LegInput]]:
    return {(state, what) for state in states for what in inputs}


_NEW, _TRYING, _RINGING, _UP, _ENDED = LegState
_I = LegInput

OUTBOUND_INPUTS: Final = frozenset(
    {_I.START, _I.PROGRESS, _I.ANSWERED, _I.CONNECTED, _I.OFFERED, _I.REFUSED, _I.LOST, _I.HANG_UP}
)
OUTBOUND_RULES: Final[Rules[LegState, LegInput]] = {
    (_NEW, _I.START): (_TRYING, OutboundLeg._dial),
    (_NEW, _I.HANG_UP): (_ENDED, Leg._quiet),
    (_TRYING, _I.PROGRESS): (_RINGING, OutboundLeg._progress),
    (_TRYING, _I.ANSWERED): (_TRYING, OutboundLeg._answered),
    (_TRYING, _I.CONNECTED): (_UP, Leg._quiet),
    (_TRYING, _I.OFFERED): (_TRYING, Leg._answer_offer),
    (_TRYING, _I.REFUSED): (_ENDED, Leg._hang_up_without_media),
    (_TRYING, _I.LOST): (_ENDED, Leg._close),
    (_TRYING, _I.HANG_UP): (_ENDED, Leg._hang_up),
    (_RINGING, _I.PROGRESS): (_RINGING, OutboundLeg._progress),
    (_RINGING, _I.ANSWERED): (_RINGING, OutboundLeg._answered),
    (_RINGING, _I.CONNECTED): (_UP, Leg._quiet),
    (_RINGING, _I.OFFERED): (_RINGING, Leg._answer_offer),
    (_RINGING, _I.REFUSED): (_ENDED, Leg._hang_up_without_media),
    (_RINGING, _I.LOST): (_ENDED, Leg._close),
    (_RINGING, _I.HANG_UP): (_ENDED, Leg._hang_up),
    (_UP, _I.OFFERED): (_UP, Leg._answer_offer),
    (_UP, _I.REFUSED): (_ENDED, Leg._hang_up_without_media),
    (_UP, _I.LOST): (_ENDED, Leg._close),
    (_UP, _I.HANG_UP): (_ENDED, Leg._hang_up),
}
OUTBOUND_IGNORED: Final = frozenset(
    _pairs(
        (_NEW,), _I.PROGRESS, _I.ANSWERED, _I.CONNECTED, _I.OFFERED, _I.REFUSED, _I.LOST
    )  # nothing was sent yet
    | _pairs((_TRYING, _RINGING, _UP), _I.START)
    | _pairs((_UP,), _I.PROGRESS, _I.ANSWERED, _I.CONNECTED)  # late or repeated responses
    | _pairs((_ENDED,), *OUTBOUND_INPUTS)
)
OutboundLeg.ROWS = compile_rules(OUTBOUND_RULES)

INBOUND_INPUTS: Final = frozenset(
    {_I.START, _I.RING, _I.ACCEPT, _I.CONFIRMED, _I.OFFERED, _I.REFUSED, _I.LOST, _I.HANG_UP}
)
INBOUND_RULES: Final[Rules[LegState, LegInput]] = {
    (_NEW, _I.START): (_TRYING, InboundLeg._take),
    (_NEW, _I.LOST): (_ENDED, Leg._quiet),
    (_NEW, _I.HANG_UP): (_ENDED, InboundLeg._reject),
    (_TRYING, _I.RING): (_RINGING, InboundLeg._ring),
    (_TRYING, _I.ACCEPT): (_UP, InboundLeg._accept),
    (_TRYING, _I.OFFERED): (_TRYING, Leg._answer_offer),
    (_TRYING, _I.REFUSED): (_ENDED, InboundLeg._reject_without_media),
    (_TRYING, _I.LOST): (_ENDED, Leg._close),
    (_TRYING, _I.HANG_UP): (_ENDED, InboundLeg._reject),
    (_RINGING, _I.RING): (_RINGING, InboundLeg._ring),
    (_RINGING, _I.ACCEPT): (_UP, InboundLeg._accept),
    (_RINGING, _I.OFFERED): (_RINGING, Leg._answer_offer),
    (_RINGING, _I.REFUSED): (_ENDED, InboundLeg._reject_without_media),
    (_RINGING, _I.LOST): (_ENDED, Leg._close),
    (_RINGING, _I.HANG_UP): (_ENDED, InboundLeg._reject),
    (_UP, _I.CONFIRMED): (_UP, InboundLeg._confirmed),
    (_UP, _I.OFFERED): (_UP, Leg._answer_offer),
    (_UP, _I.REFUSED): (_ENDED, Leg._hang_up_without_media),
    (_UP, _I.LOST): (_ENDED, Leg._close),
    (_UP, _I.HANG_UP): (_ENDED, Leg._hang_up),
}
INBOUND_IGNORED: Final = frozenset(
    _pairs((_NEW,), _I.RING, _I.ACCEPT, _I.CONFIRMED, _I.OFFERED, _I.REFUSED)  # not started yet
    | _pairs((_TRYING, _RINGING, _UP), _I.START)
    | _pairs((_TRYING, _RINGING), _I.CONFIRMED)
    | _pairs((_UP,), _I.RING, _I.ACCEPT)  # answered already
    | _pairs((_ENDED,), *INBOUND_INPUTS)
)
InboundLeg.ROWS = compile_rules(INBOUND_RULES)
