"""Trunk policy on the wire: numbers, identity, histories, digits, codecs, proxies, limits, hiding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load

DIALLED = "+919812345678"
PATIENCE_S = 40.0


class Trunks:
    """Trunks of either direction on the module's server, each of a policy of its own."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.latest: dict[str, Any] = {}

    def callees(self, name: str, **policy: Any) -> tuple[str, int]:
        """A trunk to call over; its carrier and the port of its only gateway."""
        port = free_port()
        return self.exchange.server.add_carrier(name, f"udp:127.0.0.1:{port}", outbound=True, **policy), port

    def callers(self, name: str, **policy: Any) -> int:
        """A trunk that calls come from; the port of its only gateway."""
        port = free_port()
        self.exchange.server.add_carrier(name, f"udp:127.0.0.1:{port}", inbound=True, **policy)
        return port

    def place(self, carrier_sid: str, *verbs: dict[str, Any], **more: Any) -> Any:
        """Call a number over a trunk by the API; returns the reply."""
        body = {
            "from": FORWARDED,
            "to": DIALLED,
            "carrier_sid": carrier_sid,
            "verbs": [*verbs, {"verb": "pause", "length": 0.1}, {"verb": "hangup"}],
            **more,
        }
        exchange = self.exchange
        return exchange.server.request("POST", "/v1/calls", exchange.account.api_key, body)

    def placed(self, scenario: str, carrier: tuple[str, int], *verbs: dict[str, Any], **more: Any) -> None:
        """A call by the API goes as the callee's scenario says."""
        carrier_sid, port = carrier
        callee = self.exchange.callee(scenario, port=port)
        reply = self.place(carrier_sid, *verbs, **more)
        assert reply.status == 201, reply
        self.exchange.finish(callee)
        ended = self.exchange.wait_for_status(reply.data["call_sid"], "completed", "failed", "no-answer")
        assert ended["status"] == "completed", ended

    def bridged(self, caller: str, port: int, callee: str, callee_port: int, **more: Any) -> None:
        """A call from one trunk goes on over another, as both scenarios say; `latest` is its record."""
        exchange = self.exchange
        exchange.bind({"target": "forward", "forward_to": f"sip:callee@127.0.0.1:{callee_port}"})
        called = exchange.callee(callee, port=callee_port)
        exchange.finish(exchange.caller(caller, port=port, load=Load(pause_ms=200), **more), called)
        [call], _ = exchange.calls(per_page=1)
        self.latest = exchange.wait_for_status(call["call_sid"], "completed")


@pytest.fixture(scope="module")
def trunks(exchange: Exchange) -> Trunks:
    return Trunks(exchange)


@pytest.fixture(autouse=True)
def nothing_left(exchange: Exchange) -> Iterator[None]:
    yield
    exchange.assert_clean()


# --- numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "policy"),
    [
        ("uas_plus.xml", {}),
        ("uas_no_plus.xml", {"e164_leading_plus": False, "identity_header": "ppi"}),
        ("uas_national.xml", {"number_format": "national", "identity_header": "rpid"}),
        (
            "uas_significant.xml",
            {"number_format": "significant", "tech_prefix": "77#", "identity_header": "none"},
        ),
    ],
)
def test_numbers_and_identity_as_the_trunk_wants_them(
    trunks: Trunks, scenario: str, policy: dict[str, Any]
) -> None:
    trunks.placed(scenario, trunks.callees(scenario, **policy))


def test_numbers_that_come_in_are_understood_in_every_form(trunks: Trunks) -> None:
    port = trunks.callers("prefixed", tech_prefix="77#", number_format="national")
    _, callee_port = trunks.callees("plain")
    trunks.bridged("uac_phone_context.xml", port, "uas.xml", callee_port)
    assert (trunks.latest["from"], trunks.latest["to"]) == ("+919876543210", FORWARDED)


