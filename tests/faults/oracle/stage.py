"""
A server between the oracle's far ends, and the evidence of what has become of their calls.

The server is a process that a test starts, kills, starves or restarts as it likes; the far ends are another,
which goes on. When the calls are over `evidence` gathers what everybody knows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.faults.lengths import RTP_PORTS
from tests.faults.oracle.evidence import Evidence
from tests.support.ports import free_port
from tests.support.server_process import Account, Reply, ServerFailed, ServerProcess, wait_until
from tests.support.waiting import PATIENCE_S

__all__ = ["FORWARDED", "STREAMED", "FarEnds", "OracleStage"]

# The first one of 918047000 is that of the account that a first start makes.
FORWARDED, STREAMED = "+918047000101", "+918047000102"
_ROOT = Path(__file__).resolve().parents[3]
_PAGE = 100
# After this long without an event no more are on their way.
_QUIET_S = 1.0


class FarEnds:
    """
    The far ends' process.

    Attributes:
        caller_port, callee_port: Their SIP addresses on 127.0.0.1.
        webhook_port: Where events go (`/events`), and where an agent is (`/agent`).
    """

    def __init__(self, server: ServerProcess, directory: Path, seed: int = 1, sip_port: int = 0) -> None:
        self.caller_port, self.callee_port, self.webhook_port = free_port(), free_port(), free_port()
        self._seen = directory / "far-ends.json"
        command = [sys.executable, "-m", "tests.faults.oracle.far_ends", "--seed", str(seed)]
        command += ["--caller-port", str(self.caller_port), "--callee-port", str(self.callee_port)]
        command += ["--webhook-port", str(self.webhook_port), "--http-port", str(server.http_port)]
        command += ["--sip-port", str(sip_port or server.sip_port)]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    @property
    def pid(self) -> int:
        """Their process, for who wants to stop it for a while."""
        return self._process.pid

    def ask(self, do: str, **values: Any) -> dict[str, Any]:
        """Send a command (see `far_ends`); the answer has the current counts."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **values}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def counts(self) -> dict[str, Any]:
        """Return the numbers of legs, events and active calls."""
        return self.ask("count")

    def up(self) -> int:
        """Return the number of active calls at the callees."""
        return int(self.counts()["callees_up"])

    def seen(self) -> dict[str, Any]:
        """Everything that they have seen."""
        self.ask("write", path=str(self._seen))
        found: dict[str, Any] = json.loads(self._seen.read_text())
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise ServerFailed("the process of the far ends has ended")
        found: dict[str, Any] = json.loads(line)
        return found


