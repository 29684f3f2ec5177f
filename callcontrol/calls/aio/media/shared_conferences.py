"""
Conferences of nodes that share a database: each is on one node, which the calls of others join by a leg.

The node of the first caller has the conference, until it is empty or that node is dead. Its row says so, and
nothing is asked of the database while it is known to be this node's.
"""

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from hashlib import blake2s
from typing import Any, Final
from weakref import WeakValueDictionary

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id
from callcontrol.calls.aio.media.conference_links import (
    InboundLink,
    LinkEndpoint,
    OutboundLink,
    now_s,
    parse_address,
)
from callcontrol.calls.aio.media.conferences import ConferenceMember, Conferences
from callcontrol.calls.aio.media.leg import MediaRefusal
from callcontrol.calls.conference_room import MemberTerms
from callcontrol.calls.conference_ticket import ConferenceTicket, TicketGate
from callcontrol.calls.events.media import ConferenceRefused
from callcontrol.database.aio.writer import Writer
from callcontrol.database.encryption import Cipher
from callcontrol.errors import DomainError
from callcontrol.nodes import store
from callcontrol.nodes.aio import Membership
from callcontrol.nodes.lease import Node
from media.aio import MediaEngine
from media.audio import Clip
from sip import InvalidValue
from sip.aio import InboundSession, Listen, UserAgentSettings
from sip.aio.transport import Address

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""Account and name of a conference."""

# A node that dies is adopted within some 10 s; then its conferences are anybody's.
_PATIENCE_S: Final = 15.0
_RETRY_S: Final = 0.5
_CLOSE_S: Final = 2.0
# Of the identifier of a conference; 42 of its bits are random then.
_MARK_DIGITS: Final = 8


def _mark_of(node: str) -> str:
    return blake2s(node.encode(), digest_size=_MARK_DIGITS // 2).hexdigest()


class ConferenceOwners:
    """
    The nodes that have conferences, in the database.

    Attributes:
        node: Name of this node.
        incarnation: This run of it.
        cipher: Seals and opens tickets.
    """

    def __init__(self, membership: Membership, writer: Writer, cipher: Cipher, node: str) -> None:
        self._membership = membership
        self._writer = writer
        self.node = node
        self.incarnation = membership.incarnation
        self.cipher = cipher

    async def claim(self, account_sid: str, name: str) -> Node | None:
        """
        Acquire a conference that no other node has; return that other node, or None if it is this node's.

        Raises:
            ServiceUnavailable: The database is failing.
        """
        return await self._writer.commit(
            partial(store.claim_conference, account_sid=account_sid, name=name, node=self.node),
            continues=True,
        )

    async def leave(self, account_sid: str, name: str) -> None:
        """
        Leave a conference to the next node that asks for it.

        Raises:
            ServiceUnavailable: The database is failing.
        """
        await self._writer.commit(
            partial(store.leave_conference, account_sid=account_sid, name=name, node=self.node),
            continues=True,
        )

    async def sweep(self) -> None:
        """Leave the conferences of an earlier process of this node."""
        await self._writer.commit(partial(store.leave_conferences, node=self.node))

    def release(self, connection: Connection, node: str) -> None:
        """Leave the conferences of a dead node."""
        store.leave_conferences(connection, node)

    def new_sid(self) -> str:
        """Return a new identifier of a conference of this node, by which others know its node."""
        return new_id()[:-_MARK_DIGITS] + _mark_of(self.node)

    def node_of(self, sid: str) -> str | None:
        """Return the other living node that made an identifier, if one did."""
        marked = (name for name in self.others() if sid.endswith(_mark_of(name)))
        return next(marked, None)

    def others(self) -> Sequence[str]:
        """Return the names of the other living nodes."""
        return [node.node for node in self._membership.others if node.is_living]

    def publish(self, address: Address) -> None:
        """Publish the address to which other nodes send legs."""
        self._membership.sip_address = f"{address[0]}:{address[1]}"

    def addresses(self) -> Mapping[str, Address]:
        """Return the addresses of the other living nodes, by node."""
        found = {
            node.node: parse_address(node.sip_address) for node in self._membership.others if node.is_living
        }
        return {node: address for node, address in found.items() if address is not None}


class SharedConferences:
    """
    The conferences of this node, and the legs of its calls into those of other nodes.

    Attributes:
        local: Those of this node.
    """

    def __init__(
        self, owners: ConferenceOwners, engine: MediaEngine, music: Clip, settings: UserAgentSettings
    ) -> None:
        self.local = Conferences(engine, music, self._empty, make_sid=owners.new_sid, node_of=owners.node_of)
        self._owners = owners
        self._engine = engine
        self._gate = TicketGate(owners.cipher, owners.incarnation)
        self._endpoint = LinkEndpoint(
            settings, lambda: owners.addresses().values(), self._accept_ticket, self._on_link
        )
        self._owned: set[Key] = set()
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()
        self._outbound: dict[str, OutboundLink] = {}
        self._inbound: set[InboundLink] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def start(self, listen: Listen | None) -> None:
        """Listen for other nodes; without an address calls of several nodes do not meet."""
        if listen is None:
            log.warning(
                "TRUNKLINE_NODE_SIP is not set and SIP is received on every address:"
                " calls of this server and of others cannot be in one conference"
            )
            return
        await self._endpoint.start(listen)
        if self._endpoint.address is not None:
            self._owners.publish(self._endpoint.address)

    async def close(self) -> None:
        """End all legs between nodes."""
        for link in [*self._inbound]:
            link.hang_up()
        for name in [*self._outbound]:
            self.leave(name)
        # Rows that are left here are found to be nobody's later, so this need not succeed.
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        for task in [*self._tasks]:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._endpoint.close()

    async def drained(self) -> None:
        """Wait until no call of another node is in a conference here."""
        await self._idle.wait()

    @property
    def legs(self) -> int:
        """Number of SIP sessions with other nodes."""
        return self._endpoint.sessions

    async def join(
        self, account_sid: str, name: str, member: ConferenceMember, terms: MemberTerms, max_members: int
    ) -> None:
        """Add a member, wherever the conference is; its events say how that went."""
        loop = asyncio.get_running_loop()
        key, ends_s = (account_sid, name), loop.time() + _PATIENCE_S
        while not await self._joined(key, member, terms, max_members):
            if loop.time() >= ends_s:
                member.post(ConferenceRefused(member.leg, "unavailable"))
                return
            await asyncio.sleep(_RETRY_S)

    def leave(self, member: str) -> None:
        """Remove a member by its name; harmless when it is absent."""
        self.local.leave(member)
        link = self._outbound.pop(member, None)
        if link is not None:
            link.close()

    # --- calls of this node ---------------------------------------------------------------------------------

    async def _joined(self, key: Key, member: ConferenceMember, terms: MemberTerms, max_members: int) -> bool:
        """Return False if the node of the conference is not known yet, or does not answer."""
        try:
            owner = await self._claim(key)
        except DomainError as failure:
            log.warning("the node of a conference is not known: %s", failure.message)
            return False
        if owner is None:
            member.post(self.local.enter(*key, member, terms, max_members))
            self._empty(key)
            return True
        to = parse_address(owner.sip_address)
        if to is None or self._endpoint.address is None:
            log.warning("the conference is on the node %s, which has no address for this one", owner.node)
            return False
        ticket = ConferenceTicket(
            call_id=new_id(),
            node=self._owners.node,
            incarnation=owner.incarnation,
            account_sid=key[0],
            conference=key[1],
            call_sid=member.call_sid,
            terms=terms,
            max_members=max_members,
            made_at_s=now_s(),
        )
        return await self._dial(to, ticket, member)

    async def _dial(self, to: Address, ticket: ConferenceTicket, member: ConferenceMember) -> bool:
        link = OutboundLink(self._engine, member)
        self._outbound[member.name] = link
        try:
            offer, sealed = link.offer(), ticket.seal(self._owners.cipher)
            session = self._endpoint.invite(to, sealed, ticket.call_id, offer, link.on_event)
            return await link.decided(session)
        except (MediaRefusal, InvalidValue) as refusal:
            log.warning("a conference leg cannot be made: %s", refusal)
            link.close()
            member.post(ConferenceRefused(member.leg, "media"))
            return True
        except BaseException:
            link.close()
            raise

    # --- calls of other nodes -------------------------------------------------------------------------------

    def _accept_ticket(self, sealed: str, call_id: str, source: Address) -> ConferenceTicket | None:
        ticket = self._gate.accept(sealed, call_id, now_s())
        if ticket is None or self._owners.addresses().get(ticket.node) != source:
            return None
        return ticket

    def _on_link(self, session: InboundSession, ticket: ConferenceTicket) -> None:
        link = InboundLink(self._engine, session, ticket, self._left)
        self._inbound.add(link)
        self._idle.clear()
        self._spawn(self._admit(link))

    async def _admit(self, link: InboundLink) -> None:
        ticket = link.ticket
        key = (ticket.account_sid, ticket.conference)
        try:
            owner = await self._claim(key)
        except DomainError as failure:
            log.warning("the node of a conference is not known: %s", failure.message)
            link.not_now()
            return
        if owner is not None:
            link.not_here()
            return
        member = link.open()
        if member is not None:
            link.entered(self.local.enter(*key, member, ticket.terms, ticket.max_members))
        self._empty(key)

    def _left(self, link: InboundLink) -> None:
        self._inbound.discard(link)
        if not self._inbound:
            self._idle.set()
        if link.member is not None:
            self.local.leave(link.member.name, took_part=link.took_part)

    # --- rows -----------------------------------------------------------------------------------------------

    async def _claim(self, key: Key) -> Node | None:
        """
        Return the other node that has a conference; None if it is this one.

        The caller enters at once: between the two nothing may wait, or the row could be left meanwhile.
        """
        async with self._lock(key):
            if key not in self._owned:
                owner = await self._owners.claim(*key)
                if owner is not None:
                    return owner
                self._owned.add(key)
        return None

    def _empty(self, key: Key) -> None:
        """Leave a conference to other nodes, if nobody is in it."""
        if key not in self.local:
            self._spawn(self._leave_row(key))

    async def _leave_row(self, key: Key) -> None:
        while True:
            async with self._lock(key):
                if key not in self._owned or key in self.local:
                    return
                try:
                    await self._owners.leave(*key)
                except DomainError:
                    pass  # The row is this node's until then, as it may well be.
                else:
                    self._owned.discard(key)
                    return
            await asyncio.sleep(_RETRY_S)

    def _lock(self, key: Key) -> asyncio.Lock:
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a task of conferences failed", exc_info=task.exception())
