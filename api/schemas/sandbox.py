"""Request and response models of calls from the sandbox."""

from typing import Annotated

from pydantic import Field

from api.schemas.base import RequestModel, ResponseModel
from api.schemas.common import E164, Digits
from callcontrol.calls.sandbox import LISTENER, Behaviour

__all__ = ["PartyCallBody", "PartyCallObject"]


class PartyCallBody(RequestModel):
    """A call for a sandbox party to place."""

    to: Annotated[E164, Field(description="A number of the account.")]
    from_: Annotated[
        E164,
        Field(
            alias="from",
            description="The calling sandbox number: +919800000 and three digits; it decides the behaviour.",
        ),
    ] = LISTENER
    behaviour: Annotated[
        Behaviour | None,
        Field(description="Behaviour after the answer; by default that of the number when it is called."),
    ] = None
    send_digits: Annotated[
        Digits | None, Field(description="Digits sent first after the answer; w and W wait 0.5 s and 1 s.")
    ] = None
    hangup_after_ringing_seconds: Annotated[
        float | None,
        Field(ge=0, le=300, description="The party gives up if it has rung so long without an answer."),
    ] = None
    hangup_after_seconds: Annotated[
        float, Field(gt=0, le=3600, description="The party hangs up so long after the answer.")
    ] = 60.0


class PartyCallObject(ResponseModel):
    """A call that a sandbox party has placed."""

    call_sid: Annotated[
        str | None,
        Field(description="The inbound call; null if it did not begin within a second."),
    ]
    sip_call_id: Annotated[str, Field(description="Call-ID of its INVITE.")]
    from_: Annotated[str, Field(alias="from")]
    to: str
