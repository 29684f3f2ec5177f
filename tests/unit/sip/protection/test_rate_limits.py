"""Sources on virtual time: strangers, floods, scanners, bans, wrong credentials, and the bounds of memory."""

import random
from ipaddress import IPv4Address

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sip._wire import SOURCE_DROP, TRUST_NO
from sip.protection.rate_limits import Ban, Protection, ProtectionSettings, source_of
from tests.support.examples import examples

CARRIER, STRANGER = "192.0.2.1", "198.51.100.7"
INVITE = b"INVITE sip:100@192.0.2.9 SIP/2.0\r\nUser-Agent: Honest/1.0\r\n\r\n"


class Judge(Protection):
    """The guard of sources, asked about hosts alone."""

    def lets(self, data: bytes, host: str, now: float) -> bool:
        """True for a message that may be parsed."""
        return self.admit(data, (host, 5060), now) != SOURCE_DROP


def make(**changes: float) -> tuple[Judge, list[Ban]]:
    bans: list[Ban] = []
    made = ProtectionSettings(**changes)  # type: ignore[arg-type]
    return Judge(made, lambda host: host == CARRIER, bans.append), bans


def scan(agent: str) -> bytes:
    return f"OPTIONS sip:100@192.0.2.9 SIP/2.0\r\nVia: x\r\nUser-Agent: {agent}\r\n\r\n".encode()


def test_a_gateway_is_admitted_whatever_it_sends_and_however_much() -> None:
    guard, bans = make()
    assert all(guard.lets(scan("friendly-scanner"), CARRIER, 1.0) for _ in range(10_000))
    assert guard.knows(CARRIER)
    assert guard.trusted == {CARRIER}
    assert (bans, guard.rejected) == ([], {})


def test_a_stranger_has_a_burst_and_then_a_rate() -> None:
    guard, _ = make()
    assert [guard.lets(INVITE, STRANGER, 1.0) for _ in range(25)] == [True] * 20 + [False] * 5
    assert [guard.lets(INVITE, STRANGER, 1.5) for _ in range(6)] == [True] * 5 + [False]
    assert not guard.knows(STRANGER)
    assert guard.rejected == {"rate": 6}


def test_a_flood_is_banned_longer_each_time_and_every_ban_ends() -> None:
    guard, bans = make()
    now = 1.0
    for for_s, count in [(60, 1), (120, 2), (240, 3)]:
        while not guard.banned(now):
            guard.lets(INVITE, STRANGER, now)
        assert bans[-1] == Ban(STRANGER, "rate", for_s, count)
        assert not guard.lets(INVITE, STRANGER, now + for_s - 1)
        assert not guard.admits_connection(STRANGER, now + for_s - 1)
        now += for_s
        assert guard.admits_connection(STRANGER, now)
        assert guard.lets(INVITE, STRANGER, now)
        assert guard.banned(now) == {}


def test_a_ban_never_exceeds_its_maximum_and_is_forgotten_after_a_day() -> None:
    guard, bans = make()
    now = 0.0
    for _ in range(40):
        guard.lets(scan("sipvicious"), STRANGER, now)
        now += bans[-1].for_s
    assert bans[-1].for_s == 3600
    guard.lets(scan("sipvicious"), STRANGER, now + 86_401)
    assert (bans[-1].for_s, bans[-1].count) == (60, 1)


@pytest.mark.parametrize(
    "agent",
    ["friendly-scanner", "sipvicious", "sipcli/v1.8", "pplsip", "VaxSIPUserAgent/3.1", "SIPSAK 0.9", "iWar"],
)
def test_a_scanner_is_banned_at_its_first_message(agent: str) -> None:
    guard, bans = make()
    assert not guard.lets(scan(agent), STRANGER, 1.0)
    assert bans == [Ban(STRANGER, "scanner", 60, 1)]
    assert not guard.lets(INVITE, STRANGER, 2.0)
    assert guard.rejected == {"scanner": 1, "banned": 1}


@pytest.mark.parametrize(
    "agent", ["SIPp", "Asterisk PBX 20", "Linphone/5", "Cisco-SIPGateway/IOS-16", "Z 3.9"]
)
def test_an_honest_user_agent_is_no_scanner(agent: str) -> None:
    guard, _ = make()
    assert guard.lets(scan(agent), STRANGER, 1.0)


def test_the_name_of_a_scanner_elsewhere_in_a_message_means_nothing() -> None:
    guard, _ = make()
    assert guard.lets(b"INVITE sip:friendly-scanner@x SIP/2.0\r\nSubject: sipcli\r\n\r\n", STRANGER, 1.0)


