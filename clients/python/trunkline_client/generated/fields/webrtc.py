# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class CreatePhoneTokenFields(TypedDict):
    """
    Fields of `webrtc.create_phone_token`.
    """

    identity: str
    from_: NotRequired[str | None]
    may_call: NotRequired[list[str]]
    receives_calls: NotRequired[bool]
    ttl_seconds: NotRequired[int]


class CreateBrowserCallFields(TypedDict):
    """
    Fields of `webrtc.create_browser_call`.
    """

    sdp: str
    to: str
    from_: NotRequired[str | None]
    parameters: NotRequired[dict[str, str]]


class GetBrowserCallFields(TypedDict):
    """
    Fields of `webrtc.get_browser_call`.
    """

    after: NotRequired[Literal['connecting', 'ringing', 'active'] | None]


class RestartBrowserCallFields(TypedDict):
    """
    Fields of `webrtc.restart_browser_call`.
    """

    sdp: str


class AnswerBrowserCallFields(TypedDict):
    """
    Fields of `webrtc.answer_browser_call`.
    """

    sdp: str


class OpenPhoneEventsFields(TypedDict):
    """
    Fields of `webrtc.open_phone_events`.
    """

    identity: NotRequired[str | None]
