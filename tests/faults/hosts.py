"""
A server with calls up and calls coming in, under which something of its host breaks, and what must hold then.

Every fault goes the same way. While it lasts audio flows on, calls that hang up end, and new calls are
refused with 503 and a time to come again, by SIP and by the API, or carried. When it is over calls are
carried again within the time that is owed. Then everybody hangs up, and far ends, records, webhooks and
wallet must agree.
"""

from __future__ import annotations

import json
import secrets
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.faults import reports
from tests.faults.lengths import RTP_PORTS, SOAK, count, progress, seconds
from tests.faults.oracle.reconcile import reconcile
from tests.faults.oracle.sip_text import Message
from tests.faults.oracle.stage import FORWARDED, OracleStage
from tests.support.ports import free_port
from tests.support.server_process import wait_until
from tests.support.waiting import PATIENCE_S

__all__ = ["Fault", "Host"]

BACK_S: Final = 10.0
"""Limit for calls to be carried again after a fault."""
_BACK_LIMIT_S: Final = BACK_S if SOAK else 6 * BACK_S

_ROUNDS: Final = count("HOST_ROUNDS", short=1, long=20)
_CALLS_UP: Final = count("HOST_CALLS_UP", short=6, long=60)
_RATE: Final = float(count("HOST_RATE", short=4, long=10))
_MIX: Final = {"forwarded": 3, "cancelled": 1, "outbound": 1}


@dataclass(frozen=True, slots=True)
class Fault:
    """
    Something that breaks.

    Attributes:
        name: How the measurements call it.
        begin, end: Break it and mend it.
        lacks: What /ready says is lacking meanwhile; None when calls are carried throughout.
        answers: Whether the server can answer anything while it lasts.
        told_once: What the log says exactly once about it.
        lasts_s: How long it lasts at least, in the long version.
    """

    name: str
    begin: Callable[[], object]
    end: Callable[[], object]
    lacks: str | None = None
    answers: bool = True
    told_once: str = ""
    lasts_s: float = 30.0


