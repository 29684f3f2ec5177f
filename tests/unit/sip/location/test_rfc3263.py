"""Finding servers (RFC 3263 4): what is asked, in what order, and where it leads."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip import SipUri
from sip.location.rfc3263 import (
    MAX_HOSTS,
    MAX_TARGETS,
    Destination,
    DnsQuery,
    Kind,
    Lookup,
    Naptr,
    Records,
    Srv,
    SupportedFamilies,
    locate,
    order_srv,
    sources,
)

ALL: SupportedFamilies = {"udp": (4,), "tcp": (4,), "tls": (4,)}
Zone = Mapping[tuple[str, str], Records]


class Walk:
    """A generator of questions answered from a zone."""

    def __init__(self, steps: Lookup, zone: Zone) -> None:
        self.asked: list[list[str]] = []
        self.targets: list[str] = []
        self.names: set[str] = set()
        try:
            questions = next(steps)
            while True:
                self.asked.append([f"{kind.value} {name}" for kind, name in questions])
                questions = steps.send(
                    {item: zone[(item.name, item.kind.value)] for item in questions if self._has(zone, item)}
                )
        except StopIteration as end:
            self.targets = [f"{item.transport}:{item.host}:{item.port}" for item in end.value]
            self.names = {item.name for item in end.value}

    @staticmethod
    def _has(zone: Zone, item: DnsQuery) -> bool:
        return (item.name, item.kind.value) in zone


def low(least: float, _: float) -> float:
    return least


def walk(wanted: Destination | str, zone: Zone | None = None, reach: SupportedFamilies = ALL) -> Walk:
    if isinstance(wanted, str):
        wanted = Destination.of(SipUri.parse(wanted))
    return Walk(locate(wanted, reach, low), zone or {})


def naptr(order: int, preference: int, service: str, to: str, flags: str = "s", regexp: str = "") -> Naptr:
    return Naptr(order, preference, flags, service, regexp, to)


HOSTS: dict[tuple[str, str], Records] = {
    ("a.test", "A"): ["192.0.2.1"],
    ("b.test", "A"): ["192.0.2.2"],
    ("x.test", "A"): ["192.0.2.9"],
}


@pytest.mark.parametrize(
    ("uri", "target"),
    [
        ("sip:192.0.2.5", "udp:192.0.2.5:5060"),
        ("sip:192.0.2.5:5070", "udp:192.0.2.5:5070"),
        ("sip:192.0.2.5;transport=tcp", "tcp:192.0.2.5:5060"),
        ("sip:192.0.2.5;transport=TLS", "tls:192.0.2.5:5061"),
        ("sips:192.0.2.5", "tls:192.0.2.5:5061"),
        ("sips:192.0.2.5:5071;transport=tcp", "tls:192.0.2.5:5071"),
        ("sip:x.test;maddr=192.0.2.6", "udp:192.0.2.6:5060"),
    ],
)
def test_an_address_asks_nothing(uri: str, target: str) -> None:
    result = walk(uri)
    assert (result.asked, result.targets) == ([], [target])


@pytest.mark.parametrize(
    ("uri", "reach"),
    [
        ("sip:192.0.2.5;transport=sctp", ALL),
        ("sips:192.0.2.5;transport=udp", ALL),
        ("sips:x.test", {"udp": (4,)}),
        ("sip:x.test;transport=tls", {"udp": (4,)}),
        ("sip:[2001:db8::1]", ALL),
    ],
)
def test_what_we_cannot_send_to_has_no_target(uri: str, reach: SupportedFamilies) -> None:
    assert walk(uri, HOSTS, reach).targets == []


@pytest.mark.parametrize(
    ("uri", "target"),
    [("sip:x.test:5080", "udp:192.0.2.9:5080"), ("sips:x.test:5081", "tls:192.0.2.9:5081")],
)
def test_a_port_makes_it_a_matter_of_addresses(uri: str, target: str) -> None:
    result = walk(uri, HOSTS)
    assert (result.asked, result.targets) == ([["A x.test"]], [target])


def test_a_transport_is_looked_up_by_its_srv_records_alone() -> None:
    zone = {**HOSTS, ("_sip._tcp.x.test", "SRV"): [Srv(10, 0, 5082, "a.test")]}
    result = walk("sip:x.test;transport=tcp", zone)
    assert result.asked == [["SRV _sip._tcp.x.test"], ["A a.test"]]
    assert result.targets == ["tcp:192.0.2.1:5082"]
    assert result.names == {"x.test"}, "a certificate is for the name that was asked for"


def test_naptr_chooses_the_transport_by_order_and_preference() -> None:
    zone = {
        **HOSTS,
        ("x.test", "NAPTR"): [
            naptr(50, 1, "SIP+D2U", "_sip._udp.x.test"),
            naptr(20, 90, "SIP+D2U", "_sip._udp.other.test"),
            naptr(20, 10, "SIPS+D2T", "_sips._tcp.x.test"),
            naptr(10, 1, "SIP+D2S", "_sip._sctp.x.test"),
            naptr(10, 1, "SIP+D2T", "_bad.x.test", flags="u"),
            naptr(10, 1, "SIP+D2T", "", regexp="!.*!sip:x!"),
        ],
        ("_sips._tcp.x.test", "SRV"): [Srv(1, 0, 5061, "a.test")],
        ("_sip._udp.other.test", "SRV"): [Srv(1, 0, 5060, "b.test")],
        ("_sip._udp.x.test", "SRV"): [Srv(1, 0, 5060, "x.test")],
    }
    result = walk("sip:x.test", zone)
    assert result.targets == ["tls:192.0.2.1:5061", "udp:192.0.2.2:5060"]
    assert result.asked[1] == ["SRV _sip._udp.other.test"], "the others were asked for in the first round"


def test_a_sips_address_never_leads_to_anything_but_tls() -> None:
    zone = {
        **HOSTS,
        ("x.test", "NAPTR"): [naptr(1, 1, "SIP+D2U", "_sip._udp.x.test")],
        ("_sip._udp.x.test", "SRV"): [Srv(1, 0, 5060, "a.test")],
    }
    assert walk("sips:x.test", zone).targets == ["tls:192.0.2.9:5061"]


def test_without_naptr_the_srv_records_decide() -> None:
    zone = {
        **HOSTS,
        ("_sip._tcp.x.test", "SRV"): [Srv(1, 0, 5060, "a.test")],
        ("_sips._tcp.x.test", "SRV"): [Srv(1, 0, 5061, "b.test")],
    }
    assert walk("sip:x.test", zone).targets == ["tcp:192.0.2.1:5060"]
    assert walk("sip:x.test", zone, {"tls": (4,)}).targets == ["tls:192.0.2.2:5061"]


@pytest.mark.parametrize(
    ("uri", "target"),
    [
        ("sip:x.test", "udp:192.0.2.9:5060"),
        ("sips:x.test", "tls:192.0.2.9:5061"),
        ("sip:x.test;transport=tcp", "tcp:192.0.2.9:5060"),
    ],
)
def test_without_any_service_record_the_host_itself_is_the_server(uri: str, target: str) -> None:
    assert walk(uri, HOSTS).targets == [target]


def test_a_service_that_is_said_not_to_exist_is_not_guessed_at() -> None:
    zone = {**HOSTS, ("_sip._udp.x.test", "SRV"): [Srv(0, 0, 0, "")]}
    assert walk("sip:x.test", zone).targets == []
    assert walk("sip:x.test;transport=tcp", zone).targets == ["tcp:192.0.2.9:5060"]


def test_all_targets_come_in_order_each_once() -> None:
    zone: dict[tuple[str, str], Records] = {
        ("_sip._udp.x.test", "SRV"): [
            Srv(20, 0, 5060, "b.test"),
            Srv(10, 0, 5060, "a.test"),
            Srv(30, 0, 5060, "a.test"),
        ],
        ("a.test", "A"): ["192.0.2.1", "192.0.2.2", "not an address"],
        ("b.test", "A"): ["192.0.2.2", "192.0.2.3"],
    }
    assert walk("sip:x.test", zone).targets == [f"udp:192.0.2.{last}:5060" for last in (1, 2, 3)]


def test_addresses_of_both_kinds_in_the_order_we_prefer() -> None:
    zone = {("x.test", "A"): ["192.0.2.9"], ("x.test", "AAAA"): ["2001:db8::9"]}
    assert walk("sip:x.test:5060", zone, {"udp": (6, 4)}).targets == [
        "udp:2001:db8::9:5060",
        "udp:192.0.2.9:5060",
    ]
    assert walk("sip:x.test:5060", zone, {"udp": (4,)}).asked == [["A x.test"]]


def test_an_srv_record_may_name_an_address_against_the_rules() -> None:
    zone = {("_sip._udp.x.test", "SRV"): [Srv(0, 0, 5060, "192.0.2.4")]}
    assert walk("sip:x.test", zone).targets == ["udp:192.0.2.4:5060"]


def test_a_peer_may_call_from_all_its_services() -> None:
    zone: dict[tuple[str, str], Records] = {
        **HOSTS,
        ("x.test", "NAPTR"): [naptr(1, 1, "SIP+D2U", "_sip._udp.far.test")],
        ("_sip._udp.far.test", "SRV"): [Srv(0, 0, 5060, "a.test")],
        ("_sips._tcp.x.test", "SRV"): [Srv(0, 0, 5061, "b.test")],
        ("b.test", "AAAA"): ["2001:db8::2"],
    }
    found = Walk(sources("X.test."), zone)
    hosts = {target.removeprefix("udp:").rpartition(":")[0] for target in found.targets}
    assert hosts == {"192.0.2.9", "192.0.2.2", "192.0.2.1", "2001:db8::2"}


# Weights (RFC 2782).


def test_the_first_is_drawn_by_weight() -> None:
    chance = random.Random(1)
    records = [Srv(1, 60, 5060, "a"), Srv(1, 30, 5060, "b"), Srv(1, 10, 5060, "c"), Srv(2, 99, 5060, "z")]
    first: Counter[str] = Counter()
    for _ in range(5000):
        ordered = order_srv(records, chance.uniform)
        assert ordered[-1].target == "z"
        first[ordered[0].target] += 1
    assert 2800 < first["a"] < 3200
    assert 1300 < first["b"] < 1700
    assert 350 < first["c"] < 700


def test_a_weight_of_zero_has_a_small_chance_beside_others_and_an_equal_one_alone() -> None:
    chance = random.Random(1)
    first = Counter(
        order_srv([Srv(1, 9, 5060, "a"), Srv(1, 0, 5060, "b")], chance.uniform)[0].target for _ in range(2000)
    )
    assert 100 < first["b"] < 320, "one in ten by the drawing of RFC 2782"


srv_records = st.builds(
    Srv,
    priority=st.integers(0, 5),
    weight=st.integers(0, 65535),
    port=st.integers(0, 65535),
    target=st.sampled_from(["", "a.test", "b.test", "x.test", "192.0.2.8", "c" * 70, "2001:db8::1"]),
)
naptr_records = st.builds(
    Naptr,
    order=st.integers(0, 3),
    preference=st.integers(0, 3),
    flags=st.sampled_from(["s", "S", "u", "", "a"]),
    service=st.sampled_from(["SIP+D2U", "sip+d2t", "SIPS+D2T", "SIP+D2S", "E2U+sip", "\ufffd"]),
    regexp=st.sampled_from(["", "!.*!x!"]),
    replacement=st.sampled_from(["", "_sip._udp.x.test", "_sip._tcp.x.test", "loop.test"]),
)


@given(st.lists(srv_records, max_size=40), st.randoms(use_true_random=False))
def test_an_order_keeps_every_record_and_every_priority(records: list[Srv], chance: random.Random) -> None:
    ordered = order_srv(records, chance.uniform)
    assert Counter(ordered) == Counter(records)
    assert [record.priority for record in ordered] == sorted(record.priority for record in records)


@given(
    st.lists(naptr_records, max_size=100),
    st.dictionaries(
        st.sampled_from(["_sip._udp.x.test", "_sip._tcp.x.test", "_sips._tcp.x.test", "loop.test"]),
        st.lists(srv_records, max_size=200),
    ),
    st.dictionaries(
        st.tuples(st.sampled_from(["a.test", "b.test", "x.test"]), st.sampled_from(["A", "AAAA"])),
        st.lists(st.sampled_from(["192.0.2.1", "192.0.2.2", "2001:db8::1", "junk", ""]), max_size=200),
    ),
    st.sampled_from(["sip:x.test", "sips:x.test", "sip:x.test;transport=tcp", "sip:x.test:5070"]),
    st.randoms(use_true_random=False),
)
def test_whatever_the_dns_says_the_work_is_bounded(
    pointers: list[Naptr],
    services: dict[str, list[Srv]],
    addresses: dict[tuple[str, str], Sequence[str]],
    uri: str,
    chance: random.Random,
) -> None:
    zone: dict[tuple[str, str], Records] = {("x.test", "NAPTR"): pointers, **addresses}
    zone |= {(name, "SRV"): records for name, records in services.items()}
    reach: SupportedFamilies = {"udp": (4, 6), "tcp": (4,), "tls": (6,)}
    result = Walk(locate(Destination.of(SipUri.parse(uri)), reach, chance.uniform), zone)
    assert len(result.asked) <= 3
    assert all(len(questions) <= 2 * MAX_HOSTS for questions in result.asked)
    assert len(result.targets) == len(set(result.targets)) <= MAX_TARGETS
    for target in result.targets:
        transport, _, rest = target.partition(":")
        host, _, port = rest.rpartition(":")
        assert (6 if ":" in host else 4) in reach[transport]
        assert 0 < int(port) < 65536
        assert transport == "tls" or not uri.startswith("sips")
    assert Kind.NAPTR.value not in "".join(sum(result.asked[1:], []))
