"""SIPp as scanner, stranger and flood, at addresses of their own; and as a caller when there is no room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sipp.exchange import FORWARDED, UNKNOWN, Exchange
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load, Sipp

# The gateways of the exchange are at 127.0.0.1; what else there is on the loopback is no gateway.
_ONLY_THE_API = {"TRUNKLINE_TRUSTED_SOURCES": "127.0.0.1/32"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Exchange]:
    """A server that trusts nobody but its gateways."""
    with Exchange(tmp_path_factory.mktemp("guarded"), _ONLY_THE_API) as running:
        yield running


def stranger(
    exchange: Exchange, scenario: str, host: str, *, number: str = FORWARDED, extra: str = "", **load: int
) -> Sipp:
    """Start a SIPp at an address that is no gateway's."""
    options = f"-i {host} {extra}"
    return exchange.caller(scenario, number, Load(**load), port=free_port(), extra=options)


def rejected(exchange: Exchange, reason: str) -> float:
    text = str(exchange.server.request("GET", "/metrics").body)
    name = f'trunkline_sip_rejected_total{{reason="{reason}"}} '
    return sum(float(line[len(name) :]) for line in text.splitlines() if line.startswith(name))


def place_call(exchange: Exchange, **load: int) -> None:
    """One call from the caller's gateway to the callee's, from INVITE to BYE."""
    callee = exchange.callee(load=Load(**load))
    exchange.finish(exchange.caller("uac.xml", load=Load(**load)), callee)


def test_a_scanner_meets_silence(guarded: Exchange) -> None:
    guarded.finish(stranger(guarded, "uac_scanner.xml", "127.0.0.11"))
    assert "banned source=127.0.0.11 reason=scanner for_s=60" in guarded.server.log()
    assert rejected(guarded, "scanner") == 1
    assert guarded.server.metric("trunkline_sip_banned_sources") >= 1


@pytest.mark.parametrize(
    ("scenario", "number", "host"),
    [
        ("uac_stranger.xml", FORWARDED, "127.0.0.21"),
        ("uac_stranger.xml", UNKNOWN, "127.0.0.22"),
        ("uac_stranger_register.xml", FORWARDED, "127.0.0.23"),
        ("uac_stranger_options.xml", FORWARDED, "127.0.0.24"),
    ],
)
def test_a_stranger_is_told_one_thing_once(guarded: Exchange, scenario: str, number: str, host: str) -> None:
    _, before = guarded.calls(per_page=1)
    guarded.finish(stranger(guarded, scenario, host, number=number))
    assert guarded.calls(per_page=1)[1] == before


def test_a_strangers_rubbish_is_not_answered(guarded: Exchange) -> None:
    before = rejected(guarded, "malformed")
    guarded.finish(stranger(guarded, "uac_rubbish.xml", "127.0.0.31"))
    assert rejected(guarded, "malformed") == before + 2


@pytest.mark.timeout(120)
def test_a_flood_is_banned_and_calls_go_on(guarded: Exchange) -> None:
    callee = guarded.callee(load=Load(5))
    up = guarded.caller("uac.xml", load=Load(5, 5, 1500))
    flood = stranger(guarded, "uac_flood.xml", "127.0.0.41", calls=3000, rate=1500)
    assert wait_until(lambda: "banned source=127.0.0.41 reason=rate" in guarded.server.log())
    guarded.finish(up, callee)
    flood.wait(30)
    assert rejected(guarded, "banned") > 1000
    guarded.finish(stranger(guarded, "uac_silence.xml", "127.0.0.41"))
    place_call(guarded)
    guarded.assert_clean()


def test_a_source_that_becomes_a_gateway_is_served_though_it_was_banned(guarded: Exchange) -> None:
    """Somebody sets a trunk up after its carrier has tried it out."""
    guarded.finish(stranger(guarded, "uac_scanner.xml", "127.0.0.51"))
    guarded.server.add_carrier("late", "udp:127.0.0.51:5060", inbound=True)

    def is_served() -> bool:
        return stranger(guarded, "uac_options.xml", "127.0.0.51").wait(5).exit_status == 0

    assert wait_until(is_served)


def test_strangers_are_told_nothing_by_setting(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("silent")
    with Exchange(directory, {**_ONLY_THE_API, "TRUNKLINE_SIP_UNKNOWN_SOURCES": "silent"}) as silent:
        silent.finish(stranger(silent, "uac_silence.xml", "127.0.0.61"))
        silent.finish(stranger(silent, "uac_rubbish.xml", "127.0.0.61"))
        place_call(silent)


def test_no_room_is_said_early_and_calls_that_are_up_are_unharmed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with Exchange(tmp_path_factory.mktemp("one"), {"TRUNKLINE_MAX_CALLS": "1"}) as exchange:
        callee = exchange.callee()
        up = exchange.caller("uac_reinvite.xml", load=Load(pause_ms=1000))
        assert wait_until(lambda: any(call["status"] == "in-progress" for call in exchange.calls()[0]))
        refused = exchange.caller("uac_unavailable.xml", load=Load(3), port=exchange.second_caller_port)
        [result] = exchange.finish(refused)
        assert [line.split() for line in result.log] == [["tag_differs=false", "time_differs=false"]] * 3
        exchange.finish(up, callee)
        [call], total = exchange.calls()
        assert (call["status"], total) == ("completed", 1)
        place_call(exchange)


def test_more_calls_a_second_than_there_may_be_are_refused_without_a_trace(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with Exchange(tmp_path_factory.mktemp("cps"), {"TRUNKLINE_MAX_CPS": "1"}) as exchange:
        callee = exchange.callee()
        up = exchange.caller("uac.xml", load=Load(pause_ms=100))
        assert wait_until(lambda: bool(exchange.calls()[0]))
        refused = exchange.caller("uac_refused.xml", load=Load(5, 50), port=exchange.second_caller_port)
        exchange.finish(refused, up, callee)
        _, total = exchange.calls()
        assert total == 1
        assert rejected(exchange, "capacity") >= 4
