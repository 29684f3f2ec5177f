"""SIGTERM while calls are in every state: they go on, or are ended in good order, and nothing is lost."""

from __future__ import annotations

import json
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.lengths import count, progress, seconds
from tests.faults.oracle import assert_nothing_lost
from tests.faults.oracle.stage import OracleStage
from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.needs import needs_sipp
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load
from tests.support.waiting import PATIENCE_S

_MIX = {"forwarded": 4, "streamed": 2, "cancelled": 1, "outbound": 2, "otp": 1, "masked": 2}
_STOP_S = 3 * PATIENCE_S
_HOLD = """
  <send retrans="500">
    <![CDATA[
      INVITE [next_url] SIP/2.0
      Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch];rport
      [routes]
      From: <sip:+919876543210@[local_ip]:[local_port]>;tag=[pid]SIPpTag00[call_number]
      To: <sip:[service]@[remote_ip]:[remote_port]>[peer_tag_param]
      Call-ID: [call_id]
      CSeq: 2 INVITE
      Contact: <sip:sipp@[local_ip]:[local_port];transport=[transport]>
      Max-Forwards: 70
      Content-Type: application/sdp
      Content-Length: [len]

      v=0
      o=sipp 53655765 2 IN IP[local_ip_type] [local_ip]
      s=-
      c=IN IP[media_ip_type] [media_ip]
      t=0 0
      m=audio [media_port] RTP/AVP 0 101
      a=rtpmap:0 PCMU/8000
      a=rtpmap:101 telephone-event/8000
      a=sendonly

    ]]>
  </send>
  <recv response="100" optional="true"/>
  <recv response="200"/>
  <send>
    <![CDATA[
      ACK [next_url] SIP/2.0
      Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch];rport
      [routes]
      From: <sip:+919876543210@[local_ip]:[local_port]>;tag=[pid]SIPpTag00[call_number]
      To: <sip:[service]@[remote_ip]:[remote_port]>[peer_tag_param]
      Call-ID: [call_id]
      CSeq: 2 ACK
      Max-Forwards: 70
      Content-Length: 0

    ]]>
  </send>
  <nop><action><log message="on hold"/></action></nop>
"""


@pytest.fixture
def exchange(tmp_path: Path) -> Iterator[Exchange]:
    """A server that drains longer than any test waits, unless it is told twice."""
    with Exchange(tmp_path, {"TRUNKLINE_DRAIN_S": "600"}) as running:
        yield running


def terminate(exchange: Exchange, up: int) -> None:
    """Tell the server to drain, and wait until it does."""
    assert exchange.server.process is not None
    before = len(exchange.server.log())
    exchange.server.process.send_signal(signal.SIGTERM)
    drains = f"draining: {up} active calls"
    assert wait_until(lambda: drains in exchange.server.log()[before:], PATIENCE_S), exchange.server.log()


def terminate_again(exchange: Exchange) -> None:
    """Tell it once more; it must end in good order, with status 0."""
    assert exchange.server.process is not None
    exchange.server.process.send_signal(signal.SIGTERM)
    assert exchange.server.process.wait(_STOP_S) == 0, exchange.server.log()


def in_progress(exchange: Exchange) -> int:
    return sum(call["status"] == "in-progress" for call in exchange.calls()[0])


def assert_shut_down(exchange: Exchange, calls: int) -> None:
    """After a start the records say that the server ended these calls, and nothing is left to do."""
    before = len(exchange.server.log())
    exchange.server.start()
    found = exchange.calls()[0][:calls]
    assert {call["hangup_cause"] for call in found} == {"SYSTEM_SHUTDOWN"}
    assert all(call["ended_at"] for call in found)
    assert "of the previous process" not in exchange.server.log()[before:], "no peer was left behind"
    exchange.assert_clean()


@pytest.mark.long(reason="a load for ten seconds")
@pytest.mark.durable
@pytest.mark.timeout(0)
def test_a_drain_under_load_loses_nothing(tmp_path: Path) -> None:
    """
    A drain under load, with ringing, talking, streamed, OTP and masked calls, ends them, exits 0 and loses
    nothing: no record, charge or webhook, and no call stays up at one side.
    """
    drains = count("DRAINS", short=1, long=20)
    up = count("DRAIN_CALLS", short=15, long=200)
    rate = seconds("DRAIN_RATE", short=8.0, long=20.0)
    with OracleStage(tmp_path, {"TRUNKLINE_DRAIN_S": "1"}) as stage:
        stage.callees(ring_s=(0.0, 2.5), hold_s=(5.0, 60.0), refuse_share=0.05)
        stage.load(rate, _MIX, hold_s=(5.0, 60.0))
        for number in range(1, drains + 1):
            stage.wait(lambda: stage.far.up() >= up, "calls do not come up")
            status = stage.server.stop(_STOP_S)
            assert status == 0, stage.server.log()[-4000:]
            stage.restart()
            progress(f"drain {number} of {drains}: {stage.far.counts()}")
        stage.end_calls()
        evidence = stage.evidence()
        assert "Traceback" not in stage.server.log(), stage.server.log()
        assert_nothing_lost(evidence)
        cut = sum(record["hangup_cause"] == "SYSTEM_SHUTDOWN" for record in evidence.records)
        assert cut >= drains * up // 2
        assert not any(record["hangup_cause"] == "CRASH" for record in evidence.records)


