"""Bodies and shapes of applications in jambonz's interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, RootModel

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import Name
from api.schemas.jambonz_api.base import Hook, unavailable
from callcontrol.egress.url_policy import WEB_SCHEMES
from callcontrol.errors import FieldError

__all__ = ["CreateJambonzApplication", "JambonzApplication", "JambonzApplications"]


class CreateJambonzApplication(RequestModel):
    """Create an application whose server is asked in the form of jambonz."""

    urls = dict.fromkeys(("call_hook", "call_status_hook"), WEB_SCHEMES)
    not_accepted: ClassVar[Mapping[str, str]] = unavailable(
        *("app_json", "env_vars", "fallback_speech_recognizer_vendor", "fallback_speech_synthesis_vendor"),
        *("messaging_hook", "speech_recognizer_language", "speech_recognizer_vendor"),
        *("speech_synthesis_language", "speech_synthesis_vendor", "speech_synthesis_voice"),
    )

    name: Name
    call_hook: Annotated[Hook, Field(description="Asked for verbs when a call comes in, or is answered.")]
    call_status_hook: Annotated[Hook, Field(description="Gets events of calls, by POST.")] | None = None
    record_all_calls: bool = False

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse events by GET."""
        told = given.get("call_status_hook")
        if isinstance(told, Mapping) and told.get("method") == "GET":
            return [FieldError("call_status_hook.method", "must be POST")]
        return []


class JambonzHook(ResponseModel):
    """A server that is asked."""

    url: str
    method: str


class JambonzApplication(ResponseModel):
    """An application; one that asks no server in the form of jambonz has no call_hook."""

    application_sid: str
    account_sid: str
    name: str
    call_hook: JambonzHook | None
    call_status_hook: JambonzHook | None
    record_all_calls: bool


class JambonzApplications(RootModel[list[JambonzApplication]]):
    """Applications, oldest first."""
