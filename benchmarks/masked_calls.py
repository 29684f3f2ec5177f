"""
Masked calls between SIPp on both sides: what one costs beside a plain bridged one, and that none goes wrong.

Both parties check what they are shown, each webhook is held against the record, and the wallet against both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from benchmarks.machine import TOOL_PREFIX, sample
from benchmarks.sut import LOAD, NUMBER, SystemUnderTest
from tests.support.ports import free_port
from tests.support.server_process import ServerFailed, wait_until
from tests.support.sipp_run import Load, Sipp, start_sipp

CLAIM = (
    "CPU per masked call, INVITE to BYE on both legs, beside a plain bridged one; each call told and billed"
)
COLUMNS = {
    "what": "what",
    "calls/s": "rate",
    "calls": "calls",
    "wrong": "wrong",
    "CPU ms/call": "cpu_ms_per_call",
    "x dial": "times_dial",
    "CPU %": "server.cpu_pct",
    "answer p50 ms": "answer_ms.p50",
    "p99": "answer_ms.p99",
    "webhooks/call": "webhooks_per_call",
    "doubles": "doubles",
    "RSS MiB": "server.rss_mib",
}
_A, _B = "98110", "98220"
_HOLD_MS = 1000
MASKED = ["initiated", "a_ringing", "a_answered", "b_ringing", "in-progress", "completed"]
_DIALLED = ["initiated", "ringing", "answered", "completed"]
_PAGE = 100


def run(sut: SystemUnderTest, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Plain, masked and recorded calls, one kind after the other on the same server."""
    rate, calls = arguments.masked_rate, arguments.masked_calls
    bench = MaskedBench(sut)
    bench.step("dial", 10, 20)  # The first calls fill caches and pools; they are not counted.
    bench.step("masked", 10, 20)
    plain = bench.step("dial", rate, calls)
    steps = [plain, bench.step("masked", rate, calls)]
    bench.settings(record_calls=True)
    steps.append(bench.step("masked", rate, min(calls, 400), "masked, recorded"))
    for step in steps[1:]:
        step["times_dial"] = round(step["cpu_ms_per_call"] / plain["cpu_ms_per_call"], 2)
    return steps


