"""
Calls that are up while something of the host fails under them, and what has to hold then.

Every fault goes the same way: some calls are up, with audio; the fault comes; audio flows on, and a call that
is hung up meanwhile ends; new calls are either refused with 503 and Retry-After or carried; the fault goes;
new calls are carried again within the time that is owed; and then every call is in the records with an end,
the wallet has paid what the records say, and nothing is left over.
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fixtures.server_process import wait_until
from fixtures.sipp_run import Load, Sipp
from tests.sipp.exchange import FORWARDED, Exchange
from tests.support.waiting import PATIENCE_S

__all__ = ["BACK_LIMIT_S", "Fault", "Host", "Outcome"]

BACK_LIMIT_S: Final = 10.0
"""What is owed: so long after a fault is over, calls are taken again."""

_SLACK: Final = 5.0
_CALLS_UP: Final = 4
_HOLD: Final = [{"verb": "play", "url": "prompt:hold", "loop": 0}]
_CALLEE: Final = "+919900000001"


@dataclass(frozen=True, slots=True)
class Fault:
    """
    Something that breaks.

    Attributes:
        begin, end: Break it and mend it.
        lacks: What /ready says is lacking; none when calls are to be carried throughout.
        lasts_s: How long it is broken, beyond what the checks take.
        answers: Whether the server can answer anything while it lasts.
    """

    begin: Callable[[], None]
    end: Callable[[], None]
    lacks: str | None = None
    lasts_s: float = 0.0
    answers: bool = True


@dataclass(frozen=True, slots=True)
class Outcome:
    """How long the fault lasted, and how long after it the first new call was carried."""

    lasted_s: float
    back_s: float


class Host:
    """A server with a callee behind it, on which faults are tried one after the other."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        self.exchange = Exchange(directory, environment)
        self._callee: Sipp | None = None

    def __enter__(self) -> Host:
        self.exchange.__enter__()
        self._callee = self.exchange.callee(load=Load(calls=100_000), extra="-rtp_echo")
        return self

    def __exit__(self, *reason: Any) -> None:
        self.exchange.__exit__(*reason)

    @property
    def log(self) -> str:
        """What the server has printed."""
        return self.exchange.server.log()

    # The course of a fault

    def survives(self, fault: Fault) -> Outcome:
        """Try a fault; everything that must hold is asserted."""
        before = self._balance_paise()
        known = self.exchange.calls()[1]
        logged = len(self.log)
        up = [self._place() for _ in range(_CALLS_UP)]
        began = time.monotonic()
        fault.begin()
        try:
            self._holds_during(fault, up)
            wait_until(lambda: time.monotonic() - began >= fault.lasts_s, fault.lasts_s + 1)
        finally:
            fault.end()
        ended = time.monotonic()
        after = self._place()
        back_s = time.monotonic() - ended
        assert back_s < BACK_LIMIT_S * _SLACK, f"back after {back_s:.1f} s"
        for call_sid in [*up[1:], after]:
            assert self._call(call_sid)["status"] == "in-progress", "a call that was up was lost"
            self.exchange.api("DELETE", f"/v1/calls/{call_sid}")
        self.exchange.assert_clean()
        self._balances(before, known, [*up, after])
        self._told_once(self.log[logged:], fault)
        return Outcome(ended - began, back_s)

    def _holds_during(self, fault: Fault, up: list[str]) -> None:
        if not fault.answers:
            return
        if fault.lacks is not None:
            assert wait_until(lambda: self.ready() == fault.lacks, PATIENCE_S), self.log[-3000:]
            self.refuses()
        else:
            assert self.ready() is None
        self.audio_flows()
        # The end of this one can only be kept in memory now.
        self.exchange.api("DELETE", f"/v1/calls/{up[0]}")
        assert wait_until(lambda: self.exchange.server.metric("trunkline_calls_active") < len(up), PATIENCE_S)
        assert self._call(up[1])["status"] == "in-progress"

    # What can be seen of the server

    def ready(self) -> str | None:
        """What the server says it lacks; None when it takes calls."""
        reply = self.exchange.server.request("GET", "/ready")
        assert (reply.status == 200) == (reply.body["status"] == "ready"), reply
        return None if reply.status == 200 else str(reply.body.get("lacks", reply.body["status"]))

    def refuses(self) -> None:
        """New calls get 503 and when to try again, by SIP and by the API."""
        caller = self.exchange.caller("uac_full.xml", number=FORWARDED)
        self.exchange.finish(caller)
        request = urllib.request.Request(
            f"{self.exchange.server.url}/v1/calls",
            b'{"from": "%s", "to": "%s"}' % (FORWARDED.encode(), _CALLEE.encode()),
            {
                "Authorization": f"Bearer {self.exchange.account.api_key}",
                "Content-Type": "application/json",
            },
        )
        try:
            urllib.request.urlopen(request, timeout=PATIENCE_S).close()
        except urllib.error.HTTPError as refusal:
            with refusal:
                assert refusal.code == 503 and int(refusal.headers["Retry-After"]) > 0
        else:
            raise AssertionError("a call was placed that could not be recorded")

    def audio_flows(self) -> None:
        """RTP goes out to the callees."""
        sent = self._sent()
        assert wait_until(lambda: self._sent() > sent + 10 * _CALLS_UP, PATIENCE_S), "no audio flows"

    def _sent(self) -> float:
        return self.exchange.server.metric("trunkline_rtp_packets_sent")

    def _place(self) -> str:
        body = {"from": FORWARDED, "to": _CALLEE, "verbs": _HOLD}
        placed: list[str] = []

        def taken() -> bool:
            reply = self.exchange.server.request("POST", "/v1/calls", self.exchange.account.api_key, body)
            if reply.status == 201:
                placed.append(str(reply.data["call_sid"]))
            else:
                assert reply.status in (429, 503), reply
            return bool(placed)

        assert wait_until(taken, PATIENCE_S), "no call can be placed"
        assert self.exchange.wait_for_status(placed[0], "in-progress")
        return placed[0]

    def _call(self, call_sid: str) -> dict[str, Any]:
        account = self.exchange.account.account_sid
        found: dict[str, Any] = self.exchange.api("GET", f"/v1/Accounts/{account}/Calls/{call_sid}")
        return found

    def _balance_paise(self) -> int:
        return round(float(self.exchange.api("GET", "/v1/wallet")["balance_inr"]) * 100)

    def _balances(self, before_paise: int, known: int, accepted: list[str]) -> None:
        """Every accepted call has its end, and the wallet has paid what the records say."""
        total = self.exchange.calls()[1]
        calls, _ = self.exchange.calls(per_page=max(total - known, 1))
        calls = calls[: total - known]
        assert {call["call_sid"] for call in calls} >= set(accepted)
        for call in calls:
            assert call["ended_at"] and call["hangup_cause"], call
        paid = sum(round(float(call["price_inr"] or 0) * 100) for call in calls)
        assert before_paise - self._balance_paise() == paid
        for call in calls:
            if call["call_sid"] in accepted:
                assert call["status"] == "completed" and float(call["price_inr"]) > 0, call

    def _told_once(self, log: str, fault: Fault) -> None:
        refusals = log.count("new calls are refused")
        assert refusals == (fault.lacks is not None), log[-3000:]
        assert "Traceback" not in log, log[-6000:]
