"""
Syntax of numbers and URLs.

The domain checks them too, and more. They are also checked here so that one error response names every
wrong field, including those that only the domain would find.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from callcontrol.egress.url_policy import check_url
from callcontrol.errors import DestinationForbidden, ValidationFailed
from callcontrol.routing.targets import normalise_number, parse_sip_target

__all__ = ["Address", "Number", "SipAddress", "StreamRate", "StreamUrl", "WebUrl"]


def _looks(read: Callable[[str], Any]) -> AfterValidator:
    """Make a validator that returns the text unchanged if `read` accepts it."""

    def check(text: str) -> str:
        try:
            read(text)
        except ValidationFailed as refusal:
            raise ValueError(refusal.errors[0].message) from None
        except DestinationForbidden:
            # The syntax is valid; the domain decides whether the server may connect there.
            pass
        return text

    return AfterValidator(check)


def _address(text: str) -> object:
    return parse_sip_target(text) if text[:4].lower() == "sip:" else normalise_number(text)


def _url(*schemes: str) -> AfterValidator:
    # The server's settings, known to the domain, decide whether plain http is allowed.
    return _looks(lambda url: check_url(url, schemes=schemes, allow_private=True))


def _rate(rate: int) -> int:
    if rate not in (8000, 16000):
        raise ValueError("must be 8000 or 16000")
    return rate


Number = Annotated[str, Field(min_length=2, max_length=32), _looks(normalise_number)]
SipAddress = Annotated[str, Field(min_length=5, max_length=256), _looks(parse_sip_target)]
Address = Annotated[str, Field(min_length=2, max_length=256), _looks(_address)]
WebUrl = Annotated[str, Field(min_length=8, max_length=2048), _url("http", "https")]
StreamUrl = Annotated[str, Field(min_length=5, max_length=2048), _url("ws", "wss")]
StreamRate = Annotated[int, AfterValidator(_rate)]
