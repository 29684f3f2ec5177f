"""Effects of voice agents on calls: their own call ends as specified, all others go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.faults import reports
from tests.faults.agents import EchoAgent, SwallowingRelay, hostile_agent
from tests.faults.lengths import count, progress
from tests.faults.oracle import assert_nothing_lost
from tests.faults.oracle.stage import STREAMED, OracleStage
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.durable

MIB = 1 << 20
STALLED = count("STALLED_AGENTS", short=100, long=1000)
OF_EACH = count("HOSTILE_AGENTS", short=2, long=50)
# Kinds of hostile agents that a call with them ends for, and what it ends with.
KINDS = {
    "never_reads": "STREAM_DISCONNECTED",
    "no_pong": "STREAM_DISCONNECTED",
    "half_frame": "STREAM_DISCONNECTED",
    "garbage": "STREAM_DISCONNECTED",
    "huge_message": "STREAM_DISCONNECTED",
    "tiny_frames": "STREAM_DISCONNECTED",
    "mute_server": "STREAM_DISCONNECTED",
    "slow_handshake": "STREAM_DISCONNECTED",
    "flood": "NORMAL_CLEARING",
}
NEIGHBOURS = 20
# A path that goes dead is one more kind.
WANTED = [cause for cause in (*KINDS.values(), "STREAM_DISCONNECTED") for _ in range(OF_EACH)]
WANTED += ["NORMAL_CLEARING"] * NEIGHBOURS


class Agents:
    """The server, and the number whose calls go to this agent or that."""

    def __init__(self, stage: OracleStage) -> None:
        self.stage = stage
        numbers = stage.api("GET", "/v1/phone-numbers")
        self._number = next(number["id"] for number in numbers if number["number"] == STREAMED)
        self.good_url = f"ws://127.0.0.1:{stage.far.webhook_port}/agent"

    def bind(self, url: str, **binding: Any) -> None:
        """Bind calls that arrive from now on to this agent."""
        body = {"target": "media_stream", "stream_url": url, "status_webhook_url": self.stage.webhook_url}
        path = f"/v1/phone-numbers/{self._number}/inbound"
        self.stage.api("PUT", path, {**body, **binding, "force": True})

    def call(self, calls: int, rate: float = 20.0, **values: Any) -> None:
        """Place calls to whom the number is bound to, and wait until all have been placed."""
        before = self.stage.far.counts()["legs"]
        self.stage.load(rate, {"streamed": 1.0}, calls=calls, **values)
        self.stage.wait(lambda: self.stage.far.counts()["legs"] >= before + calls, "calls are not placed")

    def neighbours(self, calls: int = NEIGHBOURS) -> None:
        """Calls of everybody else, with an agent and without; they come, talk and go while it happens."""
        self.bind(self.good_url)
        self.stage.load(10.0, {"forwarded": 1.0, "streamed": 1.0}, calls=calls, hold_s=(2.0, 5.0))

    def causes(self) -> list[str | None]:
        """Return the hangup causes of the server's calls, the latest first; None for active ones."""
        return [record["hangup_cause"] for record in self.stage.pages("/v1/calls")]

    def resident(self) -> float:
        """Memory of the server."""
        return self.stage.server.metric("process_resident_memory_bytes")


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agents]:
    with OracleStage(tmp_path_factory.mktemp("agents")) as stage:
        yield Agents(stage)


def nothing_is_left(agents: Agents) -> None:
    """Every call is over, nobody disagrees about any, and no port or stream is left."""
    agents.stage.end_calls()
    assert_nothing_lost(agents.stage.evidence())
    assert agents.stage.server.metric("trunkline_rtp_ports_in_use") == 0


@pytest.mark.long(reason="holds calls for half a minute")
def test_stalled_agents_cost_no_memory(agents: Agents) -> None:
    """Agents that read nothing cost bounded memory while they stall, and none when they are gone."""
    before = agents.resident()
    known = len(agents.causes())
    with hostile_agent("never_reads") as url:
        agents.bind(url)
        agents.call(STALLED, rate=40.0)
        full = agents.resident()
        agents.stage.wait(lambda: len(agents.causes()) - known >= STALLED, "calls are missing")

        def all_cut() -> bool:
            return agents.causes().count("STREAM_DISCONNECTED") >= STALLED

        agents.stage.wait(all_cut, "agents that read nothing were not cut off", PATIENCE_S + 60)
        stalled = agents.resident()
    nothing_is_left(agents)
    grown = max(full, stalled) - before
    reports.figure(stalled=STALLED, grown_mib=round(grown / MIB, 1))
    progress(f"{STALLED} stalled agents: {grown / MIB:.1f} MiB more")
    assert grown < 48 * MIB + STALLED * 256 * 1024
    assert stalled - full < 32 * MIB, "it grows for as long as they stall"


@pytest.mark.long(reason="holds calls for a quarter of a minute")
def test_hostile_agents_harm_their_own_calls_alone(agents: Agents) -> None:
    """Agents that flood, stall, send garbage, never speak or are cut off end their own calls and no other."""
    known = len(agents.causes())
    with ExitStack() as stack:
        good = stack.enter_context(EchoAgent())
        relay = stack.enter_context(SwallowingRelay(urlsplit(good.url).port or 0))
        for kind in KINDS:
            agents.bind(stack.enter_context(hostile_agent(kind)))
            agents.call(OF_EACH)
        before = agents.stage.far.counts()["callers_up"]
        agents.bind(f"ws://127.0.0.1:{relay.port}/ws")
        agents.call(OF_EACH)
        agents.stage.wait(
            lambda: relay.paths >= OF_EACH and agents.stage.far.counts()["callers_up"] > before,
            "calls are not answered",
        )
        relay.go_dead()
        agents.neighbours()
        agents.stage.wait(
            lambda: len(agents.causes()) >= known + len(WANTED) and None not in agents.causes(),
            "calls do not end",
            PATIENCE_S + 60,
        )
    nothing_is_left(agents)
    assert Counter(agents.causes()[: len(agents.causes()) - known]) == Counter(WANTED)


@pytest.mark.long(reason="calls wait for an agent that starts twice")
def test_calls_outlive_an_agent_that_is_started_again(agents: Agents) -> None:
    """Calls whose streams may be opened again go on with an agent that was killed and started again."""
    known = len(agents.causes())
    with EchoAgent() as agent:
        agents.bind(agent.url, stream_max_retries=8)
        agents.call(5)
        agents.stage.wait(lambda: agents.stage.far.counts()["callers_up"] == 5, "calls are not answered")
        agent.kill()
        agent.start()
        agents.neighbours(10)
        agents.stage.wait(lambda: len(agents.causes()) >= known + 15, "calls are missing")
        assert wait_until(lambda: agents.causes().count(None) == 5, PATIENCE_S), agents.causes()
        assert agents.stage.far.counts()["callers_up"] == 5
        nothing_is_left(agents)
    ended = agents.causes()[: len(agents.causes()) - known]
    assert set(ended) == {"NORMAL_CLEARING"}
