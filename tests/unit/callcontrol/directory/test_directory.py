from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from callcontrol.directory.directory import Changes, Directory, plain_address
from callcontrol.models import Account, Binding, Carrier, Gateway, PhoneNumber

NOW = datetime(2026, 8, 1, tzinfo=UTC)


def carrier(sid: str, owner: str | None = None, **fields: object) -> Carrier:
    return replace(Carrier(sid, owner, sid, NOW, NOW), **fields)  # type: ignore[arg-type]


def gateway(sid: str, of: str, host: str, **fields: object) -> Gateway:
    return replace(Gateway(sid, of, host, NOW, NOW), **fields)  # type: ignore[arg-type]


def number(e164: str, owner: str = "a", **fields: object) -> PhoneNumber:
    return replace(PhoneNumber("id" + e164, owner, e164, NOW, NOW), **fields)  # type: ignore[arg-type]


def directory(
    carriers: list[Carrier], gateways: list[Gateway], numbers: list[PhoneNumber] | None = None
) -> Directory:
    made = Directory()
    made.apply(
        Changes(
            revision=1,
            accounts=[Account("a", "a", NOW, NOW)],
            numbers=[(item, True) for item in numbers or []],
            carriers=[(item, True) for item in carriers],
            gateways=[(item, True) for item in gateways],
        )
    )
    return made


def source(found: tuple[Carrier, Gateway] | None) -> str | None:
    return found[1].gateway_sid if found else None


def route(found: list[tuple[Carrier, Gateway]]) -> list[str]:
    return [item.gateway_sid for _, item in found]


def test_a_source_matches_by_host_and_port_then_host_then_narrowest_network() -> None:
    made = directory(
        [carrier("c")],
        [
            gateway("wide", "c", "192.0.2.0", netmask=16, outbound=False),
            gateway("narrow", "c", "192.0.2.0", netmask=24, outbound=False),
            gateway("host", "c", "192.0.2.10"),
            gateway("port", "c", "192.0.2.10", port=5070),
        ],
    )
    assert source(made.gateway_for_source("192.0.2.10", 5070)) == "port"
    assert source(made.gateway_for_source("192.0.2.10", 41_000)) == "host"
    assert source(made.gateway_for_source("192.0.2.99", 5060)) == "narrow"
    assert source(made.gateway_for_source("192.0.9.9", 5060)) == "wide"
    assert made.gateway_for_source("198.51.100.1", 5060) is None
    assert made.gateway_for_source("not an address", 5060) is None
    assert source(made.gateway_for_source("::ffff:192.0.2.10", 5060)) == "host"


def test_what_is_remembered_of_a_source_ends_with_a_change() -> None:
    made = directory([carrier("c")], [gateway("g", "c", "192.0.2.10")])
    assert source(made.gateway_for_source("192.0.2.10", 5060)) == "g"
    assert made.gateway_for_source("192.0.2.11", 5060) is None
    moved = gateway("g", "c", "192.0.2.11")
    made.apply(Changes(revision=2, gateways=[(moved, True)]))
    assert made.gateway_for_source("192.0.2.10", 5060) is None
    assert source(made.gateway_for_source("192.0.2.11", 5060)) == "g"
    made.apply(Changes(revision=3, carriers=[(carrier("c", name="Renamed"), True)]))
    assert [found.name for found, _ in made.gateways_at("192.0.2.11", 5060)] == ["Renamed"] * 2


def test_many_sources_are_not_remembered_for_ever() -> None:
    made = directory([carrier("c")], [gateway("g", "c", "192.0.2.10")])
    for port in range(1, 6000):
        made.gateways_at("198.51.100.1", port)
    assert len(made._at) <= 4096
    assert source(made.gateway_for_source("192.0.2.10", 5060)) == "g"


def test_an_account_that_adds_anothers_address_shuts_nobody_out() -> None:
    """However exactly a stranger's gateway matches: for a number of account a only a's and ours count."""
    made = directory(
        [carrier("ours"), carrier("a's", "a"), carrier("stranger's", "s")],
        [
            gateway("ours", "ours", "192.0.2.10", priority=1),
            gateway("a's", "a's", "192.0.3.0", netmask=24, outbound=False),
            gateway("host", "stranger's", "192.0.2.10"),
            gateway("port", "stranger's", "192.0.2.10", port=41_000),
            gateway("in the network", "stranger's", "192.0.3.7"),
        ],
    )
    for port in (5060, 41_000, 50_000):
        assert source(made.gateway_for_source("192.0.2.10", port, "a")) == "ours"
        assert source(made.gateway_for_source("192.0.3.7", port, "a")) == "a's"
    assert source(made.gateway_for_source("192.0.2.10", 41_000, "s")) == "port"
    assert made.gateway_for_source("192.0.3.9", 5060, "s") is None


def test_an_ipv6_source_matches_however_it_is_written() -> None:
    made = directory([carrier("c")], [gateway("six", "c", "2001:db8:0:0::1")])
    assert source(made.gateway_for_source("2001:db8::1", 5060)) == "six"


def test_outbound_only_inactive_and_deleted_gateways_are_no_sources() -> None:
    made = directory(
        [carrier("c"), carrier("off", is_active=False)],
        [
            gateway("out", "c", "192.0.2.1", inbound=False),
            gateway("idle", "c", "192.0.2.2", is_active=False),
            gateway("off", "off", "192.0.2.3"),
            gateway("gone", "c", "192.0.2.4"),
        ],
    )
    assert source(made.gateway_for_source("192.0.2.4", 5060)) == "gone"
    made.apply(Changes(revision=2, gateways=[(gateway("gone", "c", "192.0.2.4"), False)]))
    assert [made.gateway_for_source(f"192.0.2.{last}", 5060) for last in (1, 2, 3, 4)] == [None] * 4


