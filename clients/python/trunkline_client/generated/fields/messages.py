# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class ButtonPart(TypedDict):
    """
    A button with a title of up to 20 characters, or a row of a list with one of up to 24.
    """

    id: str
    title: str
    description: NotRequired[str | None]


class InteractivePart(TypedDict):
    """
    A text with one to three buttons, or with a list of one to ten rows.
    """

    body: str
    buttons: list[ButtonPart]
    header: NotRequired[str | None]
    footer: NotRequired[str | None]


class MediaPart(TypedDict):
    """
    A file that the network fetches itself.
    """

    type: Literal['image', 'video', 'audio', 'document']
    url: str
    caption: NotRequired[str | None]
    filename: NotRequired[str | None]


class TemplatePart(TypedDict):
    """
    An approved template and the values of its variables, in order.
    """

    name: str
    language: NotRequired[str | None]
    bodyParameters: NotRequired[list[str] | None]


class SendMessageFields(TypedDict):
    """
    Fields of `messages.send`.
    """

    to: str
    type: Literal['text', 'template', 'media', 'buttons', 'list']
    text: NotRequired[str | None]
    template: NotRequired[TemplatePart | None]
    media: NotRequired[MediaPart | None]
    interactive: NotRequired[InteractivePart | None]


class ListChatMessagesFields(TypedDict):
    """
    Fields of `messages.list`.
    """

    status: NotRequired[Literal['queued', 'sent', 'delivered', 'read', 'failed', 'received'] | None]
    direction: NotRequired[Literal['inbound', 'outbound'] | None]
    to: NotRequired[str | None]
    from_: NotRequired[str | None]
    campaignId: NotRequired[int | None]
    pageSize: NotRequired[int]


class SimulateInboundFields(TypedDict):
    """
    Fields of `messages.simulate_inbound`.
    """

    from_: str
    text: str
