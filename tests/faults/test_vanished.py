"""
Far ends that vanish, each in another state of its call: what ends the call, when, and what is billed.

All cases of a server are played at the same time, for the longest of them takes what RFC 3261 gives a peer to
come back: 32 s. A far end that is stopped, killed or cut off does the same as one that says nothing any more.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from tests.faults.lengths import SOAK, progress
from tests.faults.peers import Peer, answers, deaf_after, silent
from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.needs import needs_sipp
from tests.support.server_process import wait_until
from tests.support.sipp_run import Load, Sipp
from tests.support.waiting import PATIENCE_S

NUMBER: Final = "+919812345678"
OVER: Final = ("completed", "failed", "no-answer", "busy", "canceled")
GIVEN_UP_S: Final = 32.0
"""64 times T1: how long a peer may say nothing (RFC 3261 13.3.1.4, 17.1.1.2)."""
_LATE_S: Final = 3.0 if SOAK else 25.0
"""Tolerance for late events."""


@dataclass
class Case:
    """A call whose far end vanishes, and its record once it is over."""

    peer: Peer
    sid: str = ""
    record: dict[str, Any] = field(default_factory=dict)

    @property
    def outcome(self) -> tuple[str, str, str]:
        """Status, cause and who ended it."""
        return self.record["status"], self.record["hangup_cause"], self.record["hangup_source"]

    @property
    def talked_s(self) -> int:
        """Billed time, in seconds."""
        return int(self.record["duration_sec"] or 0)


class Stage:
    """A server with a polite callee, and peers that vanish."""

    def __init__(self, exchange: Exchange, stack: ExitStack) -> None:
        self.exchange, self._stack = exchange, stack
        self.callee = stack.enter_context(Peer(answers, exchange.callee_port))
        self.cases: dict[str, Case] = {}
        self.targets: dict[str, Peer] = {}

    def called(self, name: str, peer: Peer, **more: Any) -> None:
        """Make the server call a peer, hold for a second and hang up."""
        self._stack.enter_context(peer)
        carrier = self.exchange.server.add_carrier(name, f"udp:127.0.0.1:{peer.port}", outbound=True)
        verbs = more.pop("verbs", [{"verb": "pause", "length": 1}, {"verb": "hangup"}])
        body = {"from": FORWARDED, "to": NUMBER, "verbs": verbs, "carrier_sid": carrier, **more}
        self.cases[name] = Case(peer, str(self.exchange.api("POST", "/v1/calls", body)["call_sid"]))

    def transferred(self, name: str, target: Peer) -> None:
        """Call a polite peer, and have the call transferred to one that vanishes."""
        self.called(name, Peer(answers), verbs=[{"verb": "pause", "length": 600}])
        sid = self.cases[name].sid
        self.exchange.wait_for_status(sid, "in-progress")
        self.targets[name] = self._stack.enter_context(target)
        self.exchange.server.add_carrier(f"{name} target", f"udp:127.0.0.1:{target.port}", outbound=True)
        order = {"transfer": {"to": f"sip:target@127.0.0.1:{target.port}", "timeout": 5}}
        self.exchange.api("POST", self._path(sid), order)

    def await_transfers(self) -> None:
        """Wait until the target that answers has done so, and hang up."""
        target = self.targets["to one that goes"]
        assert wait_until(lambda: bool(target.came("ACK")), PATIENCE_S)
        self.exchange.api("DELETE", self._path(self.cases["to one that goes"].sid))

    def _path(self, sid: str) -> str:
        return f"/v1/Accounts/{self.exchange.account.account_sid}/Calls/{sid}"

    def calls(self, name: str, peer: Peer) -> None:
        """Make a peer call the number that is forwarded to the polite callee."""
        self._stack.enter_context(peer)
        peer.call(self.exchange.server.sip_port, FORWARDED, call_id=name)
        assert wait_until(lambda: self._sid_of(name), PATIENCE_S), "the call did not arrive"
        self.cases[name] = Case(peer, self._sid_of(name))

    def _sid_of(self, call_id: str) -> str:
        found, _ = self.exchange.calls(per_page=50)
        return next((call["call_sid"] for call in found if call["sip_call_id"] == call_id), "")

    def finish(self) -> None:
        """Wait until all are over and nothing is left of them, and fetch their records."""
        server = self.exchange.server
        assert wait_until(lambda: not server.metric("trunkline_calls_active"), 4 * PATIENCE_S)
        self.exchange.assert_clean()
        if SOAK:  # A BYE that nobody answers is repeated for another 32 s.
            assert wait_until(lambda: not server.metric("trunkline_sip_sessions"), 2 * PATIENCE_S)
        for name, case in self.cases.items():
            case.record = self.exchange.wait_for_status(case.sid, *OVER)
            progress(f"{name}: {case.outcome}, {case.talked_s} s")


@pytest.fixture(scope="module")
def cases(stage: Stage) -> dict[str, Case]:
    """The calls, once they are over."""
    return stage.cases


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Every case whose end is told by signalling."""
    environment = {"TRUNKLINE_SIP_MIN_SE": "2", "TRUNKLINE_MEDIA_TIMEOUT_S": "0"}
    with ExitStack() as stack:
        exchange = stack.enter_context(Exchange(tmp_path_factory.mktemp("vanished"), environment))
        stage = Stage(exchange, stack)
        stage.calls("answered", Peer(silent))
        stage.called("tried", Peer(deaf_after(100)), timeout=5)
        stage.called("ringing", Peer(deaf_after(100, 180)), timeout=5)
        stage.called("hung up on", Peer(deaf_after(200)))
        forever = [{"verb": "pause", "length": 600}]
        for refresher in ("uac", "uas"):
            told = [("Session-Expires", f"4;refresher={refresher}"), ("Require", "timer")]
            peer = Peer(deaf_after(200, headers=[*told, ("Allow", "INVITE, ACK, BYE, UPDATE")]))
            stage.called(f"refreshed by {refresher}", peer, verbs=forever)
        stage.transferred("to nobody", Peer(silent))
        stage.transferred("to one that goes", Peer(deaf_after(200)))
        stage.await_transfers()
        stage.finish()
        yield stage


