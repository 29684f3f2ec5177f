"""Request and response models for buying numbers."""

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import Name, Page, PerPage, Timestamp, with_plus
from api.schemas.serializers import shown
from callcontrol.e164 import SEPARATORS
from callcontrol.models import CURRENCY
from callcontrol.numbers.orders import MAX_MONTHS, Purchase
from callcontrol.wallet.money import rupees

__all__ = [
    "ListingObject",
    "ListingSearch",
    "NumberType",
    "PurchaseBody",
    "PurchaseObject",
    "Region",
    "purchase_json",
    "to_paise",
]

NumberType = Literal["mobile", "local", "toll_free", "140_series", "160_series"]

_MAX_RUPEES = 100_000_000
_PREFIX = re.compile(r"\+[1-9][0-9]{0,14}")


def to_paise(rupees: float) -> int:
    """Convert an amount that `_whole_paise` has accepted to paise."""
    return round(rupees * 100)


def _whole_paise(rupees: float) -> float:
    # An amount with two decimals is not exact in binary, so a small difference is rounding.
    if abs(rupees * 100 - round(rupees * 100)) > 1e-4:
        raise ValueError("must be an amount in INR with at most two decimals")
    return rupees


def _region(text: str) -> str:
    """
    Read the name of a region, or the beginning of a number as E.164 has it.

    Raises:
        ValueError: It is neither, such as digits without a country code: 9111 begins a number in Delhi and a
            mobile number.
    """
    text = with_plus(text)
    if not text.startswith("+") and any(character.isalpha() for character in text):
        return text
    digits = re.sub("^00", "+", text.translate(SEPARATORS))
    if _PREFIX.fullmatch(digits) is None:
        raise ValueError(
            "must be the name of a region, or the beginning of a number with its country code: +9111"
        )
    return digits


Region = Annotated[
    str,
    Field(max_length=256, description="Name of a region, or the beginning of a number: +9111."),
    AfterValidator(_region),
]


def _few_digits(text: str) -> str:
    if re.fullmatch("[0-9]{1,15}", text) is None:
        raise ValueError("must be 1 to 15 digits")
    return text


class ListingSearch(RequestModel):
    """Filters of a search for numbers."""

    region: Region | None = None
    number_type: NumberType | None = None
    contains: (
        Annotated[
            str,
            Field(
                description="Digits that the number contains.",
                json_schema_extra={"pattern": "^[0-9]{1,15}$"},
            ),
            AfterValidator(_few_digits),
        ]
        | None
    ) = None
    page: Page = 1
    per_page: PerPage = 20


class ListingObject(ResponseModel):
    """A number that is for sale."""

    live_ref: Annotated[str, Field(description="Opaque reference for POST /v1/dids/purchase-live.")]
    number: Annotated[str, Field(description="E.164.")]
    region: str
    number_type: NumberType
    monthly_cost: Annotated[float, Field(description="INR per calendar month.")]
    setup_cost: Annotated[float, Field(description="INR, charged once with the purchase.")]
    currency: Literal["INR"]
    voice_enabled: bool
    sms_enabled: bool


class PurchaseBody(RequestModel):
    """A number to buy."""

    live_ref: Annotated[str, Field(min_length=1, max_length=256, description="Reference of the number.")]
    friendly_name: Annotated[Name, Field(description="Label of the number.")] | None = None
    months: Annotated[int, Field(ge=1, le=MAX_MONTHS, description="Months to pay in advance.")] = 1
    acknowledged_total: (
        Annotated[
            float,
            Field(
                ge=0,
                le=_MAX_RUPEES,
                description="The total you accept, in INR: setup_cost + months * monthly_cost.",
            ),
            AfterValidator(_whole_paise),
            Field(json_schema_extra={"multipleOf": 0.01}),
        ]
        | None
    ) = None


class PurchaseObject(ResponseModel):
    """A purchased number and its cost."""

    phone_number_id: str
    number: Annotated[str, Field(description="E.164.")]
    total_charged: Annotated[float, Field(description="INR.")]
    currency: Literal["INR"]
    new_wallet_balance: Annotated[float, Field(description="INR.")]
    next_billing_at: Timestamp


def purchase_json(purchase: Purchase) -> dict[str, Any]:
    """Public fields of a purchase."""
    return shown(
        PurchaseObject,
        purchase,
        total_charged=rupees(purchase.total_paise),
        currency=CURRENCY,
        new_wallet_balance=rupees(purchase.balance_paise),
    )
