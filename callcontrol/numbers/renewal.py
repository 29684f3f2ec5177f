"""
Monthly renewal of numbers: due dates, and the state machine of an unpaid number.

==========  =======  ==========  ==========================================================================
state       event    next state  meaning
==========  =======  ==========  ==========================================================================
paid        charged  paid        the next month is paid
paid        refused  overdue     the wallet cannot pay; the number works through a grace period
overdue     charged  paid        it was topped up in time
overdue     expired  suspended   calls from and to the number are refused from now on
suspended   charged  paid        it was topped up; the number works again
suspended   expired  released    the number is no longer the customer's
==========  =======  ==========  ==========================================================================

Times are arguments, never read from a clock. A missed month is charged like any other: the number was kept.
"""

import calendar
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, IntEnum
from typing import Final

from callcontrol.models import Billing, PhoneNumber
from sip.machine import next_state


@dataclass(frozen=True, slots=True)
class RenewalTerms:
    """Grace period of an unpaid number, and the time that it is kept while suspended afterwards."""

    grace: timedelta = timedelta(days=7)
    kept: timedelta = timedelta(days=23)


class Standing(IntEnum):
    """Renewal state of a number."""

    PAID = 0
    OVERDUE = 1
    SUSPENDED = 2
    RELEASED = 3


class RenewalEvent(Enum):
    """Result of an attempt to charge the next month; a refusal after the deadline is ``EXPIRED``."""

    CHARGED = "charged"
    REFUSED = "refused"
    EXPIRED = "expired"


_S, _E = Standing, RenewalEvent

RULES: Final[Mapping[tuple[Standing, RenewalEvent], tuple[Standing]]] = {
    (_S.PAID, _E.CHARGED): (_S.PAID,),
    (_S.PAID, _E.REFUSED): (_S.OVERDUE,),
    (_S.OVERDUE, _E.CHARGED): (_S.PAID,),
    (_S.OVERDUE, _E.EXPIRED): (_S.SUSPENDED,),
    (_S.SUSPENDED, _E.CHARGED): (_S.PAID,),
    (_S.SUSPENDED, _E.EXPIRED): (_S.RELEASED,),
}
IGNORED: Final = frozenset(
    {
        (_S.PAID, _E.EXPIRED),  # There is no deadline before a refusal.
        (_S.OVERDUE, _E.REFUSED),  # The deadline is already set.
        (_S.SUSPENDED, _E.REFUSED),
        *((_S.RELEASED, event) for event in _E),  # A released number is no longer charged.
    }
)


def add_months(anchor: datetime, months: int) -> datetime:
    """
    Same day and time some calendar months later, or the month's last day if it is shorter.

    Counted from a fixed anchor, 31 January is followed by 28 February and then by 31 March.
    """
    year, month = divmod(anchor.year * 12 + anchor.month - 1 + months, 12)
    day = min(anchor.day, calendar.monthrange(year, month + 1)[1])
    return anchor.replace(year=year, month=month + 1, day=day)


def opened(anchor: datetime, months: int) -> Billing:
    """Billing of a number with ``months`` prepaid from ``anchor``."""
    return Billing(anchor, months, add_months(anchor, months))


def standing(number: PhoneNumber) -> Standing:
    """Renewal state of a number, from its status and billing."""
    if number.status == "released":
        return Standing.RELEASED
    if number.status == "suspended":
        return Standing.SUSPENDED
    overdue = number.billing is not None and number.billing.deadline_at is not None
    return Standing.OVERDUE if overdue else Standing.PAID


def is_due(number: PhoneNumber, now: datetime) -> bool:
    """Return True if the number's next month is due."""
    return number.billing is not None and number.billing.next_at <= now


def after_attempt(number: PhoneNumber, *, charged: bool, now: datetime, terms: RenewalTerms) -> PhoneNumber:
    """Number after an attempt to charge its next month; the same object if nothing changes."""
    billing = number.billing
    assert billing is not None
    event = _E.CHARGED if charged else _E.REFUSED
    if not charged and billing.deadline_at is not None and now >= billing.deadline_at:
        event = _E.EXPIRED
    state = next_state(RULES, standing(number), event)
    if state is None:
        return number
    if charged:
        months = billing.paid_months + 1
        return replace(number, status="active", billing=opened(billing.anchor_at, months), updated_at=now)
    if state is _S.OVERDUE:
        return replace(number, billing=replace(billing, deadline_at=now + terms.grace), updated_at=now)
    if state is _S.SUSPENDED:
        billing = replace(billing, deadline_at=now + terms.kept)
        return replace(number, status="suspended", billing=billing, updated_at=now)
    return replace(number, status="released", updated_at=now)
