"""Traffic that is meant to harm, or whose receivers do not take it: forged RTP, dead and slow webhooks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults import reports
from tests.faults.lengths import SOAK, count, progress, seconds

pytestmark = pytest.mark.durable

_ROOT = Path(__file__).resolve().parents[2]


def measured(directory: Path, *command: str) -> dict[str, Any]:
    """Return the results of a benchmark in a process of its own."""
    found = directory / "measured.json"
    whole = [sys.executable, "-m", *command, "--json", str(found)]
    subprocess.run(whole, cwd=_ROOT, check=True, stdout=subprocess.DEVNULL)
    result: dict[str, Any] = json.loads(found.read_text())
    return result


@pytest.mark.long(reason="a load of webhooks for ten seconds")
def test_dead_and_slow_receivers_delay_no_other(tmp_path: Path) -> None:
    """With a fifth of the receivers dead and a fifth slow, all others get every event, in order and soon."""
    rate = count("WEBHOOKS_PER_S", short=100, long=1000)
    length = seconds("WEBHOOKS_S", short=4.0, long=60.0)
    others = ("--destinations", "10", "--dead", "2", "--slow", "2")
    command = ("benchmarks.webhooks", "delay", "--rate", str(rate), "--seconds", str(length), *others)
    result = measured(tmp_path, *command)["delay"]
    reports.figure(**result)
    progress(f"webhooks at {rate}/s: p50 {result['p50_ms']} ms, p99 {result['p99_ms']} ms")
    assert result["published"] >= 0.9 * rate * length
    assert result["arrived"] == result["to_healthy"], "events for receivers that live have not come"
    assert result["out_of_order"] == 0
    assert sum(result["rows"].values()) == result["published"], "events are neither delivered nor waiting"
    assert result["p99_ms"] < (1_000 if SOAK else 10_000)


def test_forged_audio_is_neither_heard_nor_answered(tmp_path: Path) -> None:
    """Ten thousand forged packets a second at a call are dropped, get no audio, and cost it no packet."""
    length = seconds("RTP_ATTACK_S", short=3.0, long=600.0)
    result = measured(tmp_path, "benchmarks.rtp_attack", "--seconds", str(length), "--rate", "10000")
    reports.figure(**result)
    progress(f"forged RTP: {result}")
    assert result["forged"] > 1000 * length, "the attack did not take place"
    assert result["dropped"] > 0
    assert (result["heard"], result["answered"]) == (0, 0)
    # Other tests run beside the short version, and a busy machine loses some of the far ends' packets itself.
    assert result["lost"] <= (0 if SOAK else 50 * length * 0.25)
    if SOAK:
        assert result["with_p99_ms"] - result["without_p99_ms"] < 1.0