class Host:
    """A server on which faults are tried one after the other, each with calls up and calls coming in."""

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        *,
        prefix: Sequence[str] = (),
        rtp_ports: int = RTP_PORTS,
    ) -> None:
        self.stage = OracleStage(directory, environment, prefix=prefix, rtp_ports=rtp_ports)
        self.server = self.stage.server
        self._probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def __enter__(self) -> Host:
        self.stage.__enter__()
        port = free_port()
        self._probe.bind(("127.0.0.1", port))
        self._probe.settimeout(PATIENCE_S)
        self.server.add_carrier("probe", f"udp:127.0.0.1:{port}", inbound=True)
        self.stage.callees(ring_s=(0.0, 0.1))
        return self

    def __exit__(self, *reason: Any) -> None:
        self._probe.close()
        self.stage.__exit__(*reason)

    def survives(self, fault: Fault) -> None:
        """Try a fault as often as the lengths say; everything that must hold is asserted."""
        for _ in range(_ROUNDS):
            try:
                self._survives_once(fault)
            finally:
                # Those that follow begin with nothing up, whatever became of this one.
                self.stage.far.ask("stop")
                self.stage.far.ask("hang_up")

    def _survives_once(self, fault: Fault) -> None:
        logged = len(self.server.log())
        steady = self._calls_up()
        self.stage.load(_RATE, _MIX, hold_s=(0.5, 2.0))
        began = time.monotonic()
        fault.begin()
        try:
            if fault.answers:
                self._holds(fault)
            lasts_s = seconds("HOST_FAULT_S", short=1.0, long=fault.lasts_s)
            wait_until(lambda: time.monotonic() - began >= lasts_s, lasts_s)
        finally:
            fault.end()
        ended = time.monotonic()
        self.stage.wait(lambda: self._answered_since(ended), "no call is carried any more")
        back_s = time.monotonic() - ended
        still_up = {leg["call_id"] for leg in self.callers() if leg["ended_at"] is None}
        assert steady <= still_up, f"{len(steady - still_up)} calls that were up are lost"
        self.stage.end_calls()
        found = reconcile(self.stage.part())
        assert not found, "\n".join(sorted(map(str, found)))
        self._is_told(fault, self.server.log()[logged:])
        reports.sample(f"{fault.name}: calls carried again after, s", back_s)
        progress(f"{fault.name}: lasted {ended - began:.1f} s, calls carried again after {back_s:.2f} s")
        assert back_s < _BACK_LIMIT_S, f"calls are carried again after {back_s:.1f} s only"

    def _calls_up(self) -> set[str]:
        """Set up some calls that stay; returns their Call-IDs."""
        before = {leg["call_id"] for leg in self.callers()}
        self.stage.load(20.0, {"forwarded": 1}, calls=_CALLS_UP)
        self.stage.wait(lambda: self.stage.far.up() >= _CALLS_UP, "calls do not come up")
        return {leg["call_id"] for leg in self.callers()} - before

    def _holds(self, fault: Fault) -> None:
        """Check the guarantees while the fault lasts."""
        if fault.lacks is None:
            assert self.lacks() is None
        else:
            self.stage.wait(lambda: self.lacks() == fault.lacks, f"{fault.lacks} is not said to be lacking")
            self.refuses()
        self.audio_flows()
        assert self.server.request("GET", "/health").status == 200
        shown = self.server.request("GET", "/v1/calls?per_page=1", self.stage.account.api_key)
        # What can be read is; where the database is away altogether the answer says so.
        assert shown.status in ((200,) if fault.lacks != "database" else (200, 503)), shown

    # What is seen of the server

    def lacks(self) -> str | None:
        """Return the resource that the server lacks; None when it accepts calls."""
        reply = self.server.request("GET", "/ready")
        assert (reply.status == 200) == (reply.body["status"] == "ready"), reply
        return None if reply.status == 200 else str(reply.body.get("lacks", reply.body["status"]))

    def refuses(self) -> None:
        """New calls get 503 and when to come again, by SIP and by the API."""
        status, retry_after = self.invite()
        assert status == 503 and int(retry_after) > 0, (status, retry_after)
        request = urllib.request.Request(
            f"{self.server.url}/v1/calls",
            json.dumps({"from": FORWARDED, "to": "+919876500001", "verbs": [{"verb": "pause"}]}).encode(),
            {"Authorization": f"Bearer {self.stage.account.api_key}", "Content-Type": "application/json"},
        )
        try:
            urllib.request.urlopen(request, timeout=PATIENCE_S).close()
        except urllib.error.HTTPError as refusal:
            with refusal:
                seen = refusal.code, refusal.headers["Retry-After"], refusal.read()
            assert seen[0] == 503 and int(seen[1] or 0) > 0, seen
        else:
            raise AssertionError("a call was placed that cannot be recorded or carried")

    def invite(self) -> tuple[int, str]:
        """Call from a trunk of our own; the final status, and its Retry-After."""
        host, port = self._probe.getsockname()
        call_id = secrets.token_hex(8)
        lines = [
            f"INVITE sip:{FORWARDED}@127.0.0.1:{self.server.sip_port} SIP/2.0",
            f"Via: SIP/2.0/UDP {host}:{port};branch=z9hG4bK{call_id};rport",
            f"From: <sip:+919876500000@{host}:{port}>;tag={call_id}",
            f"To: <sip:{FORWARDED}@127.0.0.1>",
            f"Call-ID: {call_id}",
            "CSeq: 1 INVITE",
            f"Contact: <sip:probe@{host}:{port}>",
            "Max-Forwards: 70",
            "Content-Length: 0",
        ]
        self._probe.sendto(("\r\n".join(lines) + "\r\n\r\n").encode(), ("127.0.0.1", self.server.sip_port))
        while True:
            answer = Message.read(self._probe.recv(65_535))
            if answer is None or answer.status is None or answer.first("call-id") != call_id:
                continue
            if answer.status >= 200:
                return answer.status, answer.first("retry-after")

    def audio_flows(self) -> None:
        """RTP goes out to the far ends."""
        sent = self.server.metric("trunkline_rtp_packets_sent_total")
        enough = sent + 2 * _CALLS_UP
        self.stage.wait(
            lambda: self.server.metric("trunkline_rtp_packets_sent_total") > enough, "no audio flows"
        )

    def callers(self) -> list[dict[str, Any]]:
        """Return the results of every caller so far."""
        return [leg for leg in self.stage.far.seen()["legs"] if leg["role"] == "caller"]

    def _answered_since(self, moment: float) -> bool:
        return any(leg["began_at"] > moment and leg["answered_at"] is not None for leg in self.callers())

    def _is_told(self, fault: Fault, log: str) -> None:
        if fault.lacks is not None:
            assert log.count("rejecting new calls") == 1, log[-3000:]
        if fault.told_once:
            assert log.count(fault.told_once) == 1, log[-3000:]
        assert "Traceback" not in log, log[-6000:]
