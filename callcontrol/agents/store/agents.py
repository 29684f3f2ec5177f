"""Voice agents."""

from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.rows import JSON, ValueTable
from callcontrol.database.statements import unpack
from callcontrol.database.tables.agents import agents
from callcontrol.database.tables.applications import applications
from callcontrol.database.tables.trunks import phone_numbers
from callcontrol.models import VoiceAgent

AGENTS: Final = ValueTable(
    agents,
    VoiceAgent,
    called="agent",
    order=(agents.c.created_at.desc(), agents.c.agent_id),
    columns={"stream": "binding"},
    codecs={"script": JSON},
)
"""Agents of all accounts, newest first."""


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
