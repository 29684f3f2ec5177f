"""Common parts of jambonz's bodies: its hooks, and the parties it calls."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import E164
from api.schemas.forms import HookUrl, SipAddress, WebUrl

__all__ = [
    "Hook",
    "HookObject",
    "JambonzSid",
    "JambonzTarget",
    "StatusHook",
    "hook_of",
    "status_url",
    "unavailable",
]


def unavailable(*names: str) -> dict[str, str]:
    """Make the refusals of fields of jambonz that have no counterpart."""
    return dict.fromkeys(names, "is a field of jambonz's that is not available here")


class HookObject(RequestModel):
    """A server to ask, with the method."""

    not_accepted = unavailable("username", "password")

    url: HookUrl
    method: Literal["POST", "GET"] = "POST"


Hook = Annotated[
    Annotated[HookUrl, Tag("<text>")] | Annotated[HookObject, Tag("<object>")],
    Discriminator(lambda value: "<object>" if isinstance(value, dict | HookObject) else "<text>"),
]


class StatusHookObject(RequestModel):
    """A server that gets events."""

    not_accepted = unavailable("username", "password")

    url: WebUrl
    method: Literal["POST"] = "POST"


StatusHook = Annotated[
    Annotated[WebUrl, Tag("<text>")] | Annotated[StatusHookObject, Tag("<object>")],
    Discriminator(lambda value: "<object>" if isinstance(value, dict | StatusHookObject) else "<text>"),
]


def hook_of(hook: str | HookObject) -> HookObject:
    """Return a hook as an object."""
    return HookObject(url=hook) if isinstance(hook, str) else hook


def status_url(hook: str | StatusHookObject | None) -> str | None:
    """Return the address that gets events; None of none."""
    return hook.url if isinstance(hook, StatusHookObject) else hook


class JambonzTarget(RequestModel):
    """A party to call."""

    not_accepted = unavailable("trunk", "tenant", "auth", "overrideTo", "proxy", "headers", "vmail")

    type: Literal["phone", "sip", "user"]
    number: Annotated[E164, Field(description="Of a phone.")] | None = None
    sip_uri: Annotated[SipAddress | None, Field(alias="sipUri", description="Of type sip.")] = None
    name: (
        Annotated[str, Field(min_length=3, max_length=252, description="Of a user: user@domain.")] | None
    ) = None

    @property
    def address(self) -> str:
        """The number or the URI, by type."""
        if self.type == "user":
            name = self.name or ""
            return name if name.lower().startswith("sip:") else f"sip:{name}"
        return (self.number if self.type == "phone" else self.sip_uri) or ""


ADDRESS_OF: Mapping[str, str] = {"phone": "number", "sip": "sipUri", "user": "name"}
"""Field with the address of a party, by its type."""


def _complete(target: JambonzTarget) -> JambonzTarget:
    given: dict[str, Any] = {"number": target.number, "sipUri": target.sip_uri, "name": target.name}
    part = ADDRESS_OF[target.type]
    if given[part] is None:
        lacking = {"part": part, "kind": target.type}
        raise PydanticCustomError("part_missing", "is required with type {kind}", lacking)
    return target


CompleteJambonzTarget = Annotated[JambonzTarget, AfterValidator(_complete)]


class JambonzSid(ResponseModel):
    """Identifier of what was created."""

    sid: str
