"""Checks of destinations: the one address of this server's own that streams may reach."""

from __future__ import annotations

import pytest

from callcontrol.egress.aio.resolver import DestinationGuard
from callcontrol.egress.url_policy import HOOK_SCHEMES, SOCKET_SCHEMES, STREAM_SCHEMES, WEB_SCHEMES
from callcontrol.errors import DestinationForbidden, DomainError, ValidationFailed

OWN = "ws://127.0.0.1:40123/echo"


@pytest.fixture
def guard() -> DestinationGuard:
    made = DestinationGuard(lookup=lambda host, port: [("127.0.0.1", port)])
    with pytest.raises(DestinationForbidden):
        made.check_url(OWN, schemes=STREAM_SCHEMES)
    made.permit(OWN)
    return made


async def test_streams_reach_what_is_permitted(guard: DestinationGuard) -> None:
    guard.check_url(OWN, schemes=STREAM_SCHEMES)
    assert await guard.resolve("127.0.0.1", 40123, False) == [("127.0.0.1", 40123)]


@pytest.mark.parametrize(
    ("url", "schemes"),
    [
        (OWN, WEB_SCHEMES),
        # Webhooks over a socket are no streams.
        (OWN, HOOK_SCHEMES),
        (OWN, SOCKET_SCHEMES),
        ("ws://127.0.0.1:40123/other", STREAM_SCHEMES),
        ("ws://127.0.0.1:40124/echo", STREAM_SCHEMES),
        ("wss://127.0.0.1:40123/echo", STREAM_SCHEMES),
        ("ws://user@127.0.0.1:40123/echo", STREAM_SCHEMES),
        ("ws://127.1:40123/echo", STREAM_SCHEMES),
        ("https://127.0.0.1:40123/echo", WEB_SCHEMES),
    ],
)
async def test_nothing_else_there_is_reached(
    guard: DestinationGuard, url: str, schemes: tuple[str, ...]
) -> None:
    with pytest.raises((DestinationForbidden, ValidationFailed)):
        guard.check_url(url, schemes=schemes)


@pytest.mark.parametrize(
    ("host", "port", "tls"),
    [
        ("127.0.0.1", 40124, False),
        ("127.0.0.1", 40123, True),
        # A name of somebody's that leads there.
        ("localhost.example.com", 40123, False),
        ("::1", 40123, False),
    ],
)
async def test_no_other_host_is_resolved(guard: DestinationGuard, host: str, port: int, tls: bool) -> None:
    with pytest.raises(DomainError):
        await guard.resolve(host, port, tls)
