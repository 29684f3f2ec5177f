"""Looking up the names of peers: shared, remembered, bounded, and never holding up the loop."""

import asyncio
import socket
from typing import Any

import pytest

from sip.aio.resolver import MAX_LOOKUPS, Resolver, is_address, is_private


class SlowNames:
    """Stands in for the system's resolver: answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.release = asyncio.Event()
        self.answers: dict[str, list[tuple[int, str]]] = {}

    async def getaddrinfo(self, host: str, port: object, **_: object) -> list[Any]:
        self.asked.append(host)
        await self.release.wait()
        if host not in self.answers:
            raise socket.gaierror("unknown")
        return [(family, None, None, "", (address, 0)) for family, address in self.answers[host]]


@pytest.fixture
async def names(monkeypatch: pytest.MonkeyPatch) -> SlowNames:
    names = SlowNames()
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", names.getaddrinfo, raising=False)
    return names


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_one_query_serves_all_who_ask_and_is_remembered(names: SlowNames) -> None:
    names.answers["gw"] = [(socket.AF_INET, "192.0.2.1")]
    resolver, found = Resolver(), list[str | None]()
    resolver.find("gw", found.append)
    resolver.find("gw", found.append)
    await settle()
    assert found == []
    names.release.set()
    await settle()
    assert found == ["192.0.2.1", "192.0.2.1"]
    resolver.find("gw", found.append)
    assert len(found) == 3, "at once"
    assert names.asked == ["gw"]


async def test_bad_news_is_remembered_too(names: SlowNames) -> None:
    resolver, found = Resolver(), list[str | None]()
    names.release.set()
    resolver.find("gone", found.append)
    await settle()
    resolver.find("gone", found.append)
    assert found == [None, None]
    assert names.asked == ["gone"]


async def test_the_family_of_our_sockets_is_chosen(names: SlowNames) -> None:
    names.answers["gw"] = [(socket.AF_INET6, "2001:db8::1"), (socket.AF_INET, "192.0.2.1")]
    names.release.set()
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        resolver, found = Resolver(), list[str | None]()
        resolver.families = frozenset((family,))
        resolver.find("gw", found.append)
        await settle()
        assert found == [address]


async def test_a_dead_name_server_holds_a_bounded_number_of_lookups(names: SlowNames) -> None:
    resolver, found = Resolver(), list[str | None]()
    for number in range(MAX_LOOKUPS + 3):
        resolver.find(f"host{number}", found.append)
    assert found == [None] * 3
    await settle()
    resolver.close()
    await settle()
    assert len(found) == 3, "nobody is told after the end"


def test_literals() -> None:
    assert is_address("192.0.2.1")
    assert is_address("2001:db8::1")
    assert not is_address("gw.example.net")
    assert is_private("10.0.0.1")
    assert not is_private("8.8.8.8")
    assert not is_private("gw.example.net")
