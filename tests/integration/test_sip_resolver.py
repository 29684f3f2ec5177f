"""Looking up peers by a real name server: remembered, shared, bounded, and never holding up the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sip.aio import dns_client, resolver
from sip.aio.dns_client import DnsAnswer, DnsUnavailable, HostsFile
from sip.aio.resolver import MAX_QUESTIONS, Resolver, is_address, is_private
from sip.location.rfc3263 import Destination, DnsQuery, Target
from tests.support.dns_server import DnsServer, Mode
from tests.support.waiting import holds_for

pytestmark = pytest.mark.real_time(reason="a name server in a thread of its own")


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[DnsServer]:
    with DnsServer() as running:
        running.add("gw.test", "A", "192.0.2.1")
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def names(server: DnsServer, clock: Clock, tmp_path: Path) -> Iterator[Resolver]:
    made = Resolver([server.address], hosts=HostsFile(tmp_path / "hosts"), time=clock)
    yield made
    made.close()


async def found(
    names: Resolver, host: str = "gw.test", port: int = 5060, transport: str | None = "udp"
) -> list[str]:
    """The targets of a name, as `transport:host:port`."""
    future: asyncio.Future[Sequence[Target]] = asyncio.get_running_loop().create_future()
    names.locate(Destination(transport, host, port), future.set_result)
    return [f"{item.transport}:{item.host}:{item.port}" for item in await future]


async def test_one_question_serves_all_who_ask_and_is_remembered(server: DnsServer, names: Resolver) -> None:
    both = await asyncio.gather(found(names), found(names))
    assert both[0] == both[1] == ["udp:192.0.2.1:5060"]
    at_once: list[Sequence[Target]] = []
    names.locate(Destination("udp", "GW.test.", 5070), at_once.append)
    assert at_once and at_once[0][0].port == 5070
    assert server.asked == ["gw.test A"]


async def test_an_answer_is_true_for_its_time(server: DnsServer, names: Resolver, clock: Clock) -> None:
    server.add("gw.test", "A", "192.0.2.1", ttl=20)
    await found(names)
    server.add("gw.test", "A", "192.0.2.2", ttl=20)
    clock.now += 19
    assert await found(names) == ["udp:192.0.2.1:5060"]
    clock.now += 2
    assert await found(names) == ["udp:192.0.2.2:5060"]


async def test_times_to_live_are_kept_within_bounds(server: DnsServer, names: Resolver, clock: Clock) -> None:
    server.add("brief.test", "A", "192.0.2.1", ttl=0)
    server.add("long.test", "A", "192.0.2.1", ttl=10_000_000)
    for host in ("brief.test", "long.test"):
        await found(names, host)
        await found(names, host)
        assert server.count(f"{host} A") == 1
    clock.now += resolver.MAX_TTL_S + 1
    await found(names, "long.test")
    assert server.count("long.test A") == 2


async def test_a_missing_name_is_remembered_by_the_zones_minimum(
    server: DnsServer, names: Resolver, clock: Clock
) -> None:
    server.negative_ttl = 40
    assert await found(names, "gone.test") == []
    server.add("gone.test", "A", "192.0.2.9")
    clock.now += 39
    assert await found(names, "gone.test") == []
    clock.now += 2
    assert await found(names, "gone.test") == ["udp:192.0.2.9:5060"]


async def test_a_negative_answer_never_lasts_for_hours(
    server: DnsServer, names: Resolver, clock: Clock
) -> None:
    server.negative_ttl = 86_400
    await found(names, "gone.test")
    clock.now += resolver.MAX_MISSING_S + 1
    await found(names, "gone.test")
    assert server.count("gone.test A") == 2


async def test_a_negative_answer_without_a_time_lasts_seconds(
    server: DnsServer, names: Resolver, clock: Clock
) -> None:
    server.negative_ttl = None
    await found(names, "gone.test")
    await found(names, "gone.test")
    assert server.count("gone.test A") == 1
    clock.now += resolver.UNKNOWN_MISSING_S + 1
    await found(names, "gone.test")
    assert server.count("gone.test A") == 2


async def test_services_are_found_with_naptr_and_srv(server: DnsServer, names: Resolver) -> None:
    names.families = {"udp": (4,), "tcp": (4,)}
    server.add(
        "trunk.test",
        "NAPTR",
        '10 50 "s" "SIP+D2U" "" _sip._udp.trunk.test.',
        '10 20 "s" "SIP+D2T" "" _sip._tcp.else.test.',
    )
    server.add("_sip._tcp.else.test", "SRV", "10 0 5082 a.test.")
    server.add("_sip._udp.trunk.test", "SRV", "20 0 5081 a.test.", "10 0 5080 b.test.")
    server.add("a.test", "A", "192.0.2.1")
    server.add("b.test", "A", "192.0.2.2")
    assert await found(names, "trunk.test", 0, None) == [
        "tcp:192.0.2.1:5082",
        "udp:192.0.2.2:5080",
        "udp:192.0.2.1:5081",
    ]


async def test_aliases_are_followed_and_loops_of_them_end(server: DnsServer, names: Resolver) -> None:
    server.add("alias.test", "CNAME", "gw.test.")
    assert await found(names, "alias.test") == ["udp:192.0.2.1:5060"]
    server.add("one.test", "CNAME", "two.test.")
    server.add("two.test", "CNAME", "one.test.")
    assert await found(names, "one.test") == []


async def test_a_truncated_answer_is_asked_for_again_over_tcp(server: DnsServer, names: Resolver) -> None:
    server.mode = "truncated"
    assert await found(names) == ["udp:192.0.2.1:5060"]
    assert server.asked == ["gw.test A", "gw.test A/tcp"]


@pytest.mark.parametrize("mode", ["silent", "failing", "garbage"])
async def test_what_was_known_serves_on_when_no_sense_comes_back(
    mode: Mode, server: DnsServer, names: Resolver, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dns_client, "TRY_LIMIT_S", 0.1)
    monkeypatch.setattr(dns_client, "QUESTION_LIMIT_S", 0.3)
    await found(names)
    server.mode = mode
    clock.now += 61
    assert await found(names) == ["udp:192.0.2.1:5060"]
    asked = len(server.asked)
    assert await found(names) == ["udp:192.0.2.1:5060"]
    assert len(server.asked) == asked, "a server in trouble is not asked again at once"
    clock.now += resolver.STALE_FOR_S + 1
    assert await found(names) == [], "an old answer does not serve for ever"
    server.mode = "well"
    clock.now += resolver.FAILED_FOR_S + 1
    assert await found(names) == ["udp:192.0.2.1:5060"]


async def test_a_slow_server_costs_a_lookup_its_limit_and_helps_the_next(
    server: DnsServer, names: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "LOOKUP_LIMIT_S", 0.05)
    server.delay_s = 0.4
    assert await found(names) == []
    monkeypatch.setattr(resolver, "LOOKUP_LIMIT_S", 4.0)
    assert await found(names) == ["udp:192.0.2.1:5060"]
    assert server.count("gw.test A") == 1


async def test_the_hosts_file_and_localhost_need_no_server(
    server: DnsServer, names: Resolver, clock: Clock, tmp_path: Path
) -> None:
    assert await found(names, "localhost") == ["udp:127.0.0.1:5060"]
    (tmp_path / "hosts").write_text("192.0.2.7 pbx.home pbx # ours\nnonsense\n2001:db8::1 pbx\n")
    clock.now += 6
    assert await found(names, "pbx") == ["udp:192.0.2.7:5060"]
    names.families = {"udp": (6, 4)}
    assert await found(names, "pbx") == ["udp:2001:db8::1:5060", "udp:192.0.2.7:5060"]
    assert server.asked == []


async def test_all_addresses_a_named_peer_may_call_from(server: DnsServer, names: Resolver) -> None:
    server.add("_sip._udp.gw.test", "SRV", "10 0 5080 a.test.")
    server.add("a.test", "A", "192.0.2.2")
    server.add("a.test", "AAAA", "2001:db8::2")
    assert set(await names.addresses("gw.test")) == {"192.0.2.1", "192.0.2.2", "2001:db8::2"}
    assert await names.addresses("nobody.test") == ()


class DeadServer:
    """Never answers."""

    async def ask(self, question: DnsQuery) -> DnsAnswer:
        await asyncio.Event().wait()
        raise DnsUnavailable


async def test_a_dead_server_holds_a_bounded_number_of_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolver, "LOOKUP_LIMIT_S", 0.1)
    names = Resolver(asker=DeadServer(), hosts=HostsFile(tmp_path / "hosts"))
    told: list[Sequence[Target]] = []
    names.locate(Destination("udp", "192.0.2.1", 5060), told.append)
    assert len(told) == 1, "an address needs no server"
    async with asyncio.timeout(40):
        results = await asyncio.gather(
            *(found(names, f"host{number}.test") for number in range(MAX_QUESTIONS + 30))
        )
    assert not any(results)
    names.close()


async def test_nobody_is_told_after_the_end(tmp_path: Path) -> None:
    names = Resolver(asker=DeadServer(), hosts=HostsFile(tmp_path / "hosts"))
    told: list[Sequence[Target]] = []
    names.locate(Destination("udp", "host.test", 5060), told.append)
    await asyncio.sleep(0)
    names.close()
    await holds_for(0.02, lambda: not told)


async def test_names_no_server_can_be_asked_are_not_found(names: Resolver) -> None:
    for host in ("a" * 64 + ".test", ".".join(["abcdefgh"] * 40), "ö" * 70, "a..b"):
        assert await found(names, host) == []


def test_literals() -> None:
    assert is_address("192.0.2.1")
    assert is_address("2001:db8::1")
    assert not is_address("gw.example.net")
    assert is_private("10.0.0.1")
    assert not is_private("8.8.8.8")
    assert not is_private("gw.example.net")
