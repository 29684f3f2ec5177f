"""Voice agents."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.encryption import seal_binding, unseal_binding
from callcontrol.database.tables.agents import agents
from callcontrol.database.tables.applications import applications
from callcontrol.database.tables.trunks import phone_numbers
from callcontrol.database.values import pack, to_micros, to_moment, unpack
from callcontrol.models import Binding, VoiceAgent

_LIVE = agents.c.deleted_at.is_(None)


def insert(connection: Connection, agent: VoiceAgent, revision: int) -> None:
    """Write a new agent."""
    connection.execute(
        sa.insert(agents).values(
            agent_id=agent.agent_id,
            account_sid=agent.account_sid,
            created_at=to_micros(agent.created_at),
            deleted_at=None,
            **_mutable(connection, agent, revision),
        )
    )


def update(connection: Connection, agent: VoiceAgent, revision: int) -> None:
    """Write the changed fields of an agent."""
    connection.execute(
        sa.update(agents)
        .where(agents.c.agent_id == agent.agent_id)
        .values(_mutable(connection, agent, revision))
    )


def delete(connection: Connection, agent_id: str, now: datetime, revision: int) -> None:
    """Delete an agent; the row stays for the mirrors of other processes."""
    connection.execute(
        sa.update(agents)
        .where(agents.c.agent_id == agent_id)
        .values(deleted_at=to_micros(now), revision=revision)
    )


def get(connection: Connection, agent_id: str, *, lock: bool = False) -> VoiceAgent | None:
    """One agent, of any account; ``lock`` blocks other writers until the transaction ends."""
    wanted = sa.select(agents).where(agents.c.agent_id == agent_id, _LIVE)
    row = connection.execute(wanted.with_for_update() if lock else wanted).first()
    return _agent(connection, row) if row is not None else None


def page(
    connection: Connection, account_sid: str, *, offset: int, limit: int
) -> tuple[list[VoiceAgent], int]:
    """A page of the account's agents, newest first, and their total number."""
    mine = [agents.c.account_sid == account_sid, _LIVE]
    total = connection.scalar(sa.select(sa.func.count()).select_from(agents).where(*mine)) or 0
    rows = connection.execute(
        sa.select(agents)
        .where(*mine)
        .order_by(agents.c.created_at.desc(), agents.c.agent_id)
        .offset(offset)
        .limit(limit)
    )
    return [_agent(connection, row) for row in rows], total


def attached(connection: Connection, account_sid: str, agent_id: str) -> dict[str, int]:
    """Count of the account's numbers and applications that send calls to an agent; zeros are omitted."""
    counts = {
        name: sum(
            unpack(binding).get("agent_id") == agent_id
            for (binding,) in connection.execute(
                # Bindings are JSON text: the identifier narrows them down, and the parsed field decides.
                sa.select(table.c.binding).where(
                    table.c.account_sid == account_sid,
                    table.c.deleted_at.is_(None),
                    table.c.binding.contains(agent_id, autoescape=True),
                )
            )
        )
        for name, table in (("numbers", phone_numbers), ("applications", applications))
    }
    return {name: count for name, count in counts.items() if count}


def changed_since(connection: Connection, seen: int) -> Iterator[tuple[VoiceAgent, bool]]:
    """Agents changed after a revision, each with True if it still exists."""
    for row in connection.execute(sa.select(agents).where(agents.c.revision > seen)):
        yield _agent(connection, row), row.deleted_at is None


def _mutable(connection: Connection, agent: VoiceAgent, revision: int) -> dict[str, Any]:
    return {
        "workspace_id": agent.workspace_id,
        "name": agent.name,
        "language": agent.language,
        "voice": agent.voice,
        "greeting": agent.greeting,
        "instructions": agent.instructions,
        "binding": _sealed(connection, agent),
        "script": pack(agent.script) if agent.script is not None else None,
        "updated_at": to_micros(agent.updated_at),
        "revision": revision,
    }


def _agent(connection: Connection, row: Row[Any]) -> VoiceAgent:
    return VoiceAgent(
        agent_id=row.agent_id,
        account_sid=row.account_sid,
        workspace_id=row.workspace_id,
        name=row.name,
        language=row.language,
        voice=row.voice,
        greeting=row.greeting,
        instructions=row.instructions,
        stream=_opened(connection, row),
        script=unpack(row.script) if row.script is not None else None,
        created_at=to_moment(row.created_at),
        updated_at=to_moment(row.updated_at),
    )


def _sealed(connection: Connection, agent: VoiceAgent) -> str | None:
    if agent.stream is None:
        return None
    return seal_binding(connection, agents.c.binding, agent.agent_id, agent.stream)


def _opened(connection: Connection, row: Row[Any]) -> Binding | None:
    if row.binding is None:
        return None
    return unseal_binding(connection, agents.c.binding, row.agent_id, row.binding)
