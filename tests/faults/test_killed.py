"""SIGKILL with calls up and more coming in, again and again: nothing is lost, none pays for what was not."""

from __future__ import annotations

import asyncio
import io
import random
import time
import urllib.request
import wave
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.faults import reports
from tests.faults.lengths import SOAK, count, progress, seconds
from tests.faults.oracle import Evidence, assert_nothing_lost
from tests.faults.oracle.stage import OracleStage
from tests.support.postgres import running_postgres
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.durable

_MIX = {"forwarded": 6, "streamed": 1, "cancelled": 1, "outbound": 2, "otp": 1, "masked": 1}
_SEED = 20_261_122
# What we owe on a machine that does nothing else; the short version asks whether it comes back at all.
_READY_S = 3.0 if SOAK else PATIENCE_S
_TOLD_S = 10.0 if SOAK else PATIENCE_S


_LONG = pytest.mark.long(reason="the same load and kills again")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=_LONG)])
def database(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Location of the records."""
    if request.param == "sqlite":
        yield {}
        return
    with running_postgres() as server:
        yield {"TRUNKLINE_DATABASE_URL": asyncio.run(server.empty_url())}


@pytest.mark.timeout(0 if SOAK else 300)
def test_a_server_killed_under_load_loses_nothing(tmp_path: Path, database: dict[str, str]) -> None:
    """
    Killed at random moments with calls up and more coming in, and while it recovers from that, each accepted
    call gets a record with an end and a cause, each event arrives, recordings play, reserves are released and
    the wallet balances.
    """
    kills = count("KILLS", short=2, long=200)
    part = count("KILLS_PART", short=2, long=20)
    recovering = count("KILLS_RECOVERING_EACH", short=2, long=5)
    up = count("KILL_CALLS", short=30, long=300)
    rate = seconds("KILL_RATE", short=8.0, long=20.0)
    chance = random.Random(_SEED)
    found = _Found()
    with OracleStage(tmp_path, database, seed=_SEED) as stage:
        # A fork of a process that has all modules is ready sooner than a server is.
        stage.server.forked = not SOAK
        # Whichever side is tired of it first; some kinds are short.
        hold_s = (1.5 * up / rate, 3.0 * up / rate)
        stage.callees(ring_s=(0.0, 0.4), hold_s=hold_s, refuse_share=0.05)
        for number in range(1, kills + 1):
            if number % part == 1:
                stage.load(rate, _MIX, hold_s=hold_s, record=True)
            # Not always at the full number: also while it is still coming back from the last time.
            least = chance.randint(up // 2, up)
            stage.wait(lambda least=least: stage.far.up() >= least, "calls do not come up")
            wait_until(lambda: False, chance.uniform(0.0, 1.0))
            stage.kill()
            if number % recovering == 0:
                stage.server.launch()
                wait_until(lambda: False, chance.uniform(0.1, 1.5))
                stage.kill()
            found.ready_s.append(stage.restart())
            found.ready_at.append(time.monotonic())
            reports.sample("ready after a kill, s", found.ready_s[-1])
            progress(f"kill {number} of {kills}: ready after {found.ready_s[-1]:.2f} s")
            if number % part == 0 or number == kills:
                stage.wait(lambda: stage.far.up() >= up // 3, "calls do not come up again")
                stage.end_calls()
                found.judge(stage)
    reports.figure(**found.counts, kills=kills, ready_s=round(max(found.ready_s), 2))
    reports.figure(told_after_s=round(found.told_after_s, 1))
    assert found.counts["cut"] >= kills * up // 4
    assert found.counts["recordings"] >= kills
    assert found.counts["told"] >= kills and found.told_after_s < _TOLD_S
    assert max(found.ready_s) < _READY_S, found.ready_s


@dataclass(slots=True)
class _Found:
    """
    Measurements of a run so far.

    Attributes:
        counts: Records, and calls of them that a kill has cut; legs, events and repeated ones; charges;
            requests that were never answered; playable recordings; far ends that the restarted server told of
            the end of their call.
        ready_s, ready_at: Duration and end of each restart.
        told_after_s: Longest time after a restart until a far end was told.
    """

    counts: Counter[str] = field(default_factory=Counter)
    ready_s: list[float] = field(default_factory=list)
    ready_at: list[float] = field(default_factory=list)
    told_after_s: float = 0.0

    def judge(self, stage: OracleStage) -> None:
        """Judge the calls since the last time, now that all are over."""
        evidence = stage.part()
        assert_nothing_lost(evidence)
        told, latest_s = _told(evidence, self.ready_at)
        self.told_after_s = max(self.told_after_s, latest_s)
        summary = _summary(evidence)
        assert told > summary["cut"] // 10, f"{told} far ends were told of the end of {summary['cut']} calls"
        self.counts.update(summary, recordings=_recordings_play(stage, evidence), told=told)
        progress(f"{dict(self.counts)}, told after {self.told_after_s:.1f} s at most")


def _told(evidence: Evidence, ready_at: list[float]) -> tuple[int, float]:
    """Return the number of far ends that the restarted server sent BYE, and the longest delay."""
    waits_s = []
    for killed_at in evidence.kills:
        for leg in evidence.legs:
            up = leg.confirmed_at is not None and leg.confirmed_at < killed_at - 2.0
            if up and leg.ended_by == "peer" and leg.ended_at is not None and leg.ended_at > killed_at:
                # A server that is killed again before it has told everybody leaves the rest to the next one.
                lives = [at for at in ready_at if at <= leg.ended_at]
                waits_s.append(leg.ended_at - lives[-1] if lives else 0.0)
    return len(waits_s), max(waits_s, default=0.0)


def _recordings_play(stage: OracleStage, evidence: Evidence) -> int:
    """Return the number of recordings; each of them must be a whole WAV of two channels."""
    played = 0
    for record in evidence.records:
        if record["recording_status"] == "completed":
            link = stage.api("GET", f"/v1/calls/{record['call_sid']}/recording")["url"]
            with urllib.request.urlopen(stage.server.url + link) as response:
                content = response.read()
            with wave.open(io.BytesIO(content)) as file:
                assert file.getnchannels() == 2
                assert len(file.readframes(file.getnframes())) == 4 * file.getnframes()
            played += 1
        elif record["recording_status"] not in (None, "failed"):
            raise AssertionError(f"{record['call_sid']}: its recording is {record['recording_status']}")
    return played


def _summary(evidence: Evidence) -> dict[str, int]:
    """Return the counts of all evidence."""
    return {
        "records": len(evidence.records),
        "cut": sum(record["hangup_cause"] == "CRASH" for record in evidence.records),
        "legs": len(evidence.legs),
        "events": len(evidence.hooks),
        "repeated_events": len(evidence.hooks) - len({hook.delivery_id for hook in evidence.hooks}),
        "charges": len(evidence.ledger),
        "unsure": evidence.unsure,
    }
