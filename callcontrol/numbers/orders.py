"""
Purchase of a phone number: state machine of its order.

============  ===========  ============  ==================================================================
state         event        next state    meaning
============  ===========  ============  ==================================================================
pending       delivered    completed     in one transaction the wallet was charged and the number given
pending       given up     releasing     refused, or its process is gone; the supplier may hold the number
completed     released     releasing     the customer, or an unpaid renewal, gave the number up
releasing     returned     closed        the supplier has the number back
============  ===========  ============  ==================================================================

The transition to ``completed`` charges the wallet and assigns the number together. Before it, nothing is
charged; after it, the number is the customer's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, IntEnum
from typing import Final

from callcontrol.errors import FieldError, QuoteStale, ValidationFailed
from callcontrol.models import CURRENCY
from callcontrol.numbers.inventory import Listing
from callcontrol.wallet.money import rupees

MAX_MONTHS: Final = 24
"""Most months that may be paid in advance."""

MAX_NAME_CHARACTERS: Final = 128

GIVEN_UP_AFTER: Final = timedelta(minutes=2)
"""An order pending for longer has lost its process: a purchase takes a fraction of this time."""


class OrderState(IntEnum):
    """State of an order; stored by its name in lower case."""

    PENDING = 0
    COMPLETED = 1
    RELEASING = 2
    CLOSED = 3


class OrderEvent(Enum):
    """Event of an order."""

    DELIVERED = "delivered"
    GIVEN_UP = "given up"
    RELEASED = "released"
    RETURNED = "returned"


_S, _E = OrderState, OrderEvent

RULES: Final[Mapping[tuple[OrderState, OrderEvent], tuple[OrderState]]] = {
    (_S.PENDING, _E.DELIVERED): (_S.COMPLETED,),
    (_S.PENDING, _E.GIVEN_UP): (_S.RELEASING,),
    (_S.COMPLETED, _E.RELEASED): (_S.RELEASING,),
    (_S.RELEASING, _E.RETURNED): (_S.CLOSED,),
}
# An order is delivered once and given up only before that; a repeated release changes nothing.
IGNORED: Final = frozenset((state, event) for state in _S for event in _E if (state, event) not in RULES)


@dataclass(frozen=True, slots=True)
class Order:
    """Order of one purchase: number, price and state."""

    order_id: str
    account_sid: str
    live_ref: str
    number: str
    months: int
    total_paise: int
    created_at: datetime
    updated_at: datetime
    state: OrderState = OrderState.PENDING
    phone_number_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PurchaseRequest:
    """Purchase requested by a customer; ``acknowledged_paise`` is the accepted total, if given."""

    live_ref: str
    friendly_name: str | None = None
    months: int = 1
    acknowledged_paise: int | None = None


@dataclass(frozen=True, slots=True)
class Purchase:
    """Purchased number, with the price paid and the new balance."""

    phone_number_id: str
    number: str
    total_paise: int
    balance_paise: int
    next_billing_at: datetime


def check_purchase(request: PurchaseRequest) -> None:
    """
    Reject an invalid purchase request.

    Raises:
        ValidationFailed: With every wrong field.
    """
    errors: list[FieldError] = []
    if not request.live_ref:
        errors.append(FieldError("live_ref", "must name a number of the search"))
    if not 1 <= request.months <= MAX_MONTHS:
        errors.append(FieldError("months", f"must be 1 to {MAX_MONTHS}"))
    if request.friendly_name is not None and len(request.friendly_name) > MAX_NAME_CHARACTERS:
        errors.append(FieldError("friendly_name", f"must have at most {MAX_NAME_CHARACTERS} characters"))
    if errors:
        raise ValidationFailed(errors)


def check_quote(request: PurchaseRequest, listing: Listing) -> int:
    """
    Return the total of a purchase if the customer acknowledged it or gave none.

    Raises:
        QuoteStale: The acknowledged total is higher or lower; the details have the current prices.
    """
    total_paise = listing.total_paise(request.months)
    if request.acknowledged_paise not in (None, total_paise):
        raise stale(listing, request.months)
    return total_paise


def stale(listing: Listing, months: int) -> QuoteStale:
    """Error for an old price, with the new one."""
    total = rupees(listing.total_paise(months))
    return QuoteStale(
        f"The price has changed: the total is {total:.2f} INR now; acknowledge it to buy.",
        details={
            "total": total,
            "monthly_cost": rupees(listing.monthly_cost_paise),
            "setup_cost": rupees(listing.setup_cost_paise),
            "months": months,
            "currency": CURRENCY,
        },
    )
