"""Resolving what customers name: on threads of its own, shared, bounded, judged."""

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from callcontrol.egress.aio import resolver as destinations
from callcontrol.egress.aio.connector import CheckedResolver
from callcontrol.egress.aio.resolver import DestinationGuard
from callcontrol.errors import DestinationForbidden
from tests.support.waiting import until


class Lookups:
    """A system resolver that can be held up."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses
        self.asked: list[str] = []
        self.release = threading.Event()
        self.release.set()

    def __call__(self, host: str, port: int) -> list[tuple[str, int]]:
        self.asked.append(host)
        self.release.wait()
        if not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(address, port) for address in self.addresses]


@pytest.fixture
def held() -> Iterator[Lookups]:
    lookups = Lookups("93.184.215.14")
    lookups.release.clear()
    yield lookups
    lookups.release.set()


async def test_all_addresses_are_returned() -> None:
    guard = DestinationGuard(lookup=Lookups("93.184.215.14", "2606:2800:21f::1"))
    assert await guard.resolve("hooks.example.com", 443, True) == [
        ("93.184.215.14", 443),
        ("2606:2800:21f::1", 443),
    ]


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1", "fe80::1%eth0", "::ffff:10.0.0.1"])
async def test_one_private_address_among_others_refuses_the_host(address: str) -> None:
    guard = DestinationGuard(lookup=Lookups("93.184.215.14", address))
    with pytest.raises(DestinationForbidden) as refusal:
        await guard.resolve("hooks.example.com", 443, True)
    assert address not in refusal.value.message


async def test_addresses_are_not_looked_up() -> None:
    lookups = Lookups()
    guard = DestinationGuard(True, lookup=lookups)
    assert await guard.resolve("0x7f.1", 80, False) == [("127.0.0.1", 80)]
    assert await guard.resolve("::1", 80, False) == [("::1", 80, 0, 0)]
    with pytest.raises(DestinationForbidden):
        await guard.resolve("0xa9fea9fe", 80, False)
    assert lookups.asked == []


async def test_those_who_ask_for_one_host_share_a_lookup(held: Lookups) -> None:
    guard = DestinationGuard(lookup=held)
    asking = [asyncio.create_task(guard.resolve("hooks.example.com", 443, True)) for _ in range(20)]
    await asyncio.sleep(0)
    asking[0].cancel()
    held.release.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1:] == [[("93.184.215.14", 443)]] * 19
    assert held.asked == ["hooks.example.com"]
    await guard.resolve("hooks.example.com", 443, True)
    assert len(held.asked) == 2


async def test_silent_name_servers_neither_block_others_nor_pile_up(
    held: Lookups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(destinations, "_RESOLVE_TIMEOUT_S", 0.05)
    guard = DestinationGuard(lookup=held)
    hosts = [f"hooks.silent-{number}.com" for number in range(256)]
    found = await asyncio.gather(*[guard.resolve(host, 443, True) for host in hosts], return_exceptions=True)
    assert all(isinstance(error, OSError) and "did not resolve" in str(error) for error in found)
    with pytest.raises(OSError, match="too many"):
        await guard.resolve("one-more.example.com", 443, True)
    # The event loop's own threads are free all the while.
    assert await asyncio.to_thread(lambda: 1) == 1
    held.release.set()
    await until(lambda: not guard._lookups)
    assert await guard.resolve("one-more.example.com", 443, True) == [("93.184.215.14", 443)]


@pytest.mark.parametrize("domain", ["example.com", "example.co.in"])
async def test_silent_name_servers_of_one_domain_hold_up_no_other(
    held: Lookups, monkeypatch: pytest.MonkeyPatch, domain: str
) -> None:
    monkeypatch.setattr(destinations, "_RESOLVE_TIMEOUT_S", 0.05)
    guard = DestinationGuard(lookup=held)
    hosts = [f"silent-{number}.{domain}" for number in range(50)]
    found = await asyncio.gather(*[guard.resolve(host, 443, True) for host in hosts], return_exceptions=True)
    assert sum("too many" in str(error) for error in found) == 34
    assert len(held.asked) == 16
    monkeypatch.setattr(destinations, "_RESOLVE_TIMEOUT_S", 20.0)
    other = asyncio.create_task(guard.resolve(domain.replace("example", "another"), 443, True))
    await asyncio.sleep(0)
    held.release.set()
    assert await other == [("93.184.215.14", 443)]
    await until(lambda: not guard._lookups)


async def test_names_that_do_not_resolve_are_errors_of_the_system() -> None:
    guard = DestinationGuard(lookup=Lookups())
    with pytest.raises(socket.gaierror):
        await guard.resolve("hooks.example.com", 443, True)
    with pytest.raises(OSError, match="not a host name"):
        await DestinationGuard().resolve("a" * 300 + ".example.com", 443, True)


async def test_the_resolver_says_why_it_refuses() -> None:
    resolver = CheckedResolver(DestinationGuard(lookup=Lookups("10.0.0.1")))
    with pytest.raises(OSError, match="private") as refusal:
        await resolver.resolve("hooks.example.com", 443)
    assert "private" in (refusal.value.strerror or "")
    await resolver.close()
