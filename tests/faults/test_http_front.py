"""Two servers on one PostgreSQL behind a real HAProxy: whose node a key is, and what a node's end costs."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import mcp_types as types
import pytest

from tests.faults.lengths import count, progress
from tests.support.haproxy import HAPROXY, HttpFront
from tests.support.mcp_stage import PATH, session_at
from tests.support.ports import free_port
from tests.support.postgres import PostgresServer, running_postgres
from tests.support.server_process import Account, Reply, ServerProcess, wait_until
from tests.support.waiting import PATIENCE_S, until

# `make test` installs what is missing here; a run without make goes on with the rest, and says so.
pytestmark = [
    pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed (Debian: haproxy)"),
    pytest.mark.timeout(300),
]

SESSIONS, SESSIONS_OF_KEY = count("FRONT_SESSIONS", short=100, long=100), 25
_DRAINS = count("FRONT_DRAINS", short=1, long=5)
_KEYS = 40
_TOOL = {
    "name": "find_order",
    "description": "Finds an order.",
    "url": "https://shop.example/find",
    "input_schema": {"type": "object"},
}
_SECRET_KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class Cluster:
    """The nodes "a" and "b" behind a front; requests of the tests go to the front."""

    def __init__(self, folder: Path, database_url: str, trusted: str) -> None:
        shared = {
            "TRUNKLINE_DATABASE_URL": database_url,
            "TRUNKLINE_SECRET_KEY": _SECRET_KEY,
            "TRUNKLINE_TRUSTED_SOURCES": trusted,
            "TRUNKLINE_DRAIN_S": "8",
        }
        self.nodes = {
            name: ServerProcess(folder / name, environment={**shared, "TRUNKLINE_NODE": name})
            for name in ("a", "b")
        }
        self.front = HttpFront(folder / "front")

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()
        self.front.start({name: f"127.0.0.1:{node.http_port}" for name, node in self.nodes.items()})

    def stop(self) -> None:
        self.front.stop()
        for node in self.nodes.values():
            if node.process is not None and node.process.poll() is None:
                node.stop()

    def key_of(self, account: Account, service: str = "platform") -> str:
        """A new key of an account."""
        made = self.nodes["a"].command(
            "keys", "create", "--account", account.account_sid, "--service", service
        )
        return str(made["key"])

    def key_at(self, node: str, service: str = "platform", account: Account | None = None) -> str:
        """A key of an account, by default a new one, whose requests go to a node."""
        account = account or self.nodes["a"].add_account()
        for _ in range(_KEYS):
            key = self.key_of(account, service)
            if self.front.node_of(Authorization=f"Bearer {key}") == node:
                return key
        raise AssertionError(f"no key of {_KEYS} goes to the node {node}")

    def request(self, method: str, path: str, key: str, body: Any = None, **headers: str) -> Reply:
        """One request through the front on a connection of its own; the body of the reply is its headers."""
        lines = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", **headers}
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.front.url + path, data, lines, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=PATIENCE_S) as response:
                return Reply(response.status, response.headers)
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[Cluster]:
    """A cluster that no test changes, whose keys have their limits: it does not trust the front."""
    made = Cluster(tmp_path_factory.mktemp("cluster"), asyncio.run(postgres.url()), "127.0.0.9/32")
    try:
        made.start()
        yield made
    finally:
        made.stop()
    for node in made.nodes.values():
        assert "Traceback" not in node.log(), node.log()


@pytest.fixture
def unsteady(tmp_path: Path, postgres: PostgresServer) -> Iterator[Cluster]:
    """A cluster whose nodes end and start, without limits of requests."""
    made = Cluster(tmp_path, asyncio.run(postgres.url()), "127.0.0.0/8")
    try:
        made.start()
        yield made
    finally:
        made.stop()


def spellings(key: str) -> list[dict[str, str]]:
    """The ways in which a request may have a key."""
    basic = base64.b64encode(f"0e5c2c3e-0000-4000-8000-000000000001:{key}".encode()).decode()
    return [
        {"Authorization": f"Bearer {key}"},
        {"Authorization": f"bearer {key}"},
        {"Authorization": f"Basic {basic}"},
        {"X_API_Key": key},
    ]


def test_a_key_has_one_node(cluster: Cluster) -> None:
    """All requests of a key go to one node, however it is sent; keys are spread over both."""
    homes = []
    for number in range(_KEYS):
        (home,) = {cluster.front.node_of(**spelling) for spelling in spellings(f"vt_{number:043}")}
        homes.append(home)
    counts = Counter(homes)
    assert min(counts["a"], counts["b"]) >= _KEYS // 5, counts


def test_requests_without_a_key_go_to_both(cluster: Cluster) -> None:
    """The nodes take turns at requests without a key."""
    assert {cluster.front.node_of() for _ in range(10)} == {"a", "b"}


@pytest.mark.parametrize("node", ["a", "b"])
def test_the_requests_of_a_key_are_counted_once(cluster: Cluster, node: str) -> None:
    """Each request of a key takes one from its limit, as on one server."""
    key = cluster.key_at(node)
    left = [int(cluster.request("GET", "/v1/calls", key).body["X-RateLimit-Remaining"]) for _ in range(10)]
    assert left == list(range(left[0], left[0] - 10, -1))


def test_measurements_are_not_for_customers(cluster: Cluster) -> None:
    """The HTTP front answers 404 to `/metrics`, however its path is spelled; each node answers Prometheus."""
    for path in ("/metrics", "/metrics/", "/%6detrics", "/metrics?x=1"):
        assert cluster.request("GET", path, "none").status == 404, path
    assert cluster.nodes["a"].request("GET", "/metrics").status == 200
    assert not [one for one in cluster.front.passed() if "etrics" in one.path]


@pytest.mark.long(reason="a hundred sessions of the official client, one after the other")
async def test_sessions_stay_with_their_node(cluster: Cluster) -> None:
    """A hundred MCP sessions at once, with a stream each: none is lost, and each is told of a new tool."""
    accounts = [cluster.nodes["a"].add_account() for _ in range(SESSIONS // SESSIONS_OF_KEY)]
    homes = ["a", "b"] * (len(accounts) // 2)
    keys = [cluster.key_at(home, "tools", account) for home, account in zip(homes, accounts, strict=True)]
    before = {home: open_sessions(cluster, home) for home in set(homes)}
    told: set[int] = set()
    async with AsyncExitStack() as stack:
        sessions = [
            await stack.enter_async_context(
                session_at(
                    cluster.front.url,
                    keys[number % len(keys)],
                    message_handler=partial(notice_new_tools, told, number),
                )
            )
            for number in range(SESSIONS)
        ]
        for home in set(homes):
            assert open_sessions(cluster, home) == before[home] + SESSIONS // 2
            # The streams are open a moment later than the sessions.
            await until(partial(has_streams, cluster, home, SESSIONS // 2))
        for home, account in zip(homes, accounts, strict=True):
            admin = cluster.key_of(account, "admin")
            reply = cluster.nodes[home].request("POST", "/integrations/admin/tools", admin, _TOOL)
            assert reply.status == 201, reply
        await until(lambda: len(told) == SESSIONS)
        for session in sessions:
            assert _TOOL["name"] in {tool.name for tool in (await session.list_tools()).tools}
    lost = [one for one in cluster.front.passed() if one.path == PATH and one.status >= 400]
    assert lost == []


async def notice_new_tools(told: set[int], number: int, message: Any) -> None:
    if isinstance(message, types.ToolListChangedNotification):
        told.add(number)


def open_sessions(cluster: Cluster, node: str) -> float:
    return cluster.nodes[node].metric("trunkline_mcp_sessions")


def has_streams(cluster: Cluster, node: str, least: int) -> bool:
    """True if the front has so many connections to a node, one for each request in progress."""
    port = cluster.nodes[node].http_port
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return sum(line[2].endswith(f":{port:04X}") and line[3] == "01" for line in lines) >= least


@asynccontextmanager
async def stream(cluster: Cluster, http: aiohttp.ClientSession, session: str) -> AsyncIterator[int]:
    """Open the stream of a session; gives its status."""
    lines = {"Accept": "application/json, text/event-stream", "Mcp-Session-Id": session}
    async with http.get(cluster.front.url + PATH, headers=lines) as answer:
        yield answer.status


async def test_a_client_that_has_left_is_noticed(cluster: Cluster) -> None:
    """A client that loses the stream of its session opens it again: the node learns of the loss."""
    key = cluster.key_at("b", "tools")
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
    async with aiohttp.ClientSession(headers=headers) as http:
        async with http.post(cluster.front.url + PATH, json=begin) as answer:
            session = answer.headers["Mcp-Session-Id"]
            await answer.read()
        async with stream(cluster, http, session) as status:
            assert status == 200

        async def opens() -> bool:
            async with stream(cluster, http, session) as status:
                return status == 200

        await until(opens)


class Load:
    """Requests of keys through the front, one after the other for each key, until it is stopped."""

    def __init__(self, cluster: Cluster, keys: list[str]) -> None:
        self.statuses: Counter[int] = Counter()
        self.rounds = dict.fromkeys(keys, 0)
        self._cluster = cluster
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(key,)) for key in keys]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def goes_on(self, rounds: int = 3) -> None:
        """Wait until each key has had some more requests from their begin to their end."""
        aim = {key: done + rounds for key, done in self.rounds.items()}
        assert wait_until(lambda: all(self.rounds[key] >= least for key, least in aim.items()), PATIENCE_S)

    def _run(self, key: str) -> None:
        # To a number that may not be called: refused by a node that takes calls, with 503 by one that drains.
        call = {"from": "+919876543210", "to": "+12025550123", "verbs": [{"verb": "hangup"}]}
        while not self._over.is_set():
            for method, path, body in (("GET", "/v1/calls", None), ("POST", "/v1/calls", call)):
                try:
                    status = self._cluster.request(method, path, key, body).status
                except OSError:
                    status = 0
                self.statuses[status] += 1
            self.rounds[key] += 1
            self._over.wait(0.1)


def assert_none_failed(load: Load) -> None:
    failed = {status: number for status, number in load.statuses.items() if not 200 <= status < 500}
    assert failed == {}, load.statuses
    assert load.statuses[200] > 0 and 429 not in load.statuses


def requests_at(cluster: Cluster, node: str) -> int:
    return sum(one.node == node for one in cluster.front.passed())


@contextmanager
def silent_callee(node: ServerProcess, nth: int) -> Iterator[None]:
    """A call of a node that nobody answers: the node waits for its end when it drains, and refuses others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as callee:
        port = free_port()
        callee.bind(("127.0.0.1", port))
        account, number = node.add_account(), f"+9180471000{nth:02}"
        node.add_carrier(f"silent {nth}", f"udp:127.0.0.1:{port}", outbound=True)
        node.add_number(account, number)
        body = {"from": number, "to": f"sip:callee@127.0.0.1:{port}", "verbs": [{"verb": "hangup"}]}
        placed = node.request("POST", "/v1/calls", account.api_key, body)
        assert placed.status == 201, placed
        yield


