"""The contract with two nodes on one PostgreSQL: each request is sent to the one that has made no givens."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import sqlalchemy as sa

from api.process.server import Server
from callcontrol.database.tables.system import idempotency_keys
from tests.contract.cases import Case
from tests.contract.givens import answered_call, recorded_call
from tests.contract.stage import Stage, staged
from tests.contract.test_contract import CASES, ROUTED
from tests.support.loopback_server import loopback_settings
from tests.support.ports import free_port
from tests.support.postgres import running_postgres
from tests.support.waiting import until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.real_time(reason="PostgreSQL")]


def _owned(case: Case) -> bool:
    return ROUTED[case.row].is_owned


def _is_of_one_node(case: Case) -> bool:
    """True for the sandbox, a carrier of one server, lists of conferences, and counts of requests."""
    return (
        "/sandbox/" in case.row
        or case.title == "POST /api/v1/calls/outbound 201 success"
        or case.row == "GET /2010-04-01/Accounts/{sid}/Conferences.json"
        or (case.status == 429 and not _owned(case))
    )


# Also without what waits in virtual time, which these servers do not have.
ELSEWHERE = [case for case in CASES if not _is_of_one_node(case) and case.code != "TOOL_TIMED_OUT"]
OWNED = [case for case in ELSEWHERE if _owned(case)]
_LONG = pytest.mark.long(reason="the contract a second time; `make test` asks what one node alone can answer")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stage(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    folder = tmp_path_factory.mktemp("nodes")
    with running_postgres() as postgres:
        shared = {
            "DATABASE_URL": await postgres.url(),
            "SECRET_KEY": base64.b64encode(bytes(range(32))).decode(),
        }
        async with staged(folder / "a", NODE="a", HTTP_LISTEN=_listen(), **shared) as running:
            running.front = await _front(folder / "b", **shared)
            try:
                await until(lambda: _knows(running.front, running.own.account_sid))
                yield running
            finally:
                await running.front.stop()


async def _front(folder: Path, **shared: str) -> Server:
    front = Server(
        loopback_settings(
            folder, rtp_ports=20, NODE="b", HTTP_LISTEN=_listen(), SANDBOX_CARRIER="0", **shared
        )
    )
    await front.start()
    # As on another machine, it does not see the files of the first. The server lives as long as the module,
    # which no patch of one test does.
    front.services.recordings._locate = lambda *_: None  # type: ignore[method-assign]
    return front


def _listen() -> str:
    return f"127.0.0.1:{free_port()}"


def _knows(front: Server | None, account_sid: str) -> bool:
    return front is not None and front.storage.directory.account(account_sid) is not None


def shown(case: Case) -> Any:
    """The case; what any node can answer is among the long ones."""
    return pytest.param(case, id=case.title, marks=() if case in OWNED else _LONG)


@pytest.mark.parametrize("case", [shown(case) for case in ELSEWHERE])
async def test_case(stage: Stage, case: Case) -> None:
    """The wrong node answers as the right one."""
    await case.run(stage)


async def test_there_are_cases_of_every_kind() -> None:
    rows = " ".join({case.row for case in OWNED})
    for part in (
        "/trace",
        "/2010-04-01",
        "/masking/calls",
        "/api/v1/calls",
        "/recordings/",
        "/mcp",
        "messages/",
        "/Participants/",
    ):
        assert part in rows


async def test_a_key_is_claimed_by_the_node_that_executes(stage: Stage) -> None:
    """A tool that ends a call elsewhere is executed once for its key, and repeated by either node."""
    body = {"arguments": {"call_sid": await answered_call(stage)}}
    path, headers = "/integrations/v1/tools/hang_up/execute", {"Idempotency-Key": "by-the-owner"}
    first = await stage.ask("POST", path, body=body, headers=headers, by_front=True)
    assert first.status == 200, first
    for by_front in (True, False):
        again = await stage.ask("POST", path, body=body, headers=headers, by_front=by_front)
        assert (again.status, again.raw) == (200, first.raw)
        assert again.headers["Idempotent-Replayed"] == "true"
    claimed = sa.select(idempotency_keys.c.node).where(idempotency_keys.c.key == "by-the-owner")
    nodes = await stage.server.storage.database.read(lambda connection: connection.scalars(claimed).all())
    assert list(nodes) == ["a"]


async def test_a_trace_is_that_of_the_node_of_the_call(stage: Stage) -> None:
    path = f"/v1/calls/{await answered_call(stage)}/trace"
    own = await stage.data("GET", path)
    assert own["messages"]
    through = await stage.ask("GET", path, by_front=True)
    assert through.data["messages"][0] == own["messages"][0]


async def test_a_part_of_a_recording_is_read_through_another_node(stage: Stage) -> None:
    call_sid = await recorded_call(stage)
    whole = await stage.ask("GET", f"/recordings/{call_sid}.wav")
    part = await stage.ask(
        "GET", f"/recordings/{call_sid}.wav", headers={"Range": "bytes=100-199"}, by_front=True
    )
    assert (part.status, part.raw) == (206, whole.raw[100:200])
    assert part.headers["Content-Range"] == f"bytes 100-199/{len(whole.raw)}"
    head = await stage.ask("HEAD", f"/recordings/{call_sid}.wav", by_front=True)
    assert (head.status, head.headers["Content-Length"]) == (200, str(len(whole.raw)))
