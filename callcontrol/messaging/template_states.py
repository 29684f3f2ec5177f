"""
States of a template at the network, and the interval of polling.

============  ===========  ============  ==============================================================
state         the network  next state    meaning
============  ===========  ============  ==============================================================
PENDING       approved     APPROVED      messages may use it from now on
PENDING       rejected     REJECTED
PENDING       paused       PAUSED        approved and paused between two queries
APPROVED      paused       PAUSED        too many recipients have complained: it cannot be used for a while
APPROVED      rejected     REJECTED      the network has withdrawn its approval
PAUSED        approved     APPROVED      it may be used again
PAUSED        rejected     REJECTED
REJECTED      approved     APPROVED      an appeal to the network was successful
============  ===========  ============  ==============================================================
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final, cast

from callcontrol.messaging.approval import Verdict
from callcontrol.messaging.models import TemplateStatus
from sip.machine import next_state

_FIRST_CHECK: Final = timedelta(seconds=1)
_LONGEST_WAIT: Final[Mapping[TemplateStatus, timedelta]] = {
    "PENDING": timedelta(minutes=10),
    "APPROVED": timedelta(hours=6),
    "PAUSED": timedelta(hours=1),
}


class TemplateState(IntEnum):
    """State of a template; stored by its name."""

    PENDING = 0
    APPROVED = 1
    REJECTED = 2
    PAUSED = 3


_S, _V = TemplateState, Verdict

RULES: Final[Mapping[tuple[TemplateState, Verdict], tuple[TemplateState]]] = {
    (_S.PENDING, _V.APPROVED): (_S.APPROVED,),
    (_S.PENDING, _V.REJECTED): (_S.REJECTED,),
    (_S.PENDING, _V.PAUSED): (_S.PAUSED,),
    (_S.APPROVED, _V.PAUSED): (_S.PAUSED,),
    (_S.APPROVED, _V.REJECTED): (_S.REJECTED,),
    (_S.PAUSED, _V.APPROVED): (_S.APPROVED,),
    (_S.PAUSED, _V.REJECTED): (_S.REJECTED,),
    (_S.REJECTED, _V.APPROVED): (_S.APPROVED,),
}
# Known states, and answers older than the current state: no verdict returns a template to pending, and a
# rejected template cannot be used, paused or not.
IGNORED: Final = frozenset(
    {
        *((state, _V.PENDING) for state in _S),
        (_S.APPROVED, _V.APPROVED),
        (_S.REJECTED, _V.REJECTED),
        (_S.REJECTED, _V.PAUSED),
        (_S.PAUSED, _V.PAUSED),
    }
)


def after_verdict(status: TemplateStatus, verdict: Verdict) -> TemplateStatus | None:
    """The status of a template after a verdict; None when it does not change."""
    state = next_state(RULES, TemplateState[status], verdict)
    return None if state is None else cast(TemplateStatus, state.name)


def next_check(status: TemplateStatus, since: datetime, now: datetime) -> datetime | None:
    """
    Time of the next query about a template that has had its status since ``since``.

    The interval grows with the age of the status. None for a rejected template: only its owner can appeal,
    and asks for a sync then.
    """
    longest = _LONGEST_WAIT.get(status)
    if longest is None:
        return None
    return now + min(max((now - since) / 2, _FIRST_CHECK), longest)