class OracleStage:
    """
    A server with a trunk of callers and one of callees, a number that is forwarded and one with an agent.

    Attributes:
        server, far: The two processes.
        account: Whose calls they are.
        kills: When the server was killed.
    """

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str] | None = None,
        *,
        seed: int = 1,
        rtp_ports: int = RTP_PORTS,
        prefix: Sequence[str] = (),
        far_sip_port: int = 0,
        callee_sip_port: int = 0,
    ) -> None:
        self.directory = directory
        self.server = ServerProcess(
            directory / "server",
            environment={"TRUNKLINE_MAX_CPS": "1000", **(environment or {})},
            rtp_ports=rtp_ports,
            prefix=prefix,
        )
        self.account = Account("", "")
        self.kills: list[float] = []
        self._balance_paise = 0
        self._known: set[str | int] = set()
        self._secret = ""
        self._seed, self._far_sip_port, self._callee_sip_port = seed, far_sip_port, callee_sip_port

    def __enter__(self) -> Self:
        with self._starting():
            self.far = FarEnds(self.server, self.directory, self._seed, self._far_sip_port)
            self._set_up()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.far.close()
        if kind is None:
            self.server.stop()
        else:
            self.server.kill()  # What a test has left up is not to hide why it failed.

    def _starting(self) -> AbstractContextManager[None]:
        """Start all servers for a block that sets them up."""
        return self.server.starting()

    def _set_up(self) -> None:
        server, far = self.server, self.far
        server.add_carrier("callers", f"udp:127.0.0.1:{far.caller_port}", inbound=True)
        callee_port = self._callee_sip_port or far.callee_port
        server.add_carrier("callees", f"udp:127.0.0.1:{callee_port}", outbound=True)
        self.account = server.add_account("Oracle", balance_inr=10_000_000)
        account = self.account.account_sid
        self._secret = str(
            server.command("accounts", "webhook-secret", "--account", account)["webhook_secret"]
        )
        forward = {"target": "forward", "forward_to": f"sip:callee@127.0.0.1:{callee_port}"}
        server.add_number(self.account, FORWARDED, {**forward, "status_webhook_url": self.webhook_url})
        stream = {"target": "media_stream", "stream_url": f"ws://127.0.0.1:{far.webhook_port}/agent"}
        server.add_number(self.account, STREAMED, {**stream, "status_webhook_url": self.webhook_url})
        self.api("PATCH", "/v1/masking/settings", {"webhook_url": self.webhook_url, "record_calls": False})
        self._balance_paise = self.paise("balance")

    @property
    def webhook_url(self) -> str:
        """URL for all events."""
        return f"http://127.0.0.1:{self.far.webhook_port}/events"

    def load(self, rate: float, mix: Mapping[str, float] | None = None, **values: Any) -> None:
        """Place calls at a rate from now on; forwarded ones, unless a mix is given."""
        self.far.ask(
            "start",
            rate=rate,
            mix=mix or {"forwarded": 1.0},
            secret=self._secret,
            numbers={"forwarded": FORWARDED, "streamed": STREAMED},
            api_key=self.account.api_key,
            from_number=FORWARDED,
            webhook_url=self.webhook_url,
            **values,
        )

    def callees(self, **values: Any) -> None:
        """Set the behaviour of callees from now on: `ring_s`, `hold_s` (from, to), `refuse_share`."""
        self.far.ask("callees", **values)

    def kill(self) -> None:
        """Kill the server, now."""
        assert self.server.process is not None, "the server has not been started"
        self.server.process.kill()
        self.kills.append(time.monotonic())
        self.server.kill()

    def restart(self) -> float:
        """Start it again; how long it took until it was ready, in seconds."""
        began = time.monotonic()
        self.server.start()
        return time.monotonic() - began

    def end_calls(self) -> None:
        """Place no more, have everybody hang up, and wait until nobody has anything under way."""
        self.far.ask("stop")
        # What was asked of the API may become a call that is answered a moment later.
        self.wait(
            lambda: (
                not (self.far.ask("hang_up")["open"] or self.far.counts()["asking"] or self._calls_left())
            ),
            "calls are left at the far ends",
        )
        self.settle()

    def settle(self) -> None:
        """Wait until the server has nothing under way and the events of all calls have come."""
        self.wait(lambda: not self.far.counts()["asking"], "requests are not answered")
        self.far.ask("let_go")
        self.wait(lambda: not self._calls_left(), "calls are left in the server")
        total = int(self._list("/v1/calls?per_page=1").body["meta"]["total"])
        # What a receiver has too many of waits a minute; those that never come are named by who compares.
        wait_until(lambda: not self.server.metric("trunkline_webhook_pending"), 3 * PATIENCE_S)
        wait_until(lambda: self.far.counts()["ended"] >= total, PATIENCE_S)
        wait_until(lambda: self.far.counts()["quiet_s"] > _QUIET_S, PATIENCE_S)

    def _calls_left(self) -> bool:
        idle = ("trunkline_calls_active", "trunkline_wallet_reserved_paise")
        return any(self.server.metric(name) for name in idle)

    def wait(self, condition: Any, otherwise: str, patience_s: float = 2 * PATIENCE_S) -> None:
        """Wait until something is so, long enough for any machine."""
        if not wait_until(condition, patience_s):
            counts = {name: value for name, value in self.far.counts().items() if name != "stream_ends"}
            left = [leg for leg in self.far.seen()["legs"] if leg["ended_at"] is None][:8]
            raise AssertionError(f"{otherwise}: {counts}\n{left}\n{self.server.log()[-3000:]}")

    def evidence(self) -> Evidence:
        """Return the evidence of all parties, now that all is over."""
        found = Evidence(
            records=self._new("/v1/calls", "call_sid"),
            ledger=self._new("/v1/wallet/ledger?kind=charge", "id"),
            balance_before_paise=self._balance_paise,
            balance_after_paise=self.paise("balance"),
            reserved_paise=self.paise("reserved"),
            kills=list(self.kills),
            epoch_s=time.time() - time.monotonic(),
        )
        found.seen_by_far_ends(self.far.seen())
        return found

    def part(self) -> Evidence:
        """
        Return the evidence since the last part, now that all is over, and forget it.

        A long run is judged in parts: all of it at once would not fit into memory.
        """
        found = self.evidence()
        self._known |= {record["call_sid"] for record in found.records}
        self._known |= {entry["id"] for entry in found.ledger}
        self._balance_paise = found.balance_after_paise
        self.far.ask("forget")
        return found

    def _new(self, path: str, key: str) -> list[dict[str, Any]]:
        """Items of a list of the API, whose newest are first, that are of no earlier part."""
        found: list[dict[str, Any]] = []
        for page in self._pages(path):
            new = [item for item in page if item[key] not in self._known]
            found += new
            if len(new) < len(page):
                break
        return found

    def paise(self, name: str) -> int:
        """Return `balance` or `reserved` of the wallet."""
        return round(100 * float(self.api("GET", "/v1/wallet")[name]))

    def pages(self, path: str) -> list[dict[str, Any]]:
        """A whole list of the API."""
        return [item for page in self._pages(path) for item in page]

    def _pages(self, path: str) -> Iterator[list[dict[str, Any]]]:
        cursor = ""
        while True:
            join = "&" if "?" in path else "?"
            more = f"&cursor={cursor}" if cursor else ""
            reply = self._list(f"{path}{join}per_page={_PAGE}{more}")
            yield reply.data
            cursor = reply.body["meta"].get("next_cursor") or ""
            if not cursor:
                return

    def _list(self, path: str) -> Reply:
        reply = self.server.request("GET", path, self.account.api_key)
        assert reply.status == 200, reply
        return reply

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """A request of the account; the reply must be a success and its `data` is returned."""
        reply = self.server.request(method, path, self.account.api_key, body)
        assert 200 <= reply.status < 300, reply
        return reply.data
