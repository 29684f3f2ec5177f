"""Answers in place of an application that sends nothing."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from api.mcp.asgi import Bridge


async def _admitted() -> bool:
    return True


async def _until_the_client_is_gone(scope: Any, receive: Any, send: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    pass


def _request(*, closing: bool) -> web.Request:
    request = make_mocked_request("POST", "/integrations/mcp")
    request.transport.is_closing.return_value = closing  # type: ignore[union-attr]  # A mock.
    return request


async def test_a_client_that_leaves_before_the_answer_is_no_error() -> None:
    answer = await Bridge(_request(closing=True), b"{}", _admitted).run(_until_the_client_is_gone, {})
    assert answer.status == 499


async def test_an_application_that_answers_a_client_with_nothing_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="sent nothing"):
        await Bridge(_request(closing=False), b"{}", _admitted).run(_nothing, {})
