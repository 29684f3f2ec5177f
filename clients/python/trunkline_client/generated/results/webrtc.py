# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class BrowserCall(Result):
    """
    A call of a browser.
    """

    call_sid: Annotated[
        str,
        Field(
            description='Of a browser that calls: the inbound call, once the browser has connected.'
        ),
    ]
    direction: Annotated[
        Literal['outgoing', 'incoming'], Field(description='As the browser sees it.')
    ]
    from_: Annotated[str, Field(alias='from')]
    to: str
    state: Literal['connecting', 'ringing', 'active', 'ended']
    reason: Annotated[str | None, Field(description='Reason of the end.')]
    sip_status: Annotated[int | None, Field(description='SIP status of a refusal.')]
    ended_at: datetime | None


class NewBrowserCall(Result):
    """
    A call of a browser, with the answer to its offer.
    """

    call_sid: Annotated[
        str,
        Field(
            description='Of a browser that calls: the inbound call, once the browser has connected.'
        ),
    ]
    direction: Annotated[
        Literal['outgoing', 'incoming'], Field(description='As the browser sees it.')
    ]
    from_: Annotated[str, Field(alias='from')]
    to: str
    state: Literal['connecting', 'ringing', 'active', 'ended']
    reason: Annotated[str | None, Field(description='Reason of the end.')]
    sip_status: Annotated[int | None, Field(description='SIP status of a refusal.')]
    ended_at: datetime | None
    sdp: Annotated[
        str, Field(description="Answer for the browser's RTCPeerConnection.")
    ]


class PhoneToken(Result):
    """
    A token, which is shown only here.
    """

    token: str
    identity: str
    from_: Annotated[str | None, Field(alias='from')]
    may_call: list[str]
    receives_calls: bool
    expires_at: datetime
