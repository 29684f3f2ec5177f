"""
Syntax of numbers, parties and URLs.

The domain checks them too, and more. They are also checked here so that one error response names every
wrong field, including those that only the domain would find.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from api.schemas.base import RequestModel
from api.schemas.common import E164, with_plus
from callcontrol.egress.url_policy import HOOK_SCHEMES, STREAM_SCHEMES, WEB_SCHEMES, check_url
from callcontrol.errors import DestinationForbidden, ValidationFailed
from callcontrol.routing.targets import parse_address, parse_sip_target
from callcontrol.trunks.inbound_invite import ANONYMOUS

__all__ = [
    "Address",
    "CallTarget",
    "Callee",
    "CompleteTarget",
    "HookText",
    "HookUrl",
    "QueryAddress",
    "SipAddress",
    "StreamRate",
    "StreamUrl",
    "WebUrl",
]


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


def _recorded_address(text: str) -> str:
    """The number or address as call records have it."""
    if text.lower() == ANONYMOUS:
        return ANONYMOUS
    try:
        return str(parse_address(with_plus(text)))
    except ValidationFailed as refusal:
        raise ValueError(f"{refusal.errors[0].message}, or {ANONYMOUS}") from None


def _url(schemes: Sequence[str]) -> AfterValidator:
    # The server's settings, known to the domain, decide whether plain http is allowed.
    return _looks(lambda url: check_url(url, schemes=schemes, allow_private=True))


def _rate(rate: int) -> int:
    if rate not in (8000, 16000):
        raise ValueError("must be 8000 or 16000")
    return rate


# As of URLs below, a minimum is for the schema alone.
SipAddress = Annotated[
    str, Field(max_length=256, json_schema_extra={"minLength": 5}), _looks(parse_sip_target)
]
Address = Annotated[str, Field(max_length=256, json_schema_extra={"minLength": 2}), _looks(parse_address)]
QueryAddress = Annotated[
    str,
    Field(max_length=256, description="A telephone number in any common writing, sip: address or anonymous."),
    AfterValidator(_recorded_address),
]
# The shortest URL is a minimum for the schema alone: whoever sends a word learns how a URL starts.
WebUrl = Annotated[str, Field(max_length=2048, json_schema_extra={"minLength": 8}), _url(WEB_SCHEMES)]
HookUrl = Annotated[str, Field(max_length=2048, json_schema_extra={"minLength": 8}), _url(HOOK_SCHEMES)]
"""Address of a server that is asked by HTTP, or of an application for jambonz over a WebSocket."""
HookText = Annotated[str, Field(max_length=2048, json_schema_extra={"minLength": 8})]
"""The same where another field, or what is stored of it, decides which of the two may be given."""
StreamUrl = Annotated[str, Field(max_length=2048, json_schema_extra={"minLength": 5}), _url(STREAM_SCHEMES)]
StreamRate = Annotated[int, AfterValidator(_rate)]


class CallTarget(RequestModel):
    """A party to dial, in the syntax of jambonz."""

    type: Literal["phone", "sip"] = "phone"
    number: E164 | None = None
    sip_uri: SipAddress | None = None

    @property
    def address(self) -> str:
        """The number or the URI, by type; empty when it is missing."""
        return (self.number if self.type == "phone" else self.sip_uri) or ""


def _complete(target: CallTarget) -> CallTarget:
    if not target.address:
        lacking = {"part": "number" if target.type == "phone" else "sip_uri", "kind": target.type}
        raise PydanticCustomError("part_missing", "is required with type {kind}", lacking)
    if target.number is not None and target.sip_uri is not None:
        raise ValueError("cannot have both number and sip_uri")
    return target


CompleteTarget = Annotated[CallTarget, AfterValidator(_complete)]
Callee = Annotated[
    Annotated[Address, Tag("<text>")] | Annotated[CompleteTarget, Tag("<object>")],
    Discriminator(lambda value: "<object>" if isinstance(value, dict | CallTarget) else "<text>"),
    Field(description="A telephone number, or sip: at a gateway of a trunk; or {type, number}."),
]