@pytest.mark.long(reason="a node drains and starts again under load")
def test_a_node_that_drains_gets_no_new_requests(unsteady: Cluster) -> None:
    """SIGTERM under load: no request fails, none comes later, and the keys are back after its next start."""
    front, b = unsteady.front, unsteady.nodes["b"]
    keys = [unsteady.key_at(node) for node in ("a", "b", "a", "b")]
    with Load(unsteady, keys) as load:
        for number in range(1, _DRAINS + 1):
            with silent_callee(b, number):
                drain_under_load(unsteady, load)
            homes = [front.node_of(Authorization=f"Bearer {key}") for key in keys]
            assert homes == ["a", "b", "a", "b"]
            progress(f"drain {number} of {_DRAINS}: {dict(load.statuses)}")
    assert_none_failed(load)


def drain_under_load(cluster: Cluster, load: Load) -> None:
    """Drain node b, and start it again."""
    front, b = cluster.front, cluster.nodes["b"]

    def times_said(state: str) -> int:
        return front.log().count(f"Server nodes/b is {state}")

    downs = times_said("DOWN")
    load.goes_on()
    assert b.process is not None
    drained = threading.Thread(target=b.stop)
    drained.start()
    assert wait_until(lambda: times_said("DOWN") > downs, PATIENCE_S), front.log()
    load.goes_on()
    assert b.process.poll() is None, "it ended too early to be asked"
    before = requests_at(cluster, "b")
    load.goes_on()
    assert requests_at(cluster, "b") == before
    drained.join(2 * PATIENCE_S)
    assert b.process.poll() == 0, b.log()
    load.goes_on()
    ups = times_said("UP")
    b.start()
    assert wait_until(lambda: times_said("UP") > ups, PATIENCE_S), front.log()
    load.goes_on()


