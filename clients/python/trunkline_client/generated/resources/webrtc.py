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


class WebrtcResource(Resource):
    """Operations of `client.webrtc`."""

    def create_phone_token(self, **fields: Unpack[fields_of.CreatePhoneTokenFields]) -> webrtc.PhoneToken:
        """Make a token with which a web page may call."""
        return self._transport.item(_CREATE_PHONE_TOKEN, (), fields, webrtc.PhoneToken)

    def create_browser_call(
        self, **fields: Unpack[fields_of.CreateBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Call a number of the account from a browser."""
        return self._transport.item(_CREATE_BROWSER_CALL, (), fields, webrtc.NewBrowserCall)

    def get_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.GetBrowserCallFields]
    ) -> webrtc.BrowserCall:
        """Get the state of a browser's call."""
        return self._transport.item(_GET_BROWSER_CALL, (call_sid,), fields, webrtc.BrowserCall)

    def restart_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.RestartBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Restart ICE of a browser whose network has changed."""
        return self._transport.item(_RESTART_BROWSER_CALL, (call_sid,), fields, webrtc.NewBrowserCall)

    def end_browser_call(self, call_sid: str, /) -> None:
        """Hang up a browser's call."""
        return self._transport.nothing(_END_BROWSER_CALL, (call_sid,), {})


class AsyncWebrtcResource(AsyncResource):
    """Operations of `client.webrtc`."""

    async def create_phone_token(
        self, **fields: Unpack[fields_of.CreatePhoneTokenFields]
    ) -> webrtc.PhoneToken:
        """Make a token with which a web page may call."""
        return await self._transport.item(_CREATE_PHONE_TOKEN, (), fields, webrtc.PhoneToken)

    async def create_browser_call(
        self, **fields: Unpack[fields_of.CreateBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Call a number of the account from a browser."""
        return await self._transport.item(_CREATE_BROWSER_CALL, (), fields, webrtc.NewBrowserCall)

    async def get_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.GetBrowserCallFields]
    ) -> webrtc.BrowserCall:
        """Get the state of a browser's call."""
        return await self._transport.item(_GET_BROWSER_CALL, (call_sid,), fields, webrtc.BrowserCall)

    async def restart_browser_call(
        self, call_sid: str, /, **fields: Unpack[fields_of.RestartBrowserCallFields]
    ) -> webrtc.NewBrowserCall:
        """Restart ICE of a browser whose network has changed."""
        return await self._transport.item(_RESTART_BROWSER_CALL, (call_sid,), fields, webrtc.NewBrowserCall)

    async def end_browser_call(self, call_sid: str, /) -> None:
        """Hang up a browser's call."""
        return await self._transport.nothing(_END_BROWSER_CALL, (call_sid,), {})
