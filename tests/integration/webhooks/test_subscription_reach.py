"""URLs that may be subscribed: checked with all addresses that their names have at that moment."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from callcontrol.egress.aio.resolver import DestinationGuard
from callcontrol.egress.url_policy import PRIVATE_SETTING
from callcontrol.webhooks.aio import subscriptions
from callcontrol.webhooks.aio.subscriptions import reach_errors

ADDRESSES: dict[str, Sequence[str]] = {
    "public.example": ["1.1.1.1", "2606:4700:4700::1111"],
    "both.example": ["1.1.1.1", "10.0.0.7"],
    "inside.example": ["192.168.1.5"],
    "mapped.example": ["::ffff:127.0.0.1"],
    "metadata.example": ["169.254.169.254"],
}


def lookup(host: str, port: int) -> Sequence[tuple[Any, ...]]:
    if host not in ADDRESSES:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    return [(address, port) for address in ADDRESSES[host]]


@pytest.mark.parametrize(
    "url",
    [
        "https://public.example/hook",
        "https://public.example:8443/hook?customer=7",
        "HTTPS://public.example/hook",
        "https://1.1.1.1/hook",
        "https://[2606:4700:4700::1111]/hook",
        "https://not-set-up-yet.example/hook",
    ],
)
async def test_a_public_url_is_taken_and_so_is_a_name_that_is_not_set_up_yet(url: str) -> None:
    assert await reach_errors(DestinationGuard(lookup=lookup), url) == []


@pytest.mark.parametrize(
    "url",
    [
        "http://public.example/hook",
        "ftp://public.example/hook",
        "public.example/hook",
        "https:///hook",
        "https://both.example/hook",
        "https://inside.example/hook",
        "https://mapped.example/hook",
        "https://metadata.example/hook",
        "https://127.0.0.1/hook",
        "https://2130706433/hook",
        "https://0177.0.0.1/hook",
        "https://0x7f000001/hook",
        "https://[::1]/hook",
        "https://[::ffff:10.0.0.1]/hook",
        "https://localhost/hook",
        "https://router.local/hook",
        "https://user:p@ss@public.example\\@inside.example/hook",
        "https://public.example:0/hook",
        "https://public.example/a b",
        "",
    ],
)
async def test_what_is_not_https_or_leads_inside_is_refused_by_field(url: str) -> None:
    (error,) = await reach_errors(DestinationGuard(lookup=lookup), url)
    assert error.field == "url"
    assert error.message and not error.message.startswith("url")


@pytest.mark.parametrize("develops", [False, True])
async def test_the_refusal_names_the_schemes_in_the_same_words_on_every_server(develops: bool) -> None:
    (error,) = await reach_errors(DestinationGuard(develops, lookup=lookup), "ftp://public.example/hook")
    wanted = f"https://; a server for development takes http:// with {PRIVATE_SETTING}"
    assert error.message == f"must be a URL that starts with {wanted}"


async def test_a_server_for_development_takes_its_own_network_and_plain_http() -> None:
    guard = DestinationGuard(True, lookup=lookup)
    assert await reach_errors(guard, "http://127.0.0.1:9000/hook") == []
    assert await reach_errors(guard, "https://inside.example/hook") == []
    assert [error.field for error in await reach_errors(guard, "https://metadata.example/hook")] == ["url"]


async def test_a_name_server_that_is_silent_does_not_keep_the_customer_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()

    def silent(host: str, port: int) -> Sequence[tuple[Any, ...]]:
        answers.wait()
        return [("10.0.0.1", port)]

    monkeypatch.setattr(subscriptions, "_RESOLVE_S", 0.05)
    try:
        assert await reach_errors(DestinationGuard(lookup=silent), "https://silent.example/") == []
    finally:
        answers.set()
