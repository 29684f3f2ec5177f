"""Bodies and shapes of applications in jambonz's interface."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field

from api.schemas.base import RequestModel, ResponseList, ResponseModel
from api.schemas.common import Name
from api.schemas.jambonz_api.base import Hook, StatusHook, unavailable
from callcontrol.egress.url_policy import HOOK_SCHEMES, WEB_SCHEMES

__all__ = ["CreateJambonzApplication", "JambonzApplication", "JambonzApplications"]


class CreateJambonzApplication(RequestModel):
    """Create an application whose server is asked in the form of jambonz."""

    urls = {"call_hook": HOOK_SCHEMES, "call_status_hook": WEB_SCHEMES}
    not_accepted: ClassVar[Mapping[str, str]] = unavailable(
        *("app_json", "env_vars", "fallback_speech_recognizer_vendor", "fallback_speech_synthesis_vendor"),
        *("messaging_hook", "speech_recognizer_language", "speech_recognizer_vendor"),
        *("speech_synthesis_language", "speech_synthesis_vendor", "speech_synthesis_voice"),
    )

    name: Name
    call_hook: Annotated[Hook, Field(description="Asked for verbs when a call comes in, or is answered.")]
    call_status_hook: Annotated[StatusHook, Field(description="Gets events of calls, by POST.")] | None = None
    record_all_calls: bool = False


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


class JambonzApplications(ResponseList[JambonzApplication]):
    """Applications, oldest first."""