def test_from_user_and_domain_of_the_trunk(trunks: Trunks) -> None:
    policy = {"register_from_user": "account7", "register_from_domain": "pbx.customer.example"}
    trunks.placed(
        "uas_named_user.xml", trunks.callees("named", **policy), caller_name="Front Desk", to=DIALLED
    )


# --- identity and privacy -----------------------------------------------------------------------------------


def test_a_withheld_number_is_told_to_a_trusted_trunk_only_beside_from(trunks: Trunks) -> None:
    port = trunks.callers("asserting-1")
    _, callee_port = trunks.callees("trusted")
    trunks.bridged("uac_withheld.xml", port, "uas_anonymous_told.xml", callee_port)
    assert trunks.latest["from"] == "anonymous"
    assert trunks.latest["sip"]["privacy"] == ["id"]
    assert "9811122233" not in str(trunks.latest)
    assert "identity" not in {name for name, value in trunks.latest["sip"].items() if value}


def test_a_withheld_number_is_not_told_to_others(trunks: Trunks) -> None:
    port = trunks.callers("asserting-2")
    _, callee_port = trunks.callees("untrusted", trusts_identity=False)
    trunks.bridged("uac_withheld.xml", port, "uas_anonymous_hidden.xml", callee_port)


def test_what_a_trusted_trunk_asserts_comes_before_from(trunks: Trunks) -> None:
    port = trunks.callers("asserting-3")
    _, callee_port = trunks.callees("after-asserting")
    trunks.bridged("uac_asserted.xml", port, "uas_asserted.xml", callee_port)
    assert trunks.latest["from"] == "+919811122233"
    assert trunks.latest["sip"]["display_name"] == "Asha"


def test_what_another_trunk_asserts_is_not_believed(trunks: Trunks) -> None:
    port = trunks.callers("claiming", trusts_identity=False)
    _, callee_port = trunks.callees("after-claiming")
    trunks.bridged("uac_asserted.xml", port, "uas_claimed.xml", callee_port)
    assert trunks.latest["from"] == "+919800000000"


# --- what goes on -------------------------------------------------------------------------------------------


def test_histories_and_allowed_fields_pass_by_policy(trunks: Trunks) -> None:
    port = trunks.callers("diverting-1", forwarded_headers=["X-Campaign"])
    _, callee_port = trunks.callees(
        "taking", forwards_history=True, forwarded_headers=["x-campaign"], diversion="+918047009000"
    )
    trunks.bridged("uac_history.xml", port, "uas_history.xml", callee_port)
    seen = trunks.latest["sip"]
    assert seen["headers"] == {"X-Campaign": "42", "X-Secret": "inner"}
    assert seen["diversion"] == ["<sip:09844400000@oldpbx.example>;reason=user-busy;counter=1"]
    assert seen["user_to_user"] == ["56a390f3d2b7310023a2;encoding=hex"]
    assert seen["session_id"].startswith("ab30317f1a784dc48ff824d0d3715d86")
    assert seen["identity"][0].startswith("eyJhbGciOi") and len(seen["history_info"]) == 1


def test_histories_and_fields_end_here_without_a_policy(trunks: Trunks) -> None:
    port = trunks.callers("diverting-2", forwarded_headers=["X-Campaign"])
    _, callee_port = trunks.callees("not-taking")
    trunks.bridged("uac_history_plain.xml", port, "uas_no_history.xml", callee_port)


def test_custom_fields_of_the_api(trunks: Trunks) -> None:
    headers = {"X-Colour": "blue", "X-Odd": 'a, b;c="d"'}
    trunks.placed("uas_custom.xml", trunks.callees("custom"), headers=headers)
    carrier_sid, _ = trunks.callees("injected")
    reply = trunks.place(carrier_sid, headers={"X-Colour": "blue\r\nX-Injected: 1"})
    assert reply.status == 400, reply
    assert "headers" in str(reply.body)


