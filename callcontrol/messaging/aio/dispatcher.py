"""
Hands queued messages from the database to the network, at the pace of each account's channel.

The database is the only queue. A message is claimed and handed over under its own id, which the network
accepts once. The outcome is committed with the writer's next batch. So a message with a lost outcome is
handed over again but sent once. A kill loses nothing: the start releases the claims of the previous run, and
the claims of a process that never returns expire.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tasks import Worker
from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database, Operation
from callcontrol.database.aio.pending import Pending
from callcontrol.database.aio.writer import Writer
from callcontrol.database.statements import to_micros
from callcontrol.errors import DomainError, SendFailed
from callcontrol.messaging.aio.receiving import Applied, Receiver
from callcontrol.messaging.models import ChatMessage
from callcontrol.messaging.network import MessagingNetwork, NetworkRefused, NetworkUnavailable, Receipt
from callcontrol.messaging.pace import UNAVAILABLE, retry_delay_s
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.messaging.store import queue as chat_queue
from callcontrol.messaging.store.send_checks import send_refusals

log = logging.getLogger(__name__)

_CLOSE_S: Final = 2.0
_UNREACHABLE: Final = "The messaging network could not be reached."


@dataclass(frozen=True, slots=True)
class DispatcherSettings:
    """
    Settings of handing messages over.

    Attributes:
        node: The name under which this process claims; no two processes on one database share it.
        max_active: Messages under way to the network at once, without those sent directly.
        per_account: The same limit for one account.
        per_turn: Messages claimed in one transaction: some milliseconds.
        lease_s: Lifetime of the claims of a process that died.
        timeout_s: Time limit for the network's answer.
        poll_s: Interval between queries of the database for due messages.
        turn_s: Shortest time between two claims.
        gather_s: The same when only the pace of accounts delays messages: messages that leave together are
            written together, at every state.
        direct_delays_s: Delays before the retries of a message that is sent directly.
        recheck_s: Greatest age of sent messages about which the network is asked at the start.
        recheck_at_once: Number of those in one query.
    """

    node: str = "local"
    max_active: int = 256
    per_account: int = 64
    per_turn: int = 50
    lease_s: float = 60.0
    timeout_s: float = 10.0
    poll_s: float = 1.0
    turn_s: float = 0.05
    gather_s: float = 0.25
    direct_delays_s: Sequence[float] = (0.2, 1.0)
    recheck_s: float = 3600.0
    recheck_at_once: int = 200


class Dispatcher:
    """
    Hands over the messages that this process claims.

    Args:
        database: Read for due messages.
        writer: Claims, and writes outcomes. It is closed after the dispatcher.
        network: Accepts messages.
        receiver: Applies the outcomes.
        rate_of: Returns the messages per second that an account may send.
        settings: Limits and intervals.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        network: MessagingNetwork,
        receiver: Receiver,
        rate_of: Callable[[Connection, str], int],
        settings: DispatcherSettings | None = None,
    ) -> None:
        self._database = database
        self._writer = writer
        self._network = network
        self._receiver = receiver
        self._rate_of = rate_of
        self._settings = settings or DispatcherSettings()
        self._worker = Worker(
            "message-dispatcher", self._step, retry_s=self._settings.poll_s, log=log, level=logging.DEBUG
        )
        self._busy: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._rechecking: asyncio.Task[None] | None = None
        self._after = ""
        self._outcomes = Pending[Receipt | chat_queue.Postponed](self._recording, _log_lost, receiver.settled)

    @property
    def active(self) -> int:
        """Messages of the queue that are under way to the network."""
        return len(self._tasks)

    @property
    def lease(self) -> tuple[str, timedelta]:
        """The name under which this process claims, and the duration of a claim."""
        return self._settings.node, timedelta(seconds=self._settings.lease_s)

    async def start(self) -> None:
        """Release the claims of the previous run of this process, and start handing over."""
        self._writer.attach(self._outcomes)
        await self._writer.commit(partial(chat_queue.release, node=self._settings.node))
        await self._network.start(self._receiver)
        self._worker.start()
        self._rechecking = asyncio.create_task(self._recheck(), name="message-recheck")

    async def close(self) -> None:
        """Stop claiming. Messages under way get two seconds; the others are handed over again later."""
        await self._worker.close()
        if self._rechecking is not None:
            self._rechecking.cancel()
            await asyncio.gather(self._rechecking, return_exceptions=True)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLOSE_S)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._network.close()
        # The next process must not hand over again what the network accepted.
        await self._writer.flush_pending()

    def wake(self) -> None:
        """Wake the dispatcher: the queue has new messages."""
        self._worker.wake()

    async def deliver(self, message: ChatMessage) -> None:
        """
        Hand over a message that was claimed when it was written, before its sender is answered.

        Raises:
            SendFailed: The network did not accept it; the message has failed.
            ServiceUnavailable: The failure could not be stored; the message is handed over again later.
        """
        receipt = await self._send(message)
        for delay_s in self._settings.direct_delays_s:
            if receipt is None:
                await asyncio.sleep(delay_s)
                receipt = await self._send(message)
        receipt = receipt or _failed(message, UNAVAILABLE, _UNREACHABLE)
        if receipt.status == "sent":
            self._record_outcome(receipt)
            return
        await self._receiver.receipts([receipt])
        details = {"messageId": message.message_id, "reason": receipt.error_code}
        raise SendFailed(f"The message was not sent: {receipt.error_message}", details=details)

    # The queue.

    async def _step(self) -> float:
        delay_s = await self._turn()
        await asyncio.sleep(self._settings.turn_s)
        return max(0.0, delay_s - self._settings.turn_s)

    async def _turn(self) -> float:
        """Claim due messages and hand them over; return the seconds that the next turn can wait."""
        settings = self._settings
        room = min(settings.max_active - len(self._tasks), settings.per_turn)
        now = utc_now()
        if room <= 0 or not await self._database.look_up(partial(chat_queue.is_due, now=now)):
            self._after = ""
            return settings.poll_s
        until = now + timedelta(seconds=settings.lease_s)
        wanted = chat_queue.Claim(settings.node, now, until, room, settings.per_account)
        turn, failed = await self._writer.commit(
            partial(self._claim, wanted, self._after),
            # No other claim has this lease.
            undo=partial(chat_queue.release, node=settings.node, until=until),
        )
        self._receiver.settled(failed)
        # A turn that began behind an account has not looked at the accounts before it.
        began_behind, self._after = self._after, turn.last_account
        for claimed in turn.claimed:
            self._begin(claimed)
        if began_behind or turn.last_account or turn.is_full:
            return settings.turn_s
        if turn.more_at is None:
            return settings.poll_s
        # Checked again early: the clock may be set back, or forward, meanwhile.
        left_s = (turn.more_at - to_micros(utc_now())) / 1_000_000
        return min(max(left_s, settings.gather_s), settings.poll_s)

    def _claim(
        self, wanted: chat_queue.Claim, after: str, connection: Connection
    ) -> tuple[chat_queue.Turn, Applied]:
        """Claim due messages; those that must not be sent any more fail at once."""
        turn = chat_queue.claim(connection, wanted, self._rate_of, self._busy.__getitem__, after)
        messages = [claimed.message for claimed in turn.claimed]
        reasons = send_refusals(connection, messages)
        failures = [
            _failed(message, *reasons[message.message_id])
            for message in messages
            if message.message_id in reasons
        ]
        leaving = [claimed for claimed in turn.claimed if claimed.message.message_id not in reasons]
        return replace(turn, claimed=leaving), self._receiver.applying(failures)(connection)

    def _begin(self, claimed: chat_queue.Claimed) -> None:
        self._busy[claimed.message.account_sid] += 1
        task = asyncio.create_task(self._submit(claimed), name="message")
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, claimed.message.account_sid))

    def _ended(self, account_sid: str, task: asyncio.Task[None]) -> None:
        if (
            len(self._tasks) >= self._settings.max_active
            or self._busy[account_sid] >= self._settings.per_account
        ):
            self._worker.wake()
        self._tasks.discard(task)
        self._busy[account_sid] -= 1
        if not self._busy[account_sid]:
            del self._busy[account_sid]

    async def _submit(self, claimed: chat_queue.Claimed) -> None:
        message = claimed.message
        receipt = await self._send(message)
        delay_s = retry_delay_s(claimed.attempts, jitter=random.random())
        if receipt is None and delay_s is not None:
            due_at = utc_now() + timedelta(seconds=delay_s)
            self._record_outcome(chat_queue.Postponed(message.message_id, due_at))
        else:
            self._record_outcome(receipt or _failed(message, UNAVAILABLE, _UNREACHABLE))

    async def _send(self, message: ChatMessage) -> Receipt | None:
        """Hand a message over, and return its receipt; None if the network was not available."""
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                reference = await self._network.send(message)
        except NetworkRefused as refusal:
            return _failed(message, refusal.code, refusal.message)
        except (NetworkUnavailable, TimeoutError):
            return None
        except Exception:
            # A defect of an adapter must not lose a message; whether it was taken is not known.
            log.exception("the adapter of the messaging network failed on message %s", message.message_id)
            return None
        return Receipt(message.message_id, "sent", utc_now(), reference)

    def _record_outcome(self, outcome: Receipt | chat_queue.Postponed) -> None:
        self._outcomes.put(outcome.message_id, outcome)
        self._writer.schedule_flush(self._outcomes, "soon")

    def _recording(self, outcomes: Sequence[Receipt | chat_queue.Postponed]) -> Operation[Applied]:
        """The operation that writes outcomes."""
        receipts = [outcome for outcome in outcomes if isinstance(outcome, Receipt)]
        postponed = [outcome for outcome in outcomes if isinstance(outcome, chat_queue.Postponed)]
        apply = self._receiver.applying(receipts)

        def write(connection: Connection) -> Applied:
            chat_queue.postpone(connection, postponed)
            return apply(connection)

        return write

    # Messages that were under way when the previous run ended.

    async def _recheck(self) -> None:
        since = utc_now() - timedelta(seconds=self._settings.recheck_s)
        last: ChatMessage | None = None
        while True:
            try:
                found = await self._database.read(
                    partial(
                        chat_messages.under_way, since=since, after=last, limit=self._settings.recheck_at_once
                    )
                )
                if not found:
                    return
                await self._network.recheck(found)
            except (DomainError, NetworkUnavailable) as error:
                log.info("messages in progress could not be rechecked, trying again: %s", error)
                await asyncio.sleep(self._settings.poll_s)
                continue
            last = found[-1]


def _failed(message: ChatMessage, code: str, reason: str) -> Receipt:
    return Receipt(message.message_id, "failed", utc_now(), error_code=code, error_message=reason)


def _log_lost(lost: Mapping[str, Receipt | chat_queue.Postponed], error: Exception) -> None:
    # Their claims expire, and the messages are handed over again.
    log.error("results of messages could not be stored", exc_info=error)
