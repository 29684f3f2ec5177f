"""Masked calls between SIPp on both sides: a short run of the benchmark, and one in which the server dies."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks.masked_calls import MASKED, MaskedBench
from benchmarks.sut import SystemUnderTest
from tests.support.server_process import wait_until

pytestmark = pytest.mark.skipif(shutil.which("taskset") is None, reason="there is no taskset")

_CALLS, _RATE = 120, 6.0
_FINAL = {"completed", "failed", "no-answer"}


def test_masked_and_plain_calls_are_shown_told_and_billed_as_they_were(tmp_path: Path) -> None:
    with SystemUnderTest(tmp_path, rtp_ports=2_000) as sut:
        bench = MaskedBench(sut)
        for step in (bench.step("masked", 20.0, 40), bench.step("dial", 20.0, 20)):
            assert step["wrong_shown"] == [] and step["ok"]


@pytest.mark.long(reason="a load, a kill and the recovery")
@pytest.mark.timeout(180)
def test_a_server_that_is_killed_amid_masked_calls_owes_nobody_anything(tmp_path: Path) -> None:
    """After SIGKILL, twice: every record has an end, each event came under one id, the wallet is right."""
    with SystemUnderTest(tmp_path, rtp_ports=2_000) as sut:
        bench = MaskedBench(sut)
        parties = bench.parties(_CALLS, hold_ms=1500)
        before_paise = bench.balance_paise()
        tool = _start(sut, bench)
        try:
            for reached in (10, 35):
                assert wait_until(lambda least=reached: len(bench.records(_CALLS)) >= least, 30)
                sut.server.kill()
                sut.server.start()
            printed, _ = tool.communicate(timeout=120)
        finally:
            tool.kill()
            tool.wait()
            for party in parties:
                party.kill()
        report: dict[str, Any] = json.loads(printed)
        records = {item["id"]: item for item in bench.masked_records(_CALLS)}
        assert records.keys() >= set(report["placed"]), "a call that was taken is recorded"
        assert len(report["placed"]) >= 35 and len(report["placed"]) + len(report["refused"]) == _CALLS
        wrong = [
            (record, report["events"].get(sid))
            for sid, record in records.items()
            if not _told_as_it_was(record, report["events"].get(sid, []))
        ]
        assert wrong == []
        cut = [record for record in records.values() if record["hangup_cause"] != "NORMAL_CLEARING"]
        assert len(cut) >= 2, "calls were up when the server died"
        assert set(report["events"]) <= records.keys()
        spent_paise = before_paise - bench.balance_paise()
        assert spent_paise == sum(round(100 * item["price"]) for item in records.values())
        assert report["unsigned"] == 0


def _start(sut: SystemUnderTest, bench: MaskedBench) -> subprocess.Popen[str]:
    command = [*bench.tool("masked", _CALLS, _RATE), "--quiet", "30"]
    return subprocess.Popen(command, cwd=sut.source_root, stdout=subprocess.PIPE, text=True)


def _told_as_it_was(record: dict[str, Any], events: list[str]) -> bool:
    """Its end is the last that was said of it, and before that came what happens in a call, in its order."""
    *on_the_way, last = events or [""]
    return (
        record["status"] in _FINAL
        and last == record["status"]
        and record["ended_at"] is not None
        and on_the_way == MASKED[: len(on_the_way)]
        and record["price"] is not None
    )
