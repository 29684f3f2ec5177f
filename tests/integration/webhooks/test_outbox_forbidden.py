"""Receivers that must not be connected to, however they are named."""

import socket
from typing import Any

import pytest

from callcontrol.egress.aio.resolver import DestinationGuard
from callcontrol.webhooks.retries import OFFSETS_S
from tests.support.webhook_stage import (
    FAST,
    SLOW,
    Receiver,
    Stage,
    statuses,
)


def answering(*addresses: str) -> Any:
    """A resolver that gives one address after the other, the last one for ever."""
    left = list(addresses)

    def lookup(host: str, port: int) -> list[tuple[str, int]]:
        return [(left.pop(0) if len(left) > 1 else left[0], port)]

    return lookup


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "0x7f.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "１２７.０.０.１"],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_private_destinations_are_refused(
    stage: Stage, receiver: Receiver, scheme: str, host: str
) -> None:
    await stage.start(SLOW, destinations=DestinationGuard(False))
    row = await stage.attempted(await stage.post(f"{scheme}://{host}:{receiver.port}/hook"))
    assert (row.status, row.response_code) == ("pending", 0)
    assert row.last_error
    assert receiver.connections == 0


async def test_names_of_private_addresses_are_refused(stage: Stage, receiver: Receiver) -> None:
    guard = DestinationGuard(False, lookup=answering("127.0.0.1"))
    await stage.start(SLOW, destinations=guard)
    url = f"https://hooks.example.com:{receiver.port}/hook"
    row = await stage.attempted(await stage.post(url))
    assert row.last_error is not None
    assert "hooks.example.com is a loopback address" in row.last_error
    assert receiver.connections == 0


async def test_a_name_that_is_rebound_is_not_followed(stage: Stage, receiver: Receiver) -> None:
    # The first answer may be connected to, the second may not even with allow_private.
    receiver.answers["/hook"] = statuses(500, headers={"Connection": "close"})
    guard = DestinationGuard(True, lookup=answering("127.0.0.1", "169.254.169.254"))
    await stage.start(destinations=guard)
    url = f"http://hooks.example.com:{receiver.port}/hook"
    (row,) = await stage.ended(await stage.post(url))
    assert (row.status, row.attempts, row.response_code) == ("failed", 8, 0)
    assert row.last_error is not None
    assert "link-local" in row.last_error
    assert receiver.connections == 1


class Deceived:
    """Judges names and then lets a resolver's answers through, as a guard with a gap would."""

    allow_private = True

    def __init__(self, forbidden: str) -> None:
        self._strict = DestinationGuard(False)
        self._forbidden = forbidden

    def check_url(self, url: str, *, schemes: Any) -> None:
        self._strict.check_url(url, schemes=schemes)

    async def resolve(self, host: str, port: int, tls: bool) -> list[Any]:
        return [(self._forbidden, port)]


async def test_every_socket_is_judged_before_it_is_opened(stage: Stage, receiver: Receiver) -> None:
    await stage.start(SLOW, destinations=Deceived("127.0.0.1"))
    for run in range(50):
        url = f"https://hooks-{run}.example.com:{receiver.port}/hook"
        row = await stage.attempted(await stage.post(url, f"call-{run}"))
        assert row.last_error is not None
        assert "is a loopback address" in row.last_error
    assert receiver.connections == 0


async def test_a_name_that_does_not_resolve(stage: Stage) -> None:
    def lookup(host: str, port: int) -> list[tuple[str, int]]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    await stage.start(SLOW, destinations=DestinationGuard(True, lookup=lookup))
    row = await stage.attempted(await stage.post("http://hooks.example.com/hook"))
    assert row.last_error is not None
    assert row.last_error == "the host name does not resolve"


async def test_the_fast_schedule_has_as_many_attempts_as_the_real_one() -> None:
    assert len(FAST.offsets_s) == len(OFFSETS_S)
