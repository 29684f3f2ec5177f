# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.webrtc`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import webrtc as fields_of
from trunkline_client.generated.results import webrtc
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_CREATE_PHONE_TOKEN = Operation("POST", "/v1/webrtc/tokens")
_CREATE_BROWSER_CALL = Operation("POST", "/v1/webrtc/calls")
_GET_BROWSER_CALL = Operation("GET", "/v1/webrtc/calls/{call_sid}", queries=frozenset({"after"}))
_RESTART_BROWSER_CALL = Operation("PATCH", "/v1/webrtc/calls/{call_sid}")
_END_BROWSER_CALL = Operation("DELETE", "/v1/webrtc/calls/{call_sid}")
_ANSWER_BROWSER_CALL = Operation("POST", "/v1/webrtc/calls/{call_sid}/answer")
_REFUSE_BROWSER_CALL = Operation("POST", "/v1/webrtc/calls/{call_sid}/refuse")
_OPEN_PHONE_EVENTS = Operation("GET", "/v1/webrtc/events", queries=frozenset({"identity"}))


class WebrtcResource(Resource):
    """Operations of `client.webrtc`."""

    def create_phone_token(self, **fields: Unpack[fields_of.CreatePhoneTokenFields]) -> webrtc.PhoneToken:
        """Make a token with which a web page may call, and be called."""
        return self._transport.item(_CREATE_PHONE_TOKEN, (), fields, webrtc.PhoneToken)

    def create_browser_call(
        self, **fields: Unpack[fields_of.CreateBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Call from a browser."""
        return self._transport.item(_CREATE_BROWSER_CALL, (), fields, webrtc.NewBrowserCall)

    def get_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.GetBrowserCallFields]
    ) -> webrtc.BrowserCall:
        """Get the state of a browser's call."""
        return self._transport.item(_GET_BROWSER_CALL, (call_sid,), fields, webrtc.BrowserCall)

    def restart_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.RestartBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Restart ICE of a browser whose network has changed, or hold a call or resume it."""
        return self._transport.item(_RESTART_BROWSER_CALL, (call_sid,), fields, webrtc.NewBrowserCall)

    def end_browser_call(self, call_sid: str, /) -> None:
        """Hang up a browser's call."""
        return self._transport.nothing(_END_BROWSER_CALL, (call_sid,), {})

    def answer_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.AnswerBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Answer a call to a browser."""
        return self._transport.item(_ANSWER_BROWSER_CALL, (call_sid,), fields, webrtc.NewBrowserCall)

    def refuse_browser_call(self, call_sid: str, /) -> None:
        """Refuse a call to a browser, for all its pages."""
        return self._transport.nothing(_REFUSE_BROWSER_CALL, (call_sid,), {})

    def open_phone_events(self, **fields: Unpack[fields_of.OpenPhoneEventsFields]) -> bytes:
        """Open a page to calls, and receive them."""
        return self._transport.file(_OPEN_PHONE_EVENTS, (), fields)


class AsyncWebrtcResource(AsyncResource):
    """Operations of `client.webrtc`."""

    async def create_phone_token(
        self, **fields: Unpack[fields_of.CreatePhoneTokenFields]
    ) -> webrtc.PhoneToken:
        """Make a token with which a web page may call, and be called."""
        return await self._transport.item(_CREATE_PHONE_TOKEN, (), fields, webrtc.PhoneToken)

    async def create_browser_call(
        self, **fields: Unpack[fields_of.CreateBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Call from a browser."""
        return await self._transport.item(_CREATE_BROWSER_CALL, (), fields, webrtc.NewBrowserCall)

    async def get_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.GetBrowserCallFields]
    ) -> webrtc.BrowserCall:
        """Get the state of a browser's call."""
        return await self._transport.item(_GET_BROWSER_CALL, (call_sid,), fields, webrtc.BrowserCall)

    async def restart_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.RestartBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Restart ICE of a browser whose network has changed, or hold a call or resume it."""
        return await self._transport.item(_RESTART_BROWSER_CALL, (call_sid,), fields, webrtc.NewBrowserCall)

    async def end_browser_call(self, call_sid: str, /) -> None:
        """Hang up a browser's call."""
        return await self._transport.nothing(_END_BROWSER_CALL, (call_sid,), {})

    async def answer_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.AnswerBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Answer a call to a browser."""
        return await self._transport.item(_ANSWER_BROWSER_CALL, (call_sid,), fields, webrtc.NewBrowserCall)

    async def refuse_browser_call(self, call_sid: str, /) -> None:
        """Refuse a call to a browser, for all its pages."""
        return await self._transport.nothing(_REFUSE_BROWSER_CALL, (call_sid,), {})

    async def open_phone_events(self, **fields: Unpack[fields_of.OpenPhoneEventsFields]) -> bytes:
        """Open a page to calls, and receive them."""
        return await self._transport.file(_OPEN_PHONE_EVENTS, (), fields)