@pytest.mark.long(reason="waits out timer H, 32 s")
def test_a_caller_that_vanishes_before_its_ack(cases: dict[str, Case]) -> None:
    """A caller that never acknowledges its answer gets it for 32 s; then both sides are hung up on."""
    case = cases["answered"]
    assert case.peer.told("INVITE").count(200) >= 5, "the answer was repeated"
    assert case.peer.came("BYE"), "it is hung up on, in case it is there after all"
    first_s = case.peer.came("BYE")[0] - case.peer.heard[0][0]
    assert GIVEN_UP_S - 2.0 < first_s < GIVEN_UP_S + _LATE_S
    assert case.outcome == ("completed", "RECOVERY_ON_TIMER_EXPIRE", "carrier")


@pytest.mark.long(reason="waits out timer B, 32 s")
def test_a_callee_that_vanishes_before_it_rings(cases: dict[str, Case]) -> None:
    """A callee that is tried and never rings is given up after the ring time, and costs nothing."""
    case = cases["tried"]
    assert (case.record["status"], case.record["answered_at"]) == ("no-answer", None)
    assert float(case.record["price"] or 0) == 0.0


def test_a_callee_that_vanishes_while_it_rings(cases: dict[str, Case]) -> None:
    """A callee that vanishes while it rings is cancelled; that it never says so holds up nothing."""
    case = cases["ringing"]
    assert case.peer.came("CANCEL")
    assert (case.record["status"], case.record["answered_at"]) == ("no-answer", None)
    assert float(case.record["price"] or 0) == 0.0


@pytest.mark.long(reason="waits out timer F, 32 s")
def test_a_callee_that_vanishes_before_it_is_hung_up_on(cases: dict[str, Case]) -> None:
    """A callee that never answers a BYE is given up after 32 s, and billed until the BYE, not until then."""
    case = cases["hung up on"]
    byes = case.peer.came("BYE")
    assert byes[-1] - byes[0] <= GIVEN_UP_S + _LATE_S
    assert case.record["status"] == "completed"
    assert case.talked_s < GIVEN_UP_S - 5