class MaskedBench:
    """A server with two trunks, one for each party's numbers."""

    def __init__(self, sut: SystemUnderTest) -> None:
        self.sut = sut
        self._ports = {_A: free_port(), _B: free_port()}
        self._webhook_port = free_port()
        self._next = 0
        for digits, port in self._ports.items():
            sut.server.add_carrier(
                f"to {digits}", f"udp:127.0.0.1:{port}", outbound=True, prefixes=[f"+91{digits}"]
            )
        self.settings(webhook_url=f"http://127.0.0.1:{self._webhook_port}/", record_calls=False)

    def settings(self, **values: Any) -> None:
        """Change the account's settings of masking."""
        self._api("PATCH", "/v1/masking/settings", values)

    def step(self, what: str, rate: float, calls: int, name: str = "") -> dict[str, Any]:
        """Place calls at a rate, measure them, and compare all records of each."""
        directory = self.sut.directory
        parties = self.parties(calls)
        balance_before = self.balance_paise()
        command = self.tool(what, calls, rate)
        before = sample(self.sut.server.pid)
        done = subprocess.run(command, cwd=self.sut.source_root, capture_output=True, text=True, check=False)
        used = sample(self.sut.server.pid).since(before)
        if done.returncode != 0:
            raise ServerFailed(f"the load tool ended with {done.returncode}:\n{done.stderr}")
        report: dict[str, Any] = json.loads(done.stdout)
        results = [party.stop() for party in parties]
        spent_paise = balance_before - self.balance_paise()
        wrong = self._wrong(what, calls, report, spent_paise)
        wrong += [
            f"SIPp counts {result.successful} of {calls} calls, {result.failed} bad: {result.errors}"
            for result in results
            if (result.successful, result.failed) != (calls, 0)
        ]
        (directory / f"wrong-{self._next}.txt").write_text("\n".join(wrong))
        return {
            "ok": not wrong,
            "what": name or what,
            "rate": rate,
            "calls": calls,
            "wrong": len(wrong),
            "wrong_shown": [text[:2000] for text in wrong[:5]],
            "spent_paise": spent_paise,
            "retransmissions": sum(result.retransmissions for result in results),
            "webhooks_per_call": round(sum(map(len, report["events"].values())) / calls, 2),
            "doubles": report["doubles"],
            "cpu_ms_per_call": round(1000 * used["cpu_s"] / calls, 3),
            "answer_ms": report["answer_ms"],
            "tool_late_ms_max": report["tool_late_ms_max"],
            "server": used,
        }

    def parties(self, calls: int, hold_ms: int = _HOLD_MS) -> list[Sipp]:
        """Start both sides; each ends after that many calls."""
        started = [
            start_sipp(
                str(LOAD / scenario),
                self.sut.directory,
                self._ports[digits],
                Load(calls, 100.0, hold_ms),
                extra=["-mp", str(free_port())],
                prefix=TOOL_PREFIX,
            )
            for scenario, digits in (("uas_party_a.xml", _A), ("uas_party_b.xml", _B))
        ]
        wait_until(lambda: False, 0.5)
        return started

    def tool(self, what: str, calls: int, rate: float) -> list[str]:
        """The command that places calls and receives webhooks; no pair of numbers is called twice."""
        command = [*TOOL_PREFIX, sys.executable, "-m", "benchmarks.load.masked_load", what]
        command += ["--http-port", str(self.sut.server.http_port), "--key", self.sut.account.api_key]
        command += ["--webhook-port", str(self._webhook_port), "--number", NUMBER, "--a", _A, "--b", _B]
        command += ["--calls", str(calls), "--rate", str(rate), "--first", str(self._next)]
        self._next += calls
        return command

    def _wrong(self, what: str, calls: int, report: dict[str, Any], spent_paise: int) -> list[str]:
        """Everything in which requests, records, webhooks and the wallet do not agree."""
        wrong = list(report["refused"])
        placed = set(report["placed"])
        if len(placed) != calls:
            wrong.append(f"{len(placed)} of {calls} calls were taken")
        expected = MASKED if what == "masked" else _DIALLED
        records = {item["call_sid"]: item for item in self.records(len(placed))}
        for call_sid in placed:
            told, record = report["events"].get(call_sid, []), records.get(call_sid)
            if told != expected:
                wrong.append(f"{call_sid} was told as {told}")
            if record is None or record["status"] != "completed" or record["price"] is None:
                wrong.append(f"{call_sid} is recorded as {record}")
            elif (final := report["final"].get(call_sid)) is None or final["price"] != record["price"]:
                wrong.append(f"{call_sid}: {final} was told, {record} recorded")
        if strange := set(report["events"]) - placed:
            wrong.append(f"webhooks came of {strange}")
        if report["unsigned"]:
            wrong.append(f"{report['unsigned']} webhooks were not signed")
        prices = sum(round(100 * (records[sid]["price"] or 0)) for sid in placed & records.keys())
        if prices != spent_paise:
            wrong.append(f"the records cost {prices} paise, the wallet lost {spent_paise}")
        return wrong

    def records(self, count: int) -> list[dict[str, Any]]:
        """The newest call records."""
        return self._pages("/v1/calls", count)

    def masked_records(self, count: int) -> list[dict[str, Any]]:
        """The newest records of masked calls, as masking shows them."""
        return self._pages("/v1/masking/call-logs", count)

    def _pages(self, path: str, count: int) -> list[dict[str, Any]]:
        pages = range(1, -(-count // _PAGE) + 1)
        found = [self._api("GET", f"{path}?per_page={_PAGE}&page={page}") for page in pages]
        return [item for page in found for item in page]

    def balance_paise(self) -> int:
        """Return the balance of the wallet."""
        return round(100 * float(self._api("GET", "/v1/masking/billing")["wallet_balance"]))

    def _api(self, method: str, path: str, body: Any = None) -> Any:
        reply = self.sut.server.request(method, path, self.sut.account.api_key, body)
        if reply.status != 200:
            raise ServerFailed(f"{method} {path}: {reply.status} {reply.body}")
        return reply.data
