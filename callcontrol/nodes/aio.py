"""Membership of a server among those that share a PostgreSQL database."""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tasks import ended
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.database.errors import Fenced, is_transient
from callcontrol.errors import DomainError, NodeTaken
from callcontrol.nodes import store
from callcontrol.nodes.duties import Duty
from callcontrol.nodes.forwarding import KnownNodes, NoWay, way_to
from callcontrol.nodes.lease import LeaseSettings, Node, NodeState, RenewalRecord, wait_s
from callcontrol.nodes.metrics import AdoptionMetrics, AdoptionOutcome

if TYPE_CHECKING:
    from callcontrol.database.aio.postgres import Postgres

log = logging.getLogger(__name__)

Adopt = Callable[[str, datetime], Awaitable[int]]
"""Ends the calls of a dead node that are older than a moment; returns their number."""
Release = Callable[[Connection, str], None]
"""Releases what a dead node held, in the transaction that claims it."""

_LOOK_S: Final = 0.25
_SKEW: Final = timedelta(seconds=10)
"""Between clocks of two machines. A claimed node has been dead for 8 s, and stays away for 30 s."""
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class Membership:
    """
    Lease of this server on the name of its node, renewed until it is closed.

    Without PostgreSQL there is nothing to share, and nothing is done.

    Attributes:
        fenced: Set when another node has adopted the calls of this one; what it writes is refused by then.
        drain_requested: Set when an operator's command asks this node to drain.
        registrations: Duty of registering with the carriers.
        is_renewed: False while the lease is not renewed because renewals fail.
        adoptions: Adoptions of other nodes by this one.
        sip_address: Host and port of this server's SIP for other nodes, which they learn with the next
            renewal; None for none.

    Args:
        place: See ``place_of``; a lease left by an earlier run in the same place is taken over at once.
        url: Address at which other nodes reach the API of this one at this moment; empty for none.
        version: Version of the program, for the operator.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        node: str,
        place: str,
        url: Callable[[], str],
        settings: LeaseSettings | None = None,
        *,
        version: str = "",
    ) -> None:
        self._settings = settings or LeaseSettings()
        self.fenced = asyncio.Event()
        self.drain_requested = asyncio.Event()
        self.is_renewed = True
        self.adoptions = AdoptionMetrics()
        self.sip_address: str | None = None
        self._database = database.shared
        self._writer = writer
        self._node = Node(node, new_id(), place, url(), self._settings.lease_s)
        self._url = url
        self._version = version
        self._renewals: RenewalRecord
        self._known = KnownNodes()
        self._lease_ends_s = 0.0
        self._adopt: Adopt | None = None
        self._release: Release
        self._claim: Node | None = None
        """The claim of the node whose calls are being ended."""
        self.registrations = Duty("registrations", held=self._database is None, release=self._leave_duty)
        self._lapse: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._adopting: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """
        Acquire the name of the node, and renew its lease from now on.

        A lease whose server is dead is waited for; one that is renewed meanwhile belongs to a living one.

        Raises:
            NodeTaken: Another server has this name; nothing was changed.
            SchemaTooNew: The database was migrated since this program started, which does not run on it.
        """
        database = self._database
        if database is None:
            return
        seen: Node | None = None
        lease_s = self._settings.lease_s
        acquire = partial(store.join, node=self._node, lease_s=lease_s, version=self._version)
        while not (joined := await database.write_lease(acquire)):
            if joined is None:
                await asyncio.sleep(_LOOK_S)
                continue
            nodes = await database.write_lease(store.all_nodes)
            found = next((node for node in nodes if node.node == self._node.node), None)
            if found is not None and found.adopted_by is None:
                if seen is None:
                    log.info("waiting for the lease of the node %s", found.node)
                    seen = found
                elif found.incarnation != seen.incarnation or found.lease_left_s > seen.lease_left_s:
                    raise NodeTaken(found.node, found.url)
                else:
                    seen = found
            await asyncio.sleep(_LOOK_S)
        database.fence = (self._node.node, self._node.incarnation)
        self._renewals = RenewalRecord(_now_s(), lease_s)
        self._task = asyncio.create_task(self._run(database), name="node-lease")

    def start_adopting(self, adopt: Adopt, release: Release) -> None:
        """Adopt nodes that die, once this server can end their calls."""
        self._adopt, self._release = adopt, release

    def start_draining(self) -> None:
        """Show from the next renewal on that this node takes no new calls."""
        self._node = replace(self._node, is_draining=True)

    def holds(self, node: str) -> bool:
        """Return True while the claim of a dead node is this server's."""
        return self._claim is not None and self._claim.node == node

    async def close(self) -> None:
        """Release the name: this server has no call left."""
        task, self._task = self._task, None
        await ended(task)
        if self._lapse is not None:
            self._lapse.cancel()
        await ended(self._adopting)
        if self._database is None or task is None or self.fenced.is_set():
            return
        try:
            await self._database.write_lease(
                partial(store.leave, node=self._node.node, incarnation=self._node.incarnation)
            )
        except Exception as error:  # Whatever the driver raises: the lease ends by itself.
            log.warning("the node keeps its name until its lease is over: %s", error)

    @asynccontextmanager
    async def setup(self) -> AsyncIterator[bool]:
        """
        Hold off other servers from a block that looks what is there and adds what is missing.

        Gives True if another node lives: what is there may be its own.
        """
        database = self._database
        if database is None:
            yield False
            return
        async with database.setup():
            nodes = await self.nodes()
            yield any(node.lease_left_s > 0 and node.node != self._node.node for node in nodes)

    @property
    def others(self) -> list[Node]:
        """The other nodes, as they were at the last renewal."""
        return [node for node in self._known.nodes if node.node != self._node.node]

    async def nodes(self) -> list[Node]:
        """Return all nodes, by name; empty without PostgreSQL."""
        return [] if self._database is None else await self._database.read(store.all_nodes)

    def states(self) -> dict[str, int]:
        """Numbers of nodes by state, as of the last renewal and with this one; zeros without PostgreSQL."""
        found = Counter(node.state for node in self._known.nodes)
        return {state.value: found[state] for state in NodeState}

    @property
    def lease_left_s(self) -> float:
        """Time for which this node surely has its lease; 0 when it is over, and without PostgreSQL."""
        return max(self._lease_ends_s - _now_s(), 0.0)

    @property
    def name(self) -> str | None:
        """Name of this node among those that share the database; None without PostgreSQL."""
        return None if self._database is None else self._node.node

    @property
    def incarnation(self) -> str:
        """Identifier of this run of the node."""
        return self._node.incarnation

    async def is_another(self, node: str) -> bool:
        """Return True if a node is another one that lives."""
        if self._database is None or node == self._node.node:
            return False
        found = await self._find(self._database, node)
        return found is not None and found.is_living

    async def way_to(self, node: str) -> str | NoWay:
        """
        Return the URL at which another node answers this one, or the reason why there is none.

        Raises:
            ServiceUnavailable: The database is failing.
        """
        if self._database is None:
            return NoWay.ALONE
        owner = await self._find(self._database, node)
        return way_to(owner, replace(self._node, url=self._url()))

    def forget(self, node: str) -> None:
        """Look another node up in the database next time: it does not accept connections."""
        self._known.forget(node)

    async def _find(self, database: "Postgres", node: str) -> Node | None:
        known = self._known.living(node, _now_s())
        if known is not None:
            return known
        return await database.look_up(partial(store.one_node, node=node))

    async def _run(self, database: "Postgres") -> None:
        while True:
            pause_s = self._settings.retry_s
            try:
                others = await self._renew(database)
                if not self.is_renewed:
                    log.warning("the lease of this node is renewed again")
                self.is_renewed = True
                self._adopt_dead(others)
                pause_s = wait_s(self._settings, others)
            except Fenced:
                log.error("another node has taken over the calls of this one; ending")
                self.is_renewed = False
                self.fenced.set()
                self.registrations.assign(False)
                return
            except Exception as error:  # Whatever it is, a node that renews no more would be taken for dead.
                self._renewals.failed(_now_s())
                if self.is_renewed or not is_transient(error):
                    log.warning(
                        "the lease of this node is not renewed: %s", str(error) or type(error).__name__
                    )
                self.is_renewed = False
            await asyncio.sleep(pause_s)

    async def _renew(self, database: "Postgres") -> list[Node]:
        """
        Renew the lease, and return the other nodes.

        Raises:
            Fenced: The lease is another's.
        """
        own, began_s = self._node, _now_s()
        renewal = partial(
            store.renew,
            node=own,
            url=self._url(),
            lease_s=self._settings.lease_s,
            sip_address=self.sip_address,
        )
        if not await database.write_lease(renewal):
            raise Fenced("the lease is another's")
        self._renewals.renewed(_now_s())
        await self._renew_duties(database, began_s)
        await self._renew_claim(database)
        asked_s = _now_s()
        nodes = await database.write_lease(store.all_nodes)
        self._known.update(nodes, asked_s)
        if any(node.incarnation == own.incarnation and node.is_draining for node in nodes):
            self._heed_drain()
        return self.others

    def _heed_drain(self) -> None:
        if not self._node.is_draining and not self.drain_requested.is_set():
            log.info("this node is asked to drain")
            self.drain_requested.set()

    async def _renew_duties(self, database: "Postgres", began_s: float) -> None:
        """Keep the duties of this node, or take those without a holder; they end with the lease."""
        duty = self.registrations
        if self._lapse is not None:
            self._lapse.cancel()
        # The lease began after the renewal was sent, so it lasts longer than this.
        self._lease_ends_s = began_s + self._settings.lease_s
        self._lapse = asyncio.get_running_loop().call_at(self._lease_ends_s, duty.assign, False)
        if not duty.wanted:
            return
        held = await database.write_lease(partial(store.take_duty, duty=duty.name, node=self._node.node))
        if held and not duty.wanted:
            await self._leave_duty(duty.name)  # It was released meanwhile.
        duty.assign(held)

    async def _leave_duty(self, name: str) -> None:
        if self._database is None or self.fenced.is_set():
            return
        try:
            await self._database.write_lease(partial(store.leave_duty, duty=name, node=self._node.node))
        except Exception as error:  # Whatever the driver raises: it is free when this node has left.
            log.warning("the duty %s is not left yet: %s", name, error)

    async def _renew_claim(self, database: "Postgres") -> None:
        """Keep others from the calls of a node that are being ended; stop ending them if it is back."""
        claim, lease_s = self._claim, self._settings.adoption_s
        if claim is None or await database.write_lease(
            partial(store.renew, node=claim, url=claim.url, lease_s=lease_s)
        ):
            return
        self._claim = None
        if self._adopting is not None:
            log.warning("the claim of the node %s is lost", claim.node)
            self._count_adoption(AdoptionOutcome.LOST)
            self._adopting.cancel()

    def _adopt_dead(self, others: list[Node]) -> None:
        """Adopt nodes whose lease is over, beside the renewals."""
        dead = [node for node in others if node.lease_left_s <= 0]
        if not dead or self._adopt is None or not self._renewals.may_adopt(_now_s()):
            return
        if self._node.is_draining and any(node.state is NodeState.UP for node in others):
            return  # It may end before the calls have ended, and its claim would keep others from them.
        if self._adopting is None or self._adopting.done():
            self._adopting = asyncio.create_task(self._adopt_all(dead, self._adopt), name="node-adoption")

    async def _adopt_all(self, dead: list[Node], adopt: Adopt) -> None:
        for node in dead:
            try:
                await self._adopt_one(node, adopt)
            except DomainError as failure:
                self._count_adoption(AdoptionOutcome.FAILED)
                log.warning("the calls of the node %s are not ended yet: %s", node.node, failure.message)
            except Exception:  # A defect met with one node must not keep the others from being adopted.
                self._count_adoption(AdoptionOutcome.FAILED)
                log.exception("the calls of the node %s are not ended", node.node)

    async def _adopt_one(self, dead: Node, adopt: Adopt) -> None:
        claim = replace(dead, incarnation=new_id())
        # What the node had is older. Should it come back before its calls are ended, what it has then is not.
        before = utc_now() + _SKEW
        # By the writer: in its turn, so that no transaction of the dead node can commit afterwards.
        if not await self._writer.commit(partial(self._claimed, dead, claim)):
            return
        log.warning("the node %s is dead; ending its calls", dead.node)
        self._claim, claimed_s = claim, _now_s()
        try:
            ended_calls = await adopt(dead.node, before)
        finally:
            self._claim = None
        await self._writer.commit(partial(store.leave, node=dead.node, incarnation=claim.incarnation))
        self._count_adoption(AdoptionOutcome.COMPLETED)
        self.adoptions.calls += ended_calls
        self.adoptions.took_s.observe(_now_s() - claimed_s)
        log.info("the calls of the node %s have ended", dead.node)

    def _count_adoption(self, outcome: AdoptionOutcome) -> None:
        self.adoptions.outcomes[outcome.value] += 1

    def _claimed(self, dead: Node, claim: Node, connection: Connection) -> bool:
        lease_s = self._settings.adoption_s
        if not store.claim(connection, dead, claim.incarnation, self._node.node, lease_s):
            return False
        self._release(connection, dead.node)
        return True


def place_of(lock: Path) -> str:
    """
    Return the boot of this machine and the file that locks the data directory.

    Of two runs in one place the later one holds the lock, so the earlier one has ended.
    """
    try:
        boot = _BOOT.read_text().strip()
    except OSError:
        return ""
    found = os.stat(lock)
    return f"{boot}:{found.st_dev}:{found.st_ino}"


def _now_s() -> float:
    return asyncio.get_running_loop().time()