@needs_sipp
def test_a_second_signal_ends_the_drain(exchange: Exchange) -> None:
    """
    A second SIGTERM ends a drain at once: parties that talk, hold or are in a conference get a BYE, one that
    rings a CANCEL, a caller that waits a 503.
    """
    ringing = exchange.callee("uas_noanswer.xml", port=exchange.second_callee_port)
    callee = exchange.callee("uas.xml", Load(calls=4))
    for number in ("+919876500001", "+919876500002"):
        conference = {"verb": "conference", "name": "all"}
        exchange.api("POST", "/v1/calls", {"from": FORWARDED, "to": number, "verbs": [conference]})
    talking = exchange.caller("reason_uac_hung_up_on.xml")
    held = exchange.caller(str(_holding(exchange.directory)), port=exchange.second_caller_port)
    assert wait_until(lambda: "on hold" in "".join(_log_of(exchange, "holding")), PATIENCE_S)
    assert wait_until(lambda: in_progress(exchange) == 4, PATIENCE_S)
    assert wait_until(lambda: exchange.server.metric("trunkline_conferences_open") == 1, PATIENCE_S)
    exchange.bind(exchange.to_callee(exchange.second_callee_port))
    refused = exchange.caller("uac_refused.xml", port=(third := _third_caller(exchange)))
    assert third and wait_until(
        lambda: any(call["status"] == "ringing" for call in exchange.calls()[0]), PATIENCE_S
    )
    terminate(exchange, 5)
    terminate_again(exchange)
    results = exchange.finish(talking, held, callee, ringing, refused)
    assert results[-1].log == ("refused 503",)
    assert_shut_down(exchange, 5)


@needs_sipp
def test_a_transfer_under_way_ends_for_all_three(exchange: Exchange) -> None:
    """When a drain is over during a transfer, both parties get a BYE and the target that rings a CANCEL."""
    exchange.bind(exchange.to_callee(exchange.second_callee_port))
    target = exchange.callee("uas_noanswer.xml")
    callee = exchange.callee("uas.xml", port=exchange.second_callee_port)
    caller = exchange.caller("reason_uac_hung_up_on.xml")
    assert wait_until(lambda: in_progress(exchange) == 1, PATIENCE_S)
    call = exchange.calls()[0][0]
    path = f"/v1/Accounts/{exchange.account.account_sid}/Calls/{call['call_sid']}"
    order = {"transfer": {"to": "+919876500009", "timeout": 60}}
    assert wait_until(
        lambda: exchange.server.request("POST", path, exchange.account.api_key, order).status == 202,
        PATIENCE_S,
    )
    trace = f"/v1/calls/{call['call_sid']}/trace"
    assert wait_until(lambda: str(exchange.api("GET", trace)).count("180 Ringing") >= 3, PATIENCE_S)
    terminate(exchange, 1)
    terminate_again(exchange)
    exchange.finish(caller, callee, target)
    assert_shut_down(exchange, 1)


@needs_sipp
def test_the_api_refuses_calls_and_answers_questions_while_it_drains(exchange: Exchange) -> None:
    """While the server drains, new calls are 503 with Retry-After; active calls are shown and ended."""
    callee = exchange.callee("uas.xml")
    caller = exchange.caller("uac_hung_up_on.xml")
    assert wait_until(lambda: in_progress(exchange) == 1, PATIENCE_S)
    terminate(exchange, 1)
    wanted = {"from": FORWARDED, "to": "+919876500001", "verbs": [{"verb": "pause", "length": 1}]}
    body = json.dumps(wanted).encode()
    headers = {"Authorization": f"Bearer {exchange.account.api_key}", "Content-Type": "application/json"}
    request = urllib.request.Request(exchange.server.url + "/v1/calls", body, headers)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    with refused.value as reply:
        assert reply.code == 503 and int(reply.headers["Retry-After"]) >= 1
    assert exchange.server.request("GET", "/ready").status == 503
    assert exchange.server.request("GET", "/health").status == 200
    call = exchange.calls()[0][0]
    exchange.api("DELETE", f"/v1/Accounts/{exchange.account.account_sid}/Calls/{call['call_sid']}")
    exchange.finish(callee, caller)
    assert exchange.server.process is not None
    assert exchange.server.process.wait(_STOP_S) == 0, "its last call is over"
    exchange.server.start()


def test_an_agent_is_told_before_its_socket_closes(tmp_path: Path) -> None:
    """An agent of a call that a drain ends gets its stop and a closing handshake with the code 1000."""
    with OracleStage(tmp_path, {"TRUNKLINE_DRAIN_S": "0"}) as stage:
        stage.load(10.0, {"streamed": 1}, calls=3, hold_s=(60.0, 60.0))
        stage.wait(lambda: stage.far.counts()["streams"] == 3, "no streams come up")
        stage.wait(lambda: stage.server.metric("trunkline_calls_active") == 3, "no calls come up")
        assert stage.server.stop(_STOP_S) == 0
        stage.wait(lambda: len(stage.far.counts()["stream_ends"]) == 3, "sockets stay open")
        assert stage.far.counts()["stream_ends"] == [["stop", 1000]] * 3
        stage.restart()
        stage.end_calls()


def _holding(directory: Path) -> Path:
    """The scenario of a caller that is hung up on, on hold by then."""
    path = directory / "holding.xml"
    plain = Path("fixtures/sipp/reason_uac_hung_up_on.xml")
    text = (Path(__file__).resolve().parents[2] / plain).read_text()
    path.write_text(re.sub(r"(?=\s*<recv request=\"BYE\")", lambda _: _HOLD, text, count=1))
    return path


def _log_of(exchange: Exchange, scenario: str) -> list[str]:
    return [path.read_text() for path in exchange.directory.glob(f"{scenario}-*.log")]


def _third_caller(exchange: Exchange) -> int:
    """One more caller's trunk."""
    port = free_port()
    exchange.server.add_carrier("third", f"udp:127.0.0.1:{port}", inbound=True)
    return port