def test_codecs_in_the_order_of_the_trunk(trunks: Trunks) -> None:
    trunks.placed("uas_codec_order.xml", trunks.callees("a-law", codecs=["PCMA", "PCMU"]))


def test_the_codec_that_the_caller_speaks_goes_before_the_order_of_the_trunk(trunks: Trunks) -> None:
    """Its own order has PCMU first: with PCMA first nothing need be transcoded."""
    _, callee_port = trunks.callees("mu-law", codecs=["PCMU", "PCMA"])
    trunks.bridged("uac_pcma.xml", trunks.callers("a-law-caller"), "uas_codec_order.xml", callee_port)


def test_an_outbound_proxy_is_the_way_and_not_the_name(trunks: Trunks) -> None:
    port = free_port()
    carrier_sid = trunks.exchange.server.add_carrier(
        "proxied", "udp:gateway.example:5070", outbound=True, outbound_proxy=f"127.0.0.1:{port}"
    )
    trunks.placed("uas_proxied.xml", (carrier_sid, port))


# --- digits -------------------------------------------------------------------------------------------------


def test_digits_go_out_in_info(trunks: Trunks) -> None:
    trunks.placed("uas_info.xml", trunks.callees("info", dtmf_type="info"), send_digits="5#")


def test_digits_in_info_are_relayed_in_info(trunks: Trunks) -> None:
    port = trunks.callers("info-in")
    _, callee_port = trunks.callees("info-out", dtmf_type="info")
    trunks.bridged("uac_info.xml", port, "uas_info.xml", callee_port)


# --- limits -------------------------------------------------------------------------------------------------


def test_a_trunk_that_is_full_refuses_callers_before_anything_is_recorded(trunks: Trunks) -> None:
    """The limit is the carrier's: the second caller comes from another of its gateways."""
    exchange, ports = trunks.exchange, (free_port(), free_port())
    gateways = [f"udp:127.0.0.1:{port}" for port in ports]
    exchange.server.add_carrier("full-in", *gateways, inbound=True, max_concurrent_calls=1)
    exchange.bind(exchange.to_callee())
    _, before = exchange.calls()
    callee = exchange.callee("uas.xml", Load(2))
    first = exchange.caller("uac.xml", port=ports[0], load=Load(pause_ms=1500))
    assert wait_until(lambda: exchange.server.metric("trunkline_calls_active") >= 1, PATIENCE_S)
    exchange.finish(exchange.caller("uac_full.xml", port=ports[1]), first)
    assert exchange.calls()[1] == before + 1
    # Its place is free again.
    exchange.finish(exchange.caller("uac.xml", port=ports[1]), callee)


def test_a_trunk_begins_no_more_calls_a_second_than_it_may(trunks: Trunks) -> None:
    exchange = trunks.exchange
    port = trunks.callers("paced", max_cps=1)
    exchange.bind(exchange.to_callee())
    _, before = exchange.calls()
    callee = exchange.callee("uas.xml", Load(5))
    (caller,) = exchange.finish(exchange.caller("uac_paced.xml", port=port, load=Load(5, 100)))
    taken = caller.log.count("taken")
    assert 1 <= taken < 5 and caller.log.count("refused") == 5 - taken
    assert exchange.calls()[1] == before + taken
    callee.stop()


def test_a_full_gateway_is_passed_over_and_a_full_trunk_is_refused_at_once(trunks: Trunks) -> None:
    exchange, ports = trunks.exchange, (free_port(), free_port())
    gateways = [f"udp:127.0.0.1:{port}" for port in ports]
    carrier_sid = exchange.server.add_carrier(
        "full-out", *gateways, outbound=True, gateway_max_concurrent_calls=1
    )
    callees = [exchange.callee(port=port) for port in ports]
    hold = {"verb": "pause", "length": 2}
    replies = [trunks.place(carrier_sid, hold) for _ in range(3)]
    assert [reply.status for reply in replies] == [201, 201, 503]
    assert replies[2].body["error"]["code"] == "SERVICE_UNAVAILABLE"
    exchange.finish(*callees)  # one call each
    for reply in replies[:2]:
        exchange.wait_for_status(reply.data["call_sid"], "completed")


