"""
Progress of a masked call: its status as a table of states, and the legs of its record.

The status covers both parties, so it differs from that of the call: a call whose first party answered and
whose second did not is ``no-answer``. It is kept in ``details`` of the record, which is replaced and never
changed in place, so that copies handed out stay unchanged.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum, auto
from math import ceil
from typing import Any, Final

from callcontrol.calls.charges import Rates
from callcontrol.calls.dialer import Ending
from callcontrol.calls.hangup_cause import NORMAL_CLEARING, ORIGINATOR_CANCEL, HangupCause
from callcontrol.calls.product import CallProgress
from callcontrol.clock import timestamp
from callcontrol.masking.calls import MaskedStatus
from callcontrol.models import CallRecord, CallStatus
from sip.machine import next_state

_LEG_ENDED: Final = frozenset({"completed", "busy", "no-answer", "failed", "canceled"})


class MaskedStage(IntEnum):
    """Stages of a masked call, in order; ``ENDED`` stands for all final statuses."""

    INITIATED = 0
    A_RINGING = 1
    A_ANSWERED = 2
    B_RINGING = 3
    BRIDGED = 4
    ENDED = 5


class MaskedInput(IntEnum):
    """Inputs of the state machine of a masked call."""

    A_RINGS = auto()
    A_ANSWERS = auto()
    B_RINGS = auto()
    BRIDGE = auto()
    END = auto()


class MaskedProgress(CallProgress):
    """The progress of one masked call, written into its record; times are monotonic seconds."""

    def __init__(self, record: CallRecord, rates: Rates) -> None:
        self._record = record
        self._pulse_s = rates.pulse_s
        self._stage = MaskedStage.INITIATED
        self._bridged_s: float | None = None
        self._leg("a", status="initiated")

    def first_rings(self) -> None:
        """Record that the first party rings, or hears the ringing of the other."""
        self._leg("a", status="ringing")
        if self._called_first:
            self._take(MaskedInput.A_RINGS)

    def first_answers(self, at: datetime) -> None:
        """Record that the first party answered, or that its call was answered."""
        self._leg("a", status="in-progress", answered_at=timestamp(at))
        if self._called_first:
            self._take(MaskedInput.A_ANSWERS)

    def second_dialled(self) -> None:
        """Record that the second party is being dialled."""
        self._leg("b", status="initiated")

    def second_rings(self) -> bool:
        """Record that the second party rings; return True if that is new."""
        if self._take(MaskedInput.B_RINGS):
            self._leg("b", status="ringing")
            return True
        return False

    def second_lost(self, ending: Ending) -> None:
        """Record that the second party cannot be reached."""
        self._leg("b", status=_unanswered(ending), hangup_cause=ending.cause.name)

    def bridged(self, at: datetime, now_s: float) -> None:
        """Record that the second party answered: the two are connected."""
        if self._take(MaskedInput.BRIDGE):
            self._bridged_s = now_s
            moment = timestamp(at)
            self._leg("b", status="in-progress", answered_at=moment)
            self._note(bridged_at=moment)

    def ended(self, ending: Ending, now_s: float) -> None:
        """Record the end of the call."""
        if not self._take(MaskedInput.END):
            return
        talked_s = now_s - self._bridged_s if self._bridged_s is not None else None
        self._record.details = ended_details(self._record.details or {}, ending, talked_s, self._pulse_s)

    def revert_answer(self) -> None:
        """Revert the second party's answer: the first party had hung up before it was joined."""
        self._bridged_s = None
        self._note(bridged_at=None)

    @property
    def _called_first(self) -> bool:
        """True if we called the first party; a party that called us has no ringing or answer status."""
        return self._record.direction == "outbound"

    def _take(self, what: MaskedInput) -> bool:
        target = next_state(RULES, self._stage, what)
        if target is None:
            return False
        self._stage = target
        if target in _STATUS:
            self._note(status=_STATUS[target])
        return True

    def _note(self, **changes: Any) -> None:
        self._record.details = {**(self._record.details or {}), **changes}

    def _leg(self, party: str, **changes: Any) -> None:
        self._record.details = _with_leg(self._record.details or {}, party, **changes)


def cut_off(record: CallRecord, cause: HangupCause, pulse_s: float) -> bool:
    """
    Record the end of a masked call with an unknown end time; return True if its parties had been joined.

    It counts as ended at the last written event, so that the two have talked for zero seconds.
    """
    details = record.details or {}
    bridged_at = details.get("bridged_at")
    ending = Ending(CallStatus.FAILED, cause, "system")
    record.details = ended_details(details, ending, 0.0 if bridged_at is not None else None, pulse_s)
    if bridged_at is not None:
        record.ended_at = datetime.fromisoformat(bridged_at)
    return bridged_at is not None