def test_a_request_that_was_not_sent_goes_to_another_node(unsteady: Cluster) -> None:
    """Right after kill -9 of a node its keys are answered by the other one."""
    keys = [f"vt_{number:043}" for number in range(_KEYS)]
    homes = [unsteady.front.node_of(Authorization=f"Bearer {key}") for key in keys]
    unsteady.nodes["b"].kill()
    now = [unsteady.front.node_of(Authorization=f"Bearer {key}") for key in keys]
    assert set(now) == {"a"} and "b" in homes
    assert not [one for one in unsteady.front.passed() if one.status >= 500]


class Dying:
    """A node that is ready, and disconnects when it has read a POST."""

    def __init__(self) -> None:
        self.port = free_port()
        self.read = 0
        self._socket = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(PATIENCE_S)
                if connection.recv(65_535).startswith(b"POST"):
                    self.read += 1
                else:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def test_a_request_that_was_sent_is_not_repeated(tmp_path: Path) -> None:
    """A node that ends with a POST in its hands may have placed the call: the client gets 502, once."""
    nodes = {"a": Dying(), "b": Dying()}
    try:
        with HttpFront(tmp_path) as front:
            front.start({name: f"127.0.0.1:{node.port}" for name, node in nodes.items()})
            asked = urllib.request.Request(f"{front.url}/v1/calls", b"{}", method="POST")
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked, timeout=PATIENCE_S)
            assert refused.value.code == 502
            refused.value.close()
    finally:
        for node in nodes.values():
            node.close()
    assert sum(node.read for node in nodes.values()) == 1