def test_calls_are_shared_out_by_weight(trunks: Trunks) -> None:
    exchange, ports = trunks.exchange, (free_port(), free_port())
    carrier_sid = exchange.api("POST", "/v1/trunk-portal/carriers", {"name": "weighed"})["carrier_sid"]
    for port, weight in zip(ports, (3, 1), strict=True):
        gateway = {"host": "127.0.0.1", "port": port, "protocol": "udp", "inbound": False, "outbound": True}
        where = f"/v1/trunk-portal/carriers/{carrier_sid}/gateways"
        exchange.api("POST", where, {**gateway, "priority": 0, "weight": weight})
    callees = [exchange.callee(load=Load(8), port=port) for port in ports]
    placed = [trunks.place(carrier_sid) for _ in range(8)]
    for reply in placed:
        assert reply.status == 201, reply
        exchange.wait_for_status(reply.data["call_sid"], "completed")
    heavy, light = (callee.stop().successful for callee in callees)
    assert heavy + light == 8
    assert heavy > light > 0


# --- topology hiding ----------------------------------------------------------------------------------------


def test_nothing_of_one_leg_shows_on_the_other(trunks: Trunks) -> None:
    """Every byte of either leg is searched for what only the other one has."""
    exchange = trunks.exchange
    port = trunks.callers("hidden-in")
    _, callee_port = trunks.callees("hidden-out", trusts_identity=False)
    files = {name: exchange.directory / f"{name}.messages" for name in ("caller", "callee")}
    number = "+918047000002"
    exchange.server.add_number(exchange.account, number)
    exchange.bind(
        {
            "target": "forward",
            "forward_to": f"sip:callee@127.0.0.1:{callee_port}",
            "caller_id": number,
        }
    )
    called = exchange.callee("uas_secretive.xml", port=callee_port, extra=_traced(files["callee"]))
    caller = exchange.caller(
        "uac_secretive.xml", port=port, load=Load(pause_ms=300), extra=_traced(files["caller"])
    )
    exchange.finish(caller, called)
    on_a, on_b = (files[name].read_text() for name in ("caller", "callee"))
    for text, other in ((on_a, on_b), (on_b, on_a)):
        own = {mark for mark in _marks(text) if not mark.endswith(f":{exchange.server.sip_port}")}
        assert len(own) >= 10, own
        assert not [mark for mark in own if _shows(mark, other)]
    for secret in ("9876543210", FORWARDED, "SIPp-A", "secret-a", "pbx-a.example", "203.0.113.7", f":{port}"):
        assert secret in on_a and secret not in on_b, secret
    for secret in ("SIPp-B", "secret-b", "pbx-b.example", "198.51.100.9", f":{callee_port}"):
        assert secret in on_b and secret not in on_a, secret


def _traced(path: Path) -> str:
    return f"-trace_msg -message_file {path}"


def _shows(mark: str, text: str) -> bool:
    # The digits of a port may stand in any random tag.
    return bool(re.search(rf"\b{mark}\b", text)) if mark.isdigit() else mark in text


def _marks(text: str) -> set[str]:
    """Return the identifiers of a leg: Call-IDs, tags, branches, ports of media, origins of descriptions."""
    patterns = (
        r"Call-ID: *(\S+)",
        r";tag=([^\s;>]+)",
        r";branch=([^\s;>]+)",
        r"m=audio (\d{4,5}) ",
        r"o=(\S+ \d{4,}) ",
        r"Via: SIP/2\.0/UDP ([^;\s]+)",
    )
    found = {mark for pattern in patterns for mark in re.findall(pattern, text)}
    return found