def test_a_named_host_matches_by_what_it_resolves_to() -> None:
    made = directory([carrier("c")], [gateway("named", "c", "SIP.example.com")])
    assert made.named_hosts() == ["sip.example.com"]
    assert made.gateway_for_source("192.0.2.7", 5060) is None
    made.set_addresses({"sip.example.com": ["192.0.2.7", "192.0.2.8"]})
    assert source(made.gateway_for_source("192.0.2.8", 5060)) == "named"


def test_numbers_are_found_with_their_binding_and_may_move() -> None:
    binding = Binding(target="forward", forward_to="+919800000001")
    made = directory([], [], [number("+911", binding=binding), number("+912")])
    assert made.number("+911") == number("+911", binding=binding)
    assert made.number("+912") == number("+912")
    assert made.number("+913") is None
    released = number("+911")
    bought = replace(released, phone_number_id="new", account_sid="b")
    # The new owner's row may be read before the old owner's deletion.
    made.apply(Changes(revision=2, numbers=[(bought, True), (released, False)]))
    found = made.number("+911")
    assert found is not None
    assert found.account_sid == "b"


def test_platform_numbers_leave_through_the_platform_own_numbers_through_own_carriers() -> None:
    made = directory(
        [carrier("p"), carrier("own", "a"), carrier("own2", "a"), carrier("foreign", "b")],
        [
            gateway("p2", "p", "192.0.2.2", priority=2),
            gateway("p1", "p", "192.0.2.1", priority=1),
            gateway("in", "p", "192.0.2.3", outbound=False),
            gateway("own", "own", "192.0.2.4", priority=9),
            gateway("own2", "own2", "192.0.2.5"),
            gateway("foreign", "foreign", "192.0.2.6"),
        ],
        [number("+911"), number("+912", carrier_sid="own")],
    )
    assert route(made.outbound_route("a", "+911")) == ["p1", "p2"]
    # The number's own carrier comes first, whatever its priority.
    assert route(made.outbound_route("a", "+912")) == ["own", "own2"]
    assert route(made.outbound_route("b", "+912")) == ["p1", "p2"]
    assert route(made.outbound_route("a", "+911", "own2")) == ["own2"]
    assert route(made.outbound_route("a", "+911", "p")) == ["p1", "p2"]
    assert route(made.outbound_route("a", "+911", "foreign")) == []
    assert route(made.outbound_route("a", "+911", "nowhere")) == []


def test_the_share_of_calls_follows_the_weights() -> None:
    made = directory(
        [carrier("p")],
        [
            gateway("heavy", "p", "192.0.2.1", weight=6),
            gateway("light", "p", "192.0.2.2", weight=3),
            gateway("least", "p", "192.0.2.3", weight=1),
            gateway("spare", "p", "192.0.2.4", weight=0),
        ],
    )
    routes = [route(made.outbound_route("a", "+911")) for _ in range(1000)]
    assert all(sorted(item) == ["heavy", "least", "light", "spare"] for item in routes)
    assert all(item[-1] == "spare" for item in routes)
    first = Counter(item[0] for item in routes)
    assert abs(first["heavy"] - 600) < 15
    assert abs(first["light"] - 300) < 15
    # Even over a few calls no gateway is starved.
    assert {item[0] for item in routes[:12]} == {"heavy", "light", "least"}


def test_a_carrier_with_prefixes_serves_those_alone() -> None:
    made = directory(
        [
            carrier("all"),
            carrier("mobile", prefixes=("+919", "+917")),
            carrier("test", prefixes=("+91980000000",)),
        ],
        [gateway(name, name, f"192.0.2.{n}") for n, name in enumerate(("all", "mobile", "test"), 1)],
    )
    assert route(made.outbound_route("a", "+911", to_number="+918047491899")) == ["all"]
    assert route(made.outbound_route("a", "+911", to_number="+919876543210")) == ["mobile"]
    assert route(made.outbound_route("a", "+911", to_number="+919800000001")) == ["test"]
    assert route(made.outbound_route("a", "+911")) == ["all"]
    lonely = directory([carrier("m", prefixes=("+919",))], [gateway("m", "m", "192.0.2.1")])
    assert route(lonely.outbound_route("a", "+911", to_number="+12025550100")) == []


def test_a_gateway_is_found_by_its_host_for_its_owner_and_the_platform() -> None:
    made = directory(
        [carrier("p"), carrier("b", "b")],
        [gateway("p", "p", "sip.example.com", port=5070), gateway("b", "b", "192.0.2.9")],
    )
    assert source(made.gateway_for_host("a", "SIP.example.com")) == "p"
    assert source(made.gateway_for_host("a", "sip.example.com", 5070)) == "p"
    assert made.gateway_for_host("a", "sip.example.com", 5060) is None
    assert made.gateway_for_host("a", "192.0.2.9") is None
    assert source(made.gateway_for_host("b", "192.0.2.9", 5060)) == "b"


def test_ties_do_not_depend_on_the_order_of_loading() -> None:
    older = gateway("z", "c", "192.0.2.1", created_at=NOW)
    newer = gateway("a", "c", "192.0.2.1", created_at=NOW + timedelta(seconds=1))
    for order in ([older, newer], [newer, older]):
        assert source(directory([carrier("c")], order).gateway_for_source("192.0.2.1", 1)) == "z"


@pytest.mark.parametrize("text", ["", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "1.2.3.4.5", "::g"])
def test_only_plain_addresses_are_addresses(text: str) -> None:
    assert plain_address(text) is None