def ended_details(
    details: Mapping[str, Any], ending: Ending, talked_s: float | None, pulse_s: float
) -> dict[str, Any]:
    """The details of a call that has ended; ``talked_s`` is None when its parties were never joined."""
    pulses = 0 if talked_s is None else max(1, ceil(talked_s / pulse_s))
    ended = {
        **details,
        "status": final_status(ending, bridged=talked_s is not None),
        "duration_sec": 0 if talked_s is None else int(talked_s + 0.5),
        "bill_duration_sec": round(pulses * pulse_s),
    }
    for leg in details.get("legs", ()):
        ended = _with_leg(ended, leg["party"], **_leg_end(leg, ending))
    return ended


def final_status(ending: Ending, *, bridged: bool) -> MaskedStatus:
    """
    The final status of a masked call.

    Busy, declined and unanswered calls share one status, and the cause tells them apart; a party that hangs
    up, or a call that the account ends, before the two are joined counts as that too. Failures caused by a
    carrier or this server are ``failed``.
    """
    if bridged:
        return "completed"
    if ending.status is CallStatus.FAILED:
        return "failed"
    broken = ending.status is CallStatus.COMPLETED and ending.source in ("carrier", "system")
    return "failed" if broken else "no-answer"


def _leg_end(leg: Mapping[str, Any], ending: Ending) -> dict[str, Any]:
    """The changes of a leg when its call ends."""
    if leg["status"] in _LEG_ENDED or leg["status"] == "queued":
        return {}
    if leg["status"] == "in-progress":
        # The reason that the other party was not reached does not apply to this one.
        talked = ending.status is CallStatus.COMPLETED or leg["party"] == "b"
        return {"status": "completed", "hangup_cause": (ending.cause if talked else NORMAL_CLEARING).name}
    if leg["party"] == "b":
        return {"status": "canceled", "hangup_cause": ORIGINATOR_CANCEL.name}
    return {"status": _unanswered(ending), "hangup_cause": ending.cause.name}


def _unanswered(ending: Ending) -> str:
    status = CallStatus.NO_ANSWER if ending.status is CallStatus.COMPLETED else ending.status
    return status.value


def _with_leg(details: Mapping[str, Any], party: str, **changes: Any) -> dict[str, Any]:
    legs = [{**leg, **changes} if leg["party"] == party else leg for leg in details.get("legs", ())]
    return {**details, "legs": legs}


_S, _I = MaskedStage, MaskedInput
_STATUS: Final[Mapping[MaskedStage, MaskedStatus]] = {
    _S.A_RINGING: "a_ringing",
    _S.A_ANSWERED: "a_answered",
    _S.B_RINGING: "b_ringing",
    _S.BRIDGED: "in-progress",
}
RULES: Final[dict[tuple[MaskedStage, MaskedInput], tuple[MaskedStage]]] = {
    (_S.INITIATED, _I.A_RINGS): (_S.A_RINGING,),
    (_S.INITIATED, _I.A_ANSWERS): (_S.A_ANSWERED,),
    (_S.INITIATED, _I.B_RINGS): (_S.B_RINGING,),
    (_S.INITIATED, _I.BRIDGE): (_S.BRIDGED,),
    (_S.INITIATED, _I.END): (_S.ENDED,),
    (_S.A_RINGING, _I.A_ANSWERS): (_S.A_ANSWERED,),
    (_S.A_RINGING, _I.END): (_S.ENDED,),
    (_S.A_ANSWERED, _I.B_RINGS): (_S.B_RINGING,),
    (_S.A_ANSWERED, _I.BRIDGE): (_S.BRIDGED,),
    (_S.A_ANSWERED, _I.END): (_S.ENDED,),
    (_S.B_RINGING, _I.BRIDGE): (_S.BRIDGED,),
    (_S.B_RINGING, _I.END): (_S.ENDED,),
    (_S.BRIDGED, _I.END): (_S.ENDED,),
}
IGNORED: Final = frozenset(
    {(_S.A_RINGING, what) for what in (_I.A_RINGS, _I.B_RINGS, _I.BRIDGE)}
    | {(_S.A_ANSWERED, what) for what in (_I.A_RINGS, _I.A_ANSWERS)}
    | {(_S.B_RINGING, what) for what in (_I.A_RINGS, _I.A_ANSWERS, _I.B_RINGS)}
    | {(_S.BRIDGED, what) for what in MaskedInput if what is not _I.END}
    | {(_S.ENDED, what) for what in MaskedInput}
)