@pytest.mark.long(reason="waits out a session timer")
@pytest.mark.parametrize("refresher", ["uac", "uas"])
def test_a_session_that_is_not_refreshed(cases: dict[str, Case], refresher: str) -> None:
    """A session timer that is not refreshed, by us or by the peer, ends the call and its billing."""
    case = cases[f"refreshed by {refresher}"]
    assert case.record["status"] == "completed"
    assert case.peer.came("BYE")
    assert case.talked_s <= 4 + _LATE_S


def test_a_transfer_to_a_target_that_says_nothing(stage: Stage) -> None:
    """A transfer to a silent target is given up after its ring time, and its party is notified."""
    case, target = stage.cases["to nobody"], stage.targets["to nobody"]
    assert target.came("INVITE") and not target.came("BYE")
    assert case.record["status"] == "completed"
    assert case.peer.came("BYE"), "who heard ringing meanwhile is hung up on"
    assert case.talked_s <= 5 + 1 + _LATE_S


def test_a_transfer_to_a_target_that_vanishes(stage: Stage) -> None:
    """A target that vanishes when a transfer is done is billed until its BYE, not until it is given up."""
    case, target = stage.cases["to one that goes"], stage.targets["to one that goes"]
    byes = target.came("BYE")
    assert byes and case.peer.came("BYE")
    assert byes[-1] - byes[0] <= GIVEN_UP_S + _LATE_S
    assert (case.record["status"], case.record["hangup_source"]) == ("completed", "api")
    assert case.talked_s < GIVEN_UP_S - 5


@pytest.mark.long(reason="waits out the loss of media")
@needs_sipp
@pytest.mark.parametrize("side", ["caller", "callee"])
def test_a_far_end_that_is_killed_or_stopped(tmp_path: Path, side: str) -> None:
    """A far end whose process is killed, or stopped, in a call with audio ends it by the media timeout."""
    limit_s = 5
    (tmp_path / "caller.ulaw").write_bytes(b"\xff" * 8000)
    with Exchange(tmp_path, {"TRUNKLINE_MEDIA_TIMEOUT_S": str(limit_s)}) as exchange:
        victims: list[Sipp] = []
        for ports in (
            (exchange.caller_port, exchange.callee_port),
            (exchange.second_caller_port, exchange.second_callee_port),
        ):
            exchange.bind(exchange.to_callee(ports[1]))
            callee = exchange.callee("uas.xml", port=ports[1], extra="-rtp_echo")
            caller = exchange.caller("uac_rtp.xml", load=Load(pause_ms=600_000), port=ports[0])
            victims.append(caller if side == "caller" else callee)
            up = len(victims)
            came_up = wait_until(lambda: _up(exchange) == up, PATIENCE_S)  # noqa: B023 - asked at once
            assert came_up, exchange.server.log()
        assert not wait_until(lambda: _up(exchange) < 2, 2 * limit_s), "while audio flows nothing ends them"
        victims[0].kill()
        victims[1].pause()
        began = time.monotonic()
        exchange.assert_clean()
        progress(f"{side}: over after {time.monotonic() - began:.1f} s")
        assert time.monotonic() - began <= limit_s + 1 + _LATE_S
        calls, _ = exchange.calls()
        assert [(call["status"], call["hangup_cause"]) for call in calls] == [
            ("completed", "MEDIA_TIMEOUT")
        ] * 2
        assert all(call["duration_sec"] <= 3 * limit_s + 2 * _LATE_S for call in calls)


def _up(exchange: Exchange) -> int:
    return sum(call["status"] == "in-progress" for call in exchange.calls()[0])


def test_a_call_whose_audio_stops(tmp_path: Path) -> None:
    """When no audio arrives the media timeout ends the call and its billing, and frees its ports."""
    limit_s = 3
    environment = {"TRUNKLINE_MEDIA_TIMEOUT_S": str(limit_s)}
    with ExitStack() as stack:
        stage = Stage(stack.enter_context(Exchange(tmp_path, environment)), stack)
        stage.calls("silenced", Peer(answers))
        stage.finish()
        case = stage.cases["silenced"]
        assert case.outcome == ("completed", "MEDIA_TIMEOUT", "system")
        assert limit_s - 1 <= case.talked_s <= limit_s + _LATE_S
        assert case.peer.came("BYE") and stage.callee.came("BYE"), "both sides are hung up on"
