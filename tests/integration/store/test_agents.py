"""Voice agents over a real database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import new_id
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.database.tables.agents import agents
from callcontrol.errors import BindFailed, Conflict, Forbidden, NotFound, ValidationFailed
from callcontrol.models import Account, Binding, PhoneNumber
from tests.support.customers import add_platform_carrier
from tests.support.secrets import SECRETS

URL = "wss://agents.example/asha"
WORKSPACE = "0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
VALUES: dict[str, Any] = {
    "name": "Asha",
    "language": "hi-IN",
    "voice": "asha",
    "greeting": "नमस्ते",
    "instructions": "Be brief.",
    "stream_url": URL,
    "stream_auth": {"type": "bearer", "token": "t0p-s3cret"},
}


@pytest.fixture
async def other(storage: Storage, url: str) -> AsyncIterator[Storage]:
    """Another process on the same database."""
    opened = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    yield opened
    await opened.close()


@pytest.fixture
async def number(storage: Storage, account: Account) -> PhoneNumber:
    await add_platform_carrier(storage)
    return await storage.numbers.add(account.account_sid, "+918047491899")


def to_agent(agent_id: str) -> Binding:
    return Binding("voice_agent", agent_id=agent_id, workspace_id=WORKSPACE)


async def test_an_agent_is_what_it_was_made_of(storage: Storage, other: Storage, account: Account) -> None:
    sid = account.account_sid
    made = await storage.agents.create(sid, VALUES)
    assert await storage.agents.get(sid, made.agent_id) == made
    assert storage.directory.agent(made.agent_id) == made
    assert made.stream is not None and made.stream.stream_auth == VALUES["stream_auth"]
    await other.directory.refresh()
    assert other.directory.agent(made.agent_id) == made
    changed = await other.agents.update(sid, made.agent_id, {"voice": None, "stream_url": f"{URL}/2"})
    await storage.directory.refresh()
    assert storage.directory.agent(made.agent_id) == changed
    assert (changed.voice, changed.greeting) == (None, made.greeting)
    second = await storage.agents.create(sid, {"name": "Ravi"})
    page = await storage.agents.list(sid, 1, 1)
    assert ([agent.agent_id for agent in page.items], page.total) == ([second.agent_id], 2)


async def test_an_agent_that_loses_its_server_goes_on_by_a_script(
    storage: Storage, other: Storage, account: Account, number: PhoneNumber
) -> None:
    sid = account.account_sid
    made = await storage.agents.create(sid, VALUES)
    await storage.numbers.bind(sid, number.phone_number_id, to_agent(made.agent_id))
    script = {"nodes": {"start": {"say": "नमस्ते {{name|}}", "hangup": True}}}
    gone: dict[str, Any] = {"stream_url": None, "stream_auth": None}
    changed = await storage.agents.update(sid, made.agent_id, {**gone, "script": script})
    assert (changed.stream, changed.script) == (None, script)
    assert await storage.agents.get(sid, made.agent_id) == changed
    await other.directory.refresh()
    assert other.directory.agent(made.agent_id) == changed
    assert (await storage.agents.update(sid, made.agent_id, {"script": None})).script is None


async def test_the_secret_of_an_agents_stream_is_sealed(storage: Storage, account: Account) -> None:
    await storage.agents.create(account.account_sid, VALUES)
    stored = await storage.database.read(
        lambda connection: connection.execute(sa.select(agents.c.binding)).scalar_one()
    )
    assert "agents.example" in stored and "t0p-s3cret" not in stored


async def test_another_accounts_agent_is_forbidden(
    storage: Storage, account: Account, stranger: Account
) -> None:
    made = await storage.agents.create(account.account_sid, VALUES)
    sid = stranger.account_sid
    for call in (
        storage.agents.get(sid, made.agent_id),
        storage.agents.update(sid, made.agent_id, {"name": "Mine"}),
        storage.agents.delete(sid, made.agent_id),
    ):
        with pytest.raises(Forbidden):
            await call
    with pytest.raises(NotFound):
        await storage.agents.get(sid, new_id())
    assert (await storage.agents.list(sid)).items == []


async def test_a_number_is_bound_to_an_agent_of_the_account(
    storage: Storage, other: Storage, account: Account, number: PhoneNumber, stranger: Account
) -> None:
    sid, number_id = account.account_sid, number.phone_number_id
    foreign = await storage.agents.create(stranger.account_sid, VALUES)
    for agent_id in (new_id(), foreign.agent_id):
        with pytest.raises(BindFailed) as refusal:
            await storage.numbers.bind(sid, number_id, to_agent(agent_id))
        assert [error.field for error in refusal.value.errors] == ["agent_id"]
    fresh = await other.agents.create(sid, VALUES)
    wiring = await storage.numbers.bind(sid, number_id, to_agent(fresh.agent_id.upper()))
    assert (wiring.inbound_target, wiring.agent_id) == ("voice_agent", fresh.agent_id)


async def test_an_agent_that_calls_are_sent_to_stays(
    storage: Storage, account: Account, number: PhoneNumber
) -> None:
    sid, number_id = account.account_sid, number.phone_number_id
    made = await storage.agents.create(sid, VALUES)
    await storage.numbers.bind(sid, number_id, to_agent(made.agent_id))
    task = {"name": "Desk", "target": "voice_agent", "agent_id": made.agent_id, "workspace_id": WORKSPACE}
    application = await storage.applications.create(sid, task)
    with pytest.raises(Conflict) as refusal:
        await storage.agents.delete(sid, made.agent_id)
    assert refusal.value.details == {"numbers": 1, "applications": 1}
    await storage.applications.delete(sid, application.app_sid)
    await storage.numbers.unbind(sid, number_id)
    await storage.agents.delete(sid, made.agent_id)
    assert storage.directory.agent(made.agent_id) is None
    with pytest.raises(NotFound):
        await storage.agents.get(sid, made.agent_id)


async def test_an_agents_server_must_not_be_one_of_ours(storage: Storage, account: Account) -> None:
    for url in ("ws://127.0.0.1/x", "https://x.example/"):
        with pytest.raises(ValidationFailed) as refusal:
            await storage.agents.create(account.account_sid, {"name": "x", "stream_url": url})
        assert [error.field for error in refusal.value.errors] == ["stream_url"]


async def test_an_agent_that_is_deleted_while_something_is_bound_to_it(
    storage: Storage,
    other: Storage,
    account: Account,
    number: PhoneNumber,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The binding is checked in memory, before the change of another process has arrived there."""
    sid = account.account_sid
    made, spare = [await storage.agents.create(sid, VALUES) for _ in range(2)]
    task = {"name": "Desk", "target": "voice_agent", "agent_id": spare.agent_id, "workspace_id": WORKSPACE}
    application = await storage.applications.create(sid, task)
    await other.agents.delete(sid, made.agent_id)
    known = {made.agent_id: made, spare.agent_id: spare}
    monkeypatch.setattr(type(storage.directory), "agent", lambda _, agent_id: known.get(agent_id))
    with pytest.raises(BindFailed) as refusal:
        await storage.numbers.bind(sid, number.phone_number_id, to_agent(made.agent_id))
    assert [error.field for error in refusal.value.errors] == ["agent_id"]
    for act in (
        storage.applications.create(sid, task | {"agent_id": made.agent_id}),
        storage.applications.update(sid, application.app_sid, {"agent_id": made.agent_id}),
    ):
        with pytest.raises(ValidationFailed):
            await act
    assert (await storage.numbers.get(sid, number.phone_number_id)).binding is None