def test_malformed_messages_lead_to_a_ban_sooner() -> None:
    guard, bans = make()
    for count in range(20):
        assert guard.lets(b"rubbish", STRANGER, 0.5 * count)
        guard.on_malformed(STRANGER, 0.5 * count)
    guard.on_malformed(STRANGER, 10.0)
    assert [ban.reason for ban in bans] == ["malformed"]


def test_a_slow_and_wrong_carrier_is_never_banned() -> None:
    """A trunk that nobody has set up here asks every half minute, for a week."""
    guard, bans = make()
    for count in range(20_000):
        assert guard.lets(INVITE, STRANGER, 30.0 * count)
        assert guard.may_answer(STRANGER, 30.0 * count)
    assert bans == []


def test_a_stranger_gets_one_answer_in_an_interval() -> None:
    guard, _ = make()
    times = [0.0, 1.0, 9.9, 10.0, 19.9, 20.1]
    assert [guard.may_answer(STRANGER, now) for now in times] == [True, False, False, True, False, True]
    silent = Protection(ProtectionSettings(answer_unknown_sources=False), lambda _: False)
    assert not silent.may_answer(STRANGER, 0.0)


def test_all_strangers_together_have_a_rate_too() -> None:
    """Forged sources never come twice; each has its burst, the crowd has not."""
    guard, bans = make()
    admitted = sum(guard.lets(INVITE, f"10.0.{n >> 8}.{n & 255}", 100.0) for n in range(5000))
    assert admitted == 1000
    assert guard.rejected == {"crowd": 4000}
    assert bans == []
    assert guard.lets(INVITE, CARRIER, 100.0)


def test_a_ban_is_lifted_when_the_source_becomes_a_gateway() -> None:
    gateways: set[str] = set()
    guard = Judge(ProtectionSettings(), gateways.__contains__)
    guard.lets(scan("sipcli"), STRANGER, 1.0)
    gateways.add(STRANGER)
    assert not guard.lets(INVITE, STRANGER, 1.5)  # Asked about at most once a second.
    assert guard.lets(INVITE, STRANGER, 2.1)
    assert guard.banned(2.1) == {}
    gateways.clear()
    guard.refresh_trusted(3.0)
    assert guard.lets(INVITE, STRANGER, 3.0)
    assert not guard.knows(STRANGER)


def test_who_takes_part_in_a_dialog_is_known_for_hours_and_unbanned() -> None:
    guard, _ = make()
    guard.lets(scan("sipcli"), STRANGER, 1.0)
    guard.trust(STRANGER, 2.0)
    for now in (3.0, 3600.0, 14_000.0):
        guard.refresh_trusted(now)
        assert all(guard.lets(INVITE, STRANGER, now) for _ in range(500))
    guard.refresh_trusted(14_403.0)
    assert [guard.lets(INVITE, STRANGER, 14_403.0) for _ in range(21)][-1] is False


def test_forged_datagrams_do_not_ban_a_carrier() -> None:
    guard, bans = make()
    for _ in range(1000):
        assert guard.lets(b"rubbish", CARRIER, 1.0)
        guard.on_auth_failure(CARRIER, 1.0)
    assert bans == []
    assert guard.lets(INVITE, CARRIER, 1.0)


def test_wrong_credentials_are_slowed_and_then_meet_silence() -> None:
    guard, bans = make()
    now, served = 0.0, 0
    while not bans:
        if guard.lets(INVITE, STRANGER, now):
            served += 1
            guard.on_auth_failure(STRANGER, now)
        now += 0.25
    assert (served, bans[0].reason) == (20, "credentials")
    assert now > 10.0, "the fifteen tries after the fifth take a second each"
    assert not guard.lets(INVITE, STRANGER, now + 299)
    assert guard.lets(INVITE, STRANGER, now + 300)


def test_right_credentials_clear_the_count_and_make_known() -> None:
    guard, bans = make()
    for _ in range(10):
        for _ in range(19):
            guard.on_auth_failure(STRANGER, 1.0)
        guard.on_auth_success(STRANGER, 1.0)
        assert guard.knows(STRANGER)
    assert bans == []


def test_one_good_account_does_not_cover_for_guessing_at_another() -> None:
    guard, bans = make()
    guard.on_auth_success(STRANGER, 1.0)
    for _ in range(20):
        guard.on_auth_failure(STRANGER, 2.0)
    assert [ban.reason for ban in bans] == ["credentials"]
    assert not guard.lets(INVITE, STRANGER, 3.0)


