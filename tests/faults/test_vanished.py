"""
Far ends that vanish, each in another state of its call: what ends the call, when, and what is billed.

All cases of a server are played at the same time, for the longest of them takes what RFC 3261 gives a peer to
come back: 32 s. A far end that is stopped, killed or cut off does the same as one that says nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from fixtures.server_process import wait_until
from tests.faults.lengths import SOAK, progress
from tests.faults.peers import Peer, answers, deaf_after, silent
from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.waiting import PATIENCE_S

NUMBER: Final = "+919812345678"
OVER: Final = ("completed", "failed", "no-answer", "busy", "canceled")
GIVEN_UP_S: Final = 32.0
"""64 times T1: how long a peer may say nothing (RFC 3261 13.3.1.4, 17.1.1.2)."""
_LATE_S: Final = 3.0 if SOAK else 25.0
"""How much later than it should anything may happen."""


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
        """What is billed, in seconds."""
        return int(self.record["duration_sec"] or 0)


class Stage:
    """A server with a polite callee, and peers that vanish."""

    def __init__(self, exchange: Exchange, stack: ExitStack) -> None:
        self.exchange, self._stack = exchange, stack
        self.callee = stack.enter_context(Peer(answers, exchange.callee_port))
        self.cases: dict[str, Case] = {}

    def called(self, name: str, peer: Peer, **more: Any) -> None:
        """Have the server call a peer, hold for a second and hang up."""
        self._stack.enter_context(peer)
        carrier = self.exchange.server.add_carrier(name, f"udp:127.0.0.1:{peer.port}", outbound=True)
        verbs = more.pop("verbs", [{"verb": "pause", "length": 1}, {"verb": "hangup"}])
        body = {"from": FORWARDED, "to": NUMBER, "verbs": verbs, "carrier_sid": carrier, **more}
        self.cases[name] = Case(peer, str(self.exchange.api("POST", "/v1/calls", body)["call_sid"]))

    def calls(self, name: str, peer: Peer) -> None:
        """Have a peer call the number that is forwarded to the polite callee."""
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
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Case]]:
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
        stage.finish()
        yield stage.cases


def test_a_caller_that_vanishes_before_its_ack(cases: dict[str, Case]) -> None:
    """A caller that never acknowledges its answer gets it for 32 s; then both sides are hung up on."""
    case = cases["answered"]
    assert case.peer.told("INVITE").count(200) >= 5, "the answer was repeated"
    assert case.peer.came("BYE"), "it is hung up on, in case it is there after all"
    first_s = case.peer.came("BYE")[0] - case.peer.heard[0][0]
    assert GIVEN_UP_S - 2.0 < first_s < GIVEN_UP_S + _LATE_S
    assert case.outcome == ("completed", "RECOVERY_ON_TIMER_EXPIRE", "carrier")


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


def test_a_callee_that_vanishes_before_it_is_hung_up_on(cases: dict[str, Case]) -> None:
    """A callee that never answers a BYE is given up after 32 s, and billed until the BYE, not until then."""
    case = cases["hung up on"]
    byes = case.peer.came("BYE")
    assert byes[-1] - byes[0] <= GIVEN_UP_S + _LATE_S
    assert case.record["status"] == "completed"
    assert case.talked_s < GIVEN_UP_S - 5


@pytest.mark.parametrize("refresher", ["uac", "uas"])
def test_a_session_that_is_not_refreshed(cases: dict[str, Case], refresher: str) -> None:
    """A session timer that is not refreshed, by us or by the peer, ends the call and its billing."""
    case = cases[f"refreshed by {refresher}"]
    assert case.record["status"] == "completed"
    assert case.peer.came("BYE")
    assert case.talked_s <= 4 + _LATE_S


def test_a_call_whose_audio_stops(tmp_path: Path) -> None:
    """When nobody is heard any more the media timeout ends the call, its billing, and frees its ports."""
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
