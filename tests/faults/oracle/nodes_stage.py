"""A stage of two or more servers on one PostgreSQL, of which the second may die."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import asyncpg  # type: ignore[import-untyped]  # the driver comes without types
from sqlalchemy import make_url

from tests.faults.lengths import RTP_PORTS
from tests.faults.oracle.evidence import Evidence, Leg
from tests.faults.oracle.explain import assert_nothing_lost
from tests.faults.oracle.stage import FORWARDED, OracleStage
from tests.support.fork_server import fork_server
from tests.support.server_process import ServerProcess, wait_until
from tests.support.waiting import PATIENCE_S

__all__ = ["Answer", "NodesStage"]

_SECRET_KEY = base64.b64encode(bytes(range(32))).decode()
# A node adopts others once it has renewed its lease for two leases.
_TWO_LEASES_S = 16.5


@dataclass(frozen=True, slots=True)
class Answer:
    """
    Answer to a request.

    Attributes:
        took_s: Time from the request to the last byte.
    """

    status: int
    headers: Message
    raw: bytes
    took_s: float

    @property
    def body(self) -> Any:
        """Its JSON."""
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        """The code of its error, in either shape; empty if it is none."""
        found = self.body if self.status >= 400 else {}
        return str(found.get("error", found).get("code", ""))


class NodesStage(OracleStage):
    """
    The oracle's stage with a second node: its clients ask the node "a", and its far ends call the node "b".

    Args:
        directory, far_sip_port: As of `OracleStage`; by default the SIP port of b.
        database_url: Database of a.
        environment: Settings of all.
        others: Names of further nodes.
        rtp_ports: RTP ports of each.
    """

    def __init__(
        self,
        directory: Path,
        database_url: str,
        environment: Mapping[str, str] | None = None,
        *,
        far_sip_port: int = 0,
        others: Sequence[str] = (),
        rtp_ports: int = RTP_PORTS,
    ) -> None:
        self.shared = {
            "TRUNKLINE_DATABASE_URL": database_url,
            "TRUNKLINE_SECRET_KEY": _SECRET_KEY,
            "TRUNKLINE_MAX_CPS": "1000",
            **(environment or {}),
        }
        self.b, *self.others = (
            ServerProcess(
                directory / name, environment={**self.shared, "TRUNKLINE_NODE": name}, rtp_ports=rtp_ports
            )
            for name in ("b", *others)
        )
        super().__init__(
            directory,
            {**self.shared, "TRUNKLINE_NODE": "a"},
            far_sip_port=far_sip_port or self.b.sip_port,
            rtp_ports=rtp_ports,
        )
        self._database_url = make_url(database_url)
        #: Moment from which node a may adopt the other one.
        self.may_adopt_at = 0.0
        #: Calls that a test has placed by itself, of which the oracle has to know.
        self.placed: dict[str, str] = {}
        #: Legs of far ends of a test's own.
        self.legs: list[Leg] = []
        self._judged: dict[Path, int] = {}

    @property
    def a(self) -> ServerProcess:
        """The node that lives throughout."""
        return self.server

    @property
    def nodes(self) -> tuple[ServerProcess, ...]:
        """All nodes."""
        return self.server, self.b, *self.others

    def __enter__(self) -> Self:
        super().__enter__()
        self.may_adopt_at = time.monotonic() + _TWO_LEASES_S
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        for node in ([self.b] if self.b_runs else []) + self.others:
            node.stop() if kind is None else node.kill()

    @contextmanager
    def _starting(self) -> Iterator[None]:
        """Start all nodes at once."""
        fork_server()  # It ends with the thread that starts it.
        try:
            with ThreadPoolExecutor() as pool:
                for started in [pool.submit(node.start) for node in self.nodes]:
                    started.result()
            yield
        except BaseException:
            for node in self.nodes:
                if node.process is not None:
                    node.kill()
            raise

    def _set_up(self) -> None:
        super()._set_up()
        # Who receives events learns how they are signed, also where no load is placed.
        self.load(1.0, calls=0)

    @property
    def b_runs(self) -> bool:
        """True while the second node has not ended."""
        return self.b.process is not None and self.b.process.poll() is None

    def kill_b(self) -> float:
        """Kill node b, once node a may adopt it; returns the moment."""
        wait_till(self.may_adopt_at)
        assert self.b.process is not None
        self.b.process.kill()
        killed_at = time.monotonic()
        self.kills.append(killed_at)
        self.b.kill()
        return killed_at

    def revive_b(self) -> None:
        """Start node b again, once node a has ended its calls."""
        self.wait(lambda: not self.rows("SELECT 1 FROM nodes WHERE node = 'b'"), "b is not adopted")
        self.start(self.b)

    def start(self, node: ServerProcess) -> None:
        """Start a node that has ended."""
        node.start()
        if node is self.a:
            self.may_adopt_at = time.monotonic() + _TWO_LEASES_S

    def stop_b(self) -> float:
        """Stop the process of node b, once node a may adopt it; returns the moment, as of a kill."""
        wait_till(self.may_adopt_at)
        assert self.b.process is not None
        self.b.process.send_signal(signal.SIGSTOP)
        self.kills.append(time.monotonic())
        return self.kills[-1]

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the database."""
        return asyncio.run(self._rows(statement))

    async def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        url = self._database_url
        connection = await asyncpg.connect(
            user=url.username, database=url.database, host=str(url.query["host"])
        )
        try:
            return [tuple(row) for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    def ask(
        self,
        node: ServerProcess,
        method: str,
        path: str,
        body: Any = None,
        *,
        form: Mapping[str, str] | None = None,
        key: str | None = None,
        **headers: str,
    ) -> Answer:
        """Send one request to a node, with the key of the account unless another is given, or "" for none."""
        key = self.account.api_key if key is None else key
        lines = {"Authorization": f"Bearer {key}"} if key else {}
        data: bytes | None = None
        if form is not None:
            data, lines["Content-Type"] = urlencode(form).encode(), "application/x-www-form-urlencoded"
        elif body is not None:
            data, lines["Content-Type"] = json.dumps(body).encode(), "application/json"
        lines |= {name.replace("_", "-"): value for name, value in headers.items()}
        asked = urllib.request.Request(node.url + path, data, lines, method=method)
        began = time.monotonic()
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE_S) as found:
                raw = found.read()
                return Answer(found.status, found.headers, raw, time.monotonic() - began)
        except urllib.error.HTTPError as error:
            with error:
                raw = error.read()
                return Answer(error.code, error.headers, raw, time.monotonic() - began)

    def place(
        self, node: ServerProcess, to: str, *, length_s: int = 60, key: str | None = None, **more: Any
    ) -> Answer:
        """Ask a node for a call that lasts for some seconds; what it accepts is told to the oracle."""
        headers = {name: more.pop(name) for name in ("Idempotency_Key",) if name in more}
        body = {
            "from": FORWARDED,
            "to": to,
            "verbs": [{"verb": "pause", "length": length_s}, {"verb": "hangup"}],
            "status_webhook_url": self.webhook_url,
            **more,
        }
        answer = self.ask(node, "POST", "/v1/calls", body, key=key, **headers)
        if answer.status == 201:
            self.placed[answer.body["data"]["call_sid"]] = "outbound"
        return answer

    def path_of(self, call_sid: str) -> str:
        """Path of a call of the account."""
        return f"/v1/Accounts/{self.account.account_sid}/Calls/{call_sid}"

    def active(self) -> list[str]:
        """The calls that are up, as node a lists them."""
        return [str(call["call_sid"]) for call in self.pages("/v1/calls?status=in-progress")]

    def evidence(self) -> Evidence:
        """Return the evidence of all parties, with what the test has placed by itself."""
        found = super().evidence()
        found.placed.update(self.placed)
        found.legs += self.legs
        return found

    def judge(self) -> Evidence:
        """End all calls, and let the oracle compare what everybody knows since the stage was made."""
        self.end_calls()
        evidence = self.evidence()
        for node in self.nodes:
            log = node.log()
            since, self._judged[node.data_dir] = self._judged.get(node.data_dir, 0), len(log)
            # What one test has caused is no failure of those after it.
            at = log.find("Traceback", since)
            assert at < 0, log[at : at + 4000]
        assert_nothing_lost(evidence)
        return evidence

    def _calls_left(self) -> bool:
        nodes = ([self.b] if self.b_runs else []) + self.others
        return super()._calls_left() or any(node.metric("trunkline_calls_active") for node in nodes)


def wait_till(moment: float) -> None:
    """Wait until a moment of the monotonic clock."""
    wait_until(lambda: time.monotonic() >= moment, max(moment - time.monotonic(), 0.0))
