"""Open sessions of the Model Context Protocol, and those that make room."""

from __future__ import annotations

import pytest

from api.mcp.sessions import Session, Sessions
from callcontrol.errors import NotFound, RateLimited, ServiceUnavailable
from callcontrol.models import Principal
from tests.support.api_stage import ApiStage
from tests.unit.api.client import Client

ANN = Principal("account-a", "key-a", "tools", frozenset({"tools"}))
BEN = Principal("account-b", "key-b", "tools", frozenset({"tools"}))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions(clock, most=3, most_of_account=2, idle_s=100.0)


def opened(sessions: Sessions, name: str, principal: Principal = ANN) -> str | None:
    """Open a session; the one that had to end for it."""
    session, displaced = sessions.begin(principal)
    sessions.opened(session, name)
    sessions.begun(session)
    return displaced


def test_a_session_is_its_keys_alone(sessions: Sessions) -> None:
    opened(sessions, "one")
    assert sessions.find("one", ANN).account_sid == "account-a"
    for name, principal in (("one", BEN), ("two", ANN)):
        with pytest.raises(NotFound, match="initialize"):
            sessions.find(name, principal)
    sessions.end("one")
    with pytest.raises(NotFound):
        sessions.find("one", ANN)


def test_one_too_many_ends_the_accounts_least_recently_used(sessions: Sessions) -> None:
    assert opened(sessions, "of ben", BEN) is None
    assert opened(sessions, "one") is None
    assert opened(sessions, "two") is None
    with sessions.using(sessions.find("one", ANN)):
        pass
    assert opened(sessions, "three") == "two"
    assert len(sessions) == 3


def test_no_session_ends_that_is_in_use(sessions: Sessions) -> None:
    opened(sessions, "one")
    opened(sessions, "two")
    with sessions.using(sessions.find("one", ANN)), sessions.using(sessions.find("two", ANN)):
        with pytest.raises(RateLimited, match="DELETE"):
            sessions.begin(ANN)
        assert sessions.idle() == []
    assert opened(sessions, "three") == "two"


def test_a_full_server_has_another_accounts_session_make_room(sessions: Sessions) -> None:
    for name, principal in (("one", ANN), ("two", ANN), ("three", BEN)):
        opened(sessions, name, principal)
    assert opened(sessions, "four", BEN) == "one"
    busy = [sessions.find(name, ANN if name == "two" else BEN) for name in ("two", "three", "four")]
    sessions.end("three")
    fifth, _ = sessions.begin(BEN)
    for session in busy:
        session.in_flight += 1
    with pytest.raises(ServiceUnavailable):
        sessions.begin(Principal("account-c", "key-c", "tools", frozenset()))
    sessions.begun(fifth)
    assert len(sessions) == 2


def test_a_session_can_be_used_before_its_opening_is_over(sessions: Sessions) -> None:
    session, _ = sessions.begin(ANN)
    sessions.opened(session, "one")
    with sessions.using(sessions.find("one", ANN)):
        sessions.begun(session)
        assert session.in_flight == 1
    assert len(sessions) == 1 and session.in_flight == 0


def test_sessions_that_are_being_opened_count(sessions: Sessions) -> None:
    first, _ = sessions.begin(ANN)
    sessions.begin(ANN)
    with pytest.raises(RateLimited):
        sessions.begin(ANN)
    sessions.begun(first)
    assert sessions.begin(ANN)[1] is None


def test_what_nobody_uses_is_named(sessions: Sessions, clock: Clock) -> None:
    opened(sessions, "one")
    opened(sessions, "two", BEN)
    clock.now_s += 98.0
    assert sessions.idle() == ["one"]
    with sessions.using(sessions.find("one", ANN)):
        assert sessions.idle() == ["two"]
    assert sessions.idle() == ["two"]
    assert [one.session_id for one in sessions.of_account("account-b")] == ["two"]
    assert isinstance(sessions.find("two", BEN), Session)


@pytest.mark.parametrize("session", [{}, {"Mcp-Session-Id": "any"}], ids=["no session", "a session"])
async def test_a_version_that_nobody_speaks_is_named(
    client: Client, stage: ApiStage, session: dict[str, str]
) -> None:
    key = "vt_" + "b" * 43
    await stage.add_key(key, "tools", ["tools"])
    headers = {"MCP-Protocol-Version": "2099-01-01", **session}
    message = {"jsonrpc": "2.0", "id": "a", "method": "tools/list"}
    answer = await client.post("/integrations/mcp", message, key=key, headers=headers)
    refusal = answer.json()
    assert (answer.status, refusal["id"], refusal["error"]["code"]) == (400, "a", -32022)
    assert refusal["error"]["data"]["requested"] == "2099-01-01"
    for version in ("2025-11-25", "2026-07-28"):
        assert version in refusal["error"]["data"]["supported"] and version in refusal["error"]["message"]
