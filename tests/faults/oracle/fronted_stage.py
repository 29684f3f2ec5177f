"""A stage of two servers on one PostgreSQL behind a Kamailio."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.faults import reports
from tests.faults.lengths import SOAK
from tests.faults.oracle.evidence import Evidence, Leg
from tests.faults.oracle.nodes_stage import NodesStage
from tests.support.kamailio import Front
from tests.support.server_process import ServerProcess
from tests.support.waiting import PATIENCE_S

__all__ = ["FrontedStage", "assert_none_failed", "set_up_s"]

# Far ends send a packet each 0.2 s; a machine with more to do than it can delays whole processes.
_SILENCE_S = 1.0 if SOAK else 5.0


class FrontedStage(NodesStage):
    """The stage of two nodes with a front, by which its far ends call; strangers are not trusted."""

    def __init__(self, directory: Path, database_url: str) -> None:
        # The far ends call 127.0.0.1.
        self.front = Front(directory / "front", "127.0.0.1")
        behind = {
            "TRUNKLINE_TRUSTED_SOURCES": "127.0.0.1/32",
            "TRUNKLINE_SIP_FRONTS": "127.0.0.1/32",
            "TRUNKLINE_SIP_OUTBOUND_PROXY": self.front.address,
        }
        super().__init__(directory, database_url, behind, far_sip_port=self.front.port)

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self.start_front()
        except BaseException as error:
            self.__exit__(type(error), error, error.__traceback__)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self.front.stop()

    def start_front(self) -> None:
        """Start the front, and wait until it passes calls on."""
        self.front.start([f"sip:127.0.0.1:{node.sip_port}" for node in self.nodes])

    def carry(self, *nodes: ServerProcess) -> None:
        """Wait until nodes carry calls."""
        for node in nodes:
            self.wait(partial(_carries_calls, node), "a node gets no calls", 3 * PATIENCE_S)

    def set_up_calls_that_stay(self, number: int) -> None:
        """Set up calls that nobody hangs up: at least so many, on every node."""
        before = self.far.up()
        self.load(10.0)
        self.wait(lambda: self.far.up() >= before + number, "calls do not come up")
        # The front spreads them by chance.
        self.carry(*self.nodes)
        self.far.ask("stop")

    @property
    def refusals(self) -> set[int]:
        """Statuses with which nodes may refuse calls: of the short version, on a busy machine, 503."""
        sheds = not SOAK and any("overload: work waits" in node.log() for node in self.nodes)
        return {503} if sheds else set()


def _carries_calls(node: ServerProcess) -> bool:
    return node.metric("trunkline_calls_active") >= 2


def set_up_s(leg: Leg) -> float | None:
    """Time until the caller heard ringing, or the answer; None when it heard neither."""
    heard = [at for at in (leg.rang_at, leg.answered_at) if at is not None]
    return min(heard) - leg.began_at if heard else None


def assert_none_failed(evidence: Evidence, refusals: set[int], soon_s: float, since: float = 0.0) -> None:
    """All calls were answered soon unless their callers gave up, ended by a far end, and heard throughout."""
    callers = [leg for leg in evidence.legs if leg.role == "caller" and leg.began_at >= since]
    assert callers
    own = {leg.call_id for leg in callers}
    causes = {record["hangup_cause"] for record in evidence.records if record["sip_call_id"] in own}
    assert not causes & {"CRASH", "SYSTEM_SHUTDOWN"}
    lost = [leg for leg in callers if not leg.answered and leg.ended_by != "cancelled"]
    assert {leg.status for leg in lost} <= refusals, lost
    # A caller that does not give up by itself does so when a test ends, whatever it has waited for.
    silent = [leg for leg in callers if leg.kind != "cancelled" and leg not in lost and set_up_s(leg) is None]
    assert not [leg for leg in silent if (leg.ended_at or 0.0) - leg.began_at > 2 * soon_s], silent
    heard = [leg for leg in evidence.legs if leg.began_at >= since and leg.answered and leg.dialog_s > 1.0]
    longest_s = max(set_up_s(leg) or 0.0 for leg in callers)
    silence_s = max(leg.longest_silence_s for leg in heard if leg.kind != "streamed")
    reports.sample("longest set-up, s", longest_s)
    reports.sample("longest silence, s", silence_s)
    assert longest_s < soon_s
    assert silence_s < _SILENCE_S
