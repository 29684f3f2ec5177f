"""The request that creates a session with a speech model, and what comes of its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from callcontrol.calls.aio.model_calls import created
from callcontrol.egress.aio.resolver import DestinationGuard
from callcontrol.egress.url_policy import Destinations
from fixtures.model_elevenlabs import ElevenLabsServer
from fixtures.model_ultravox import UltravoxServer
from media.aio.agent_dial import DialSettings
from media.aio.agent_settings import AgentStreamSettings
from media.streams import StreamConnectError, StreamSetup
from tests.support.domain import OpenDestinations
from tests.support.model_setups import make_dialect
from tests.support.phone import eventually

SETTINGS = AgentStreamSettings(dial=DialSettings(budget_s=5.0, offsets_s=(0.0, 0.5, 1.0)))


async def ask(
    url: str, settings: AgentStreamSettings = SETTINGS, destinations: Destinations | None = None
) -> tuple[StreamSetup, AgentStreamSettings]:
    setup: StreamSetup = make_dialect("ultravox", url=url)._setup
    assert setup.model is not None
    return await created(setup, setup.model, destinations or OpenDestinations(), settings)


async def refused(url: str, **more: Any) -> StreamConnectError:
    with pytest.raises(StreamConnectError) as caught:
        await ask(url, **more)
    assert "sk-secret" not in f"{caught.value} {caught.value.error}"
    return caught.value


@asynccontextmanager
async def vendor(*answers: tuple[int, bytes]) -> AsyncIterator[UltravoxServer]:
    server = UltravoxServer(key="sk-secret")
    server.answers = list(answers)
    async with server.running():
        yield server


async def test_the_socket_of_a_session_has_its_own_url_and_the_time_that_is_left() -> None:
    async with vendor((503, b"")) as server:
        setup, settings = await ask(server.url)
    assert setup.url.startswith("ws://127.0.0.1:") and server.requests == 2
    assert 0 < settings.dial.budget_s <= SETTINGS.dial.budget_s - 0.5, "the second attempt began so late"
    assert settings == replace(SETTINGS, dial=replace(SETTINGS.dial, budget_s=settings.dial.budget_s))


@pytest.mark.parametrize(
    ("status", "body", "reason", "requests"),
    [
        (401, b'{"detail":"sk-secret is no key"}', "http_status", 1),
        (402, b'{"detail":"no money"}', "rejected", 1),
        (429, b"", "rejected", 3),
        (500, b"<html>", "http_status", 3),
        (302, b"", "http_status", 1),
        (201, b"nonsense", "protocol", 1),
        (201, b"{" * 100_000, "protocol", 1),
        (201, b" " * 600_000, "protocol", 1),
        (201, b'{"joinUrl":"https://example.com/"}', "protocol", 1),
    ],
)
async def test_answers_without_a_session(status: int, body: bytes, reason: str, requests: int) -> None:
    async with vendor(*[(status, body)] * 4) as server:
        failure = await refused(server.url)
    assert (failure.reason, failure.attempts, server.requests) == (reason, requests, requests)
    if status >= 300:
        assert failure.http_status == status
        assert failure.error is not None and failure.error.code == f"http_{status}"


async def test_a_key_that_an_answer_repeats_is_not_shown_where_its_words_are_cut_off() -> None:
    words = "x" * 494 + "sk-secret"
    async with vendor((401, json.dumps({"detail": words}).encode())) as server:
        failure = await refused(server.url)
    assert failure.error is not None and failure.error.message.endswith("x[key]")
    assert "sk-s" not in failure.error.message


async def test_a_signed_address_is_asked_for_with_the_key_and_dialled_without_it() -> None:
    server = ElevenLabsServer(key="sk-secret")
    async with server.running():
        setup = make_dialect("elevenlabs", url=f"{server.url}?agent_id=a")._setup
        assert setup.model is not None
        signed, _ = await created(setup, setup.model, OpenDestinations(), SETTINGS)
        assert "conversation_signature=cvtkn_0" in signed.url
        server.fault = "unauthorized"
        with pytest.raises(StreamConnectError) as caught:
            await created(setup, setup.model, OpenDestinations(), SETTINGS)
    assert (caught.value.http_status, caught.value.attempts) == (401, 1)


async def test_a_vendor_that_wants_no_request_is_asked_for_nothing() -> None:
    setup = make_dialect("openai", url="ws://127.0.0.1:1/")._setup
    assert setup.model is not None
    assert await created(setup, setup.model, OpenDestinations(), SETTINGS) == (setup, SETTINGS)


async def test_the_address_of_a_session_is_not_kept_by_the_check_of_addresses() -> None:
    checked: list[str] = []

    class Noting(OpenDestinations):
        def check_url(self, url: str, *, schemes: Sequence[str]) -> None:
            checked.append(url)

    async with vendor() as server:
        setup, _ = await ask(server.url, destinations=Noting())
        origin = setup.url.partition("/calls")[0]
        assert f"{origin}/" in checked and not any("/calls/" in url for url in checked)


async def test_a_vendor_cannot_send_the_socket_where_it_must_not_go() -> None:
    answer = json.dumps({"joinUrl": "ws://169.254.169.254/latest"}).encode()
    async with vendor((201, answer)) as server:
        failure = await refused(server.url, destinations=DestinationGuard(allow_private=True))
    assert failure.reason == "forbidden"


@pytest.mark.parametrize("url", ["https://10.0.0.1/api/calls", "https://vendor.example/api/calls"])
async def test_the_request_goes_to_no_forbidden_address(url: str) -> None:
    guard = DestinationGuard(allow_private=False, lookup=lambda host, port: [("10.0.0.1", port)])
    failure = await refused(url, destinations=guard)
    assert (failure.reason, failure.attempts) == ("forbidden", 1)


@asynccontextmanager
async def answering(answer: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_post("/{path:.*}", answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/api/calls"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def silent_vendor(asked: asyncio.Queue[web.Request]) -> AsyncIterator[str]:
    async def wait(request: web.Request) -> web.Response:
        asked.put_nowait(request)
        await asyncio.Event().wait()
        raise AssertionError

    async with answering(wait) as url:
        yield url


async def test_a_redirection_does_not_get_the_key() -> None:
    async def redirect(request: web.Request) -> web.Response:
        paths.append(request.path)
        return web.Response(status=307, headers={"Location": "/elsewhere"})

    paths: list[str] = []
    async with answering(redirect) as url:
        failure = await refused(url)
    assert (failure.reason, failure.http_status, paths) == ("http_status", 307, ["/api/calls"])


async def test_a_request_that_is_not_answered_is_given_up_and_not_repeated() -> None:
    asked: asyncio.Queue[web.Request] = asyncio.Queue()
    async with silent_vendor(asked) as url:
        short = replace(SETTINGS, dial=replace(SETTINGS.dial, budget_s=0.3))
        failure = await refused(url, settings=short)
    assert (failure.reason, asked.qsize()) == ("timeout", 1)


async def test_the_end_of_a_call_closes_the_connection_of_its_request() -> None:
    asked: asyncio.Queue[web.Request] = asyncio.Queue()
    async with silent_vendor(asked) as url:
        creating = asyncio.create_task(ask(url))
        request = await asked.get()
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
        assert await eventually(lambda: request.transport is None)
    assert asked.empty()


async def test_a_vendor_that_is_not_there_is_tried_again() -> None:
    failure = await refused("http://127.0.0.1:1/api/calls")
    assert (failure.reason, failure.attempts) == ("connect", 3)
