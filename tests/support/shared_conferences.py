"""Conferences of several nodes whose database is in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from callcontrol.calls.aio.media.conference_links import parse_address
from callcontrol.calls.aio.media.shared_conferences import ConferenceOwners, Key
from callcontrol.errors import ServiceUnavailable
from callcontrol.nodes.lease import Node
from sip.aio.transport import Address
from tests.support.secrets import SECRETS


@dataclass(slots=True)
class ConferenceRows:
    """Rows that the nodes share: which has which conference, and their addresses."""

    rows: dict[Key, str] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    claims: list[tuple[str, str]] = field(default_factory=list)
    """Node and conference of each claim that was asked of the database."""

    def add(self, node: str) -> MemoryOwners:
        """Add a node that lives."""
        self.nodes[node] = Node(node, f"run of {node}", "", "", 8.0)
        return MemoryOwners(self, node)

    def adopt(self, node: str) -> None:
        """End a dead node, as another one does."""
        del self.nodes[node]
        self.rows = {key: owner for key, owner in self.rows.items() if owner != node}


class MemoryOwners(ConferenceOwners):
    """One node's view of the rows."""

    def __init__(self, shared: ConferenceRows, node: str) -> None:
        self.shared = shared
        self.node = node
        self.incarnation = shared.nodes[node].incarnation
        self.cipher = SECRETS
        self.failing = False
        self.may_leave = asyncio.Event()
        """Cleared to keep deletions of rows waiting."""
        self.may_leave.set()

    async def claim(self, account_sid: str, name: str) -> Node | None:
        await asyncio.sleep(0)
        if self.failing:
            raise ServiceUnavailable("The database is away.")
        self.shared.claims.append((self.node, name))
        owner = self.shared.rows.setdefault((account_sid, name), self.node)
        return None if owner == self.node else self.shared.nodes[owner]

    async def leave(self, account_sid: str, name: str) -> None:
        await self.may_leave.wait()
        if self.failing:
            raise ServiceUnavailable("The database is away.")
        if self.shared.rows.get((account_sid, name)) == self.node:
            del self.shared.rows[account_sid, name]

    def others(self) -> list[str]:
        return [name for name in self.shared.nodes if name != self.node]

    def publish(self, address: Address) -> None:
        node = self.shared.nodes[self.node]
        self.shared.nodes[self.node] = replace(node, sip_address=f"{address[0]}:{address[1]}")

    def addresses(self) -> Mapping[str, Address]:
        found = {name: parse_address(node.sip_address) for name, node in self.shared.nodes.items()}
        return {name: address for name, address in found.items() if address is not None and name != self.node}