def test_old_failures_are_forgotten() -> None:
    guard, bans = make()
    for hour in range(100):
        guard.on_auth_failure(STRANGER, 3600.0 * hour)
    assert bans == []


def test_an_ipv6_network_of_64_bits_is_one_source() -> None:
    assert source_of("2001:db8:1:2:3:4:5:6") == source_of("2001:db8:1:2::9%eth0") == "2001:db8:1:2::/64"
    assert source_of("::ffff:192.0.2.1") == source_of("192.0.2.1") == "192.0.2.1"
    assert source_of("not an address:") == "not an address:"
    guard, _ = make()
    admitted = [guard.lets(INVITE, f"2001:db8:1:2::{n:x}", 1.0) for n in range(30)]
    assert sum(admitted) == 20
    assert guard.lets(INVITE, "2001:db8:1:3::1", 1.0)


def test_a_hundred_thousand_forged_sources_do_not_fill_the_memory() -> None:
    guard, _ = make(max_sources=1000, crowd_rate_per_s=1e9, crowd_burst=1e9)
    draw = random.Random(1)
    for count in range(100_000):
        host = str(IPv4Address(draw.getrandbits(32)))
        guard.lets(INVITE, host, count * 1e-5)
    assert size(guard) <= 1000


def test_forged_scanners_do_not_drive_out_the_ban_of_a_guesser() -> None:
    """The table of bans is full of short ones; the one that ends soonest gives way."""
    guard, bans = make(max_sources=100, crowd_rate_per_s=1e9, crowd_burst=1e9)
    for _ in range(20):
        guard.on_auth_failure(STRANGER, 1.0)
    for count in range(5000):
        guard.lets(scan("sipvicious"), f"10.0.{count >> 8}.{count & 255}", 1.0 + count * 1e-3)
    assert len(bans) == 5001
    assert len(guard.banned(6.0)) == 100
    assert not guard.lets(INVITE, STRANGER, 6.0)


def test_forged_sources_do_not_drive_out_the_trust_that_a_peer_has_earned() -> None:
    guard, _ = make(max_sources=100, crowd_rate_per_s=1e9, crowd_burst=1e9)
    guard.trust(STRANGER, 1.0)
    for count in range(5000):
        guard.lets(INVITE, f"10.0.{count >> 8}.{count & 255}", 2.0)
    guard.refresh_trusted(3.0)
    assert all(guard.lets(INVITE, STRANGER, 3.0) for _ in range(500))


def test_of_many_bans_at_once_the_first_are_told_and_all_are_counted() -> None:
    guard, bans = make()
    native = guard.sources
    for count in range(100):
        native.judge(scan("sipcli"), f"10.0.0.{count}", 5060, True, 1.0, TRUST_NO)
    guard.tell_bans()
    left_out = guard.take_left_out()
    assert [ban.source for ban in bans] == [f"10.0.0.{count}" for count in range(len(bans))]
    assert 0 < len(bans) == 100 - left_out < 100
    guard.tell_bans()
    assert guard.take_left_out() == 0


def test_all_text_that_is_no_address_is_one_source() -> None:
    guard, _ = make()
    assert sum(guard.lets(INVITE, f"host-{count}.example", 1.0) for count in range(30)) == 20


def size(guard: Judge) -> int:
    return guard.sources.largest


HOSTS = st.sampled_from([CARRIER, STRANGER, "2001:db8::1", *(f"10.0.0.{n}" for n in range(40))])
STEPS = st.tuples(st.sampled_from("admit scan malformed fail right answer trust refresh".split()), HOSTS)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(STEPS, st.floats(0, 5)), max_size=300))
def test_whatever_happens_memory_is_bounded_and_the_carrier_is_heard(
    steps: list[tuple[tuple[str, str], float]],
) -> None:
    guard, bans = make(max_sources=8, ban_score=10, max_auth_failures=3, slow_after_failures=1)
    now = 0.0
    for (what, host), pause_s in steps:
        now += pause_s
        if what == "admit":
            guard.lets(INVITE, host, now)
        elif what == "scan":
            guard.lets(scan("sipvicious"), host, now)
        elif what == "refresh":
            guard.refresh_trusted(now)
        elif host != CARRIER or what == "fail":
            act = {
                "malformed": guard.on_malformed,
                "fail": guard.on_auth_failure,
                "right": guard.on_auth_success,
                "answer": guard.may_answer,
                "trust": guard.trust,
            }[what]
            act(host, now)
        assert size(guard) <= 9
        assert guard.lets(INVITE, CARRIER, now)
    assert CARRIER not in {ban.source for ban in bans}
