"""Messages of accounts: sent one by one, listed, and received."""

from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database import idempotency
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.idempotency import CLAIM
from callcontrol.database.aio.pages import ListQuery, Pager
from callcontrol.database.aio.writer import Writer
from callcontrol.database.statements import to_micros
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import (
    OPTED_OUT,
    ChannelNotConfigured,
    DomainError,
    FieldError,
    NotFound,
    ValidationFailed,
)
from callcontrol.messaging.aio.dispatcher import Dispatcher
from callcontrol.messaging.aio.receiving import Receiver
from callcontrol.messaging.messages import SendMessage, checked, template_errors
from callcontrol.messaging.models import DEFAULT_MESSAGES_PER_SECOND, ChatMessage
from callcontrol.messaging.network import InboundMessage
from callcontrol.messaging.pace import SINGLE_LEEWAY_MICROS
from callcontrol.messaging.store import channels, contacts, templates
from callcontrol.messaging.store import messages as chat_messages
from callcontrol.messaging.store import queue as chat_queue
from callcontrol.messaging.store.messages import MessageFilter
from callcontrol.models import Page
from callcontrol.routing.targets import normalise_number

_SETTLED: Final = timedelta(days=2)
"""No message of a list changes its state after this time; the slowest receipts come within a day."""


class MessageService:
    """
    Messages of accounts; those of other accounts are refused with ``NotFound``.

    Args:
        database: For reading.
        writer: For writing.
        dispatcher: Hands messages to the network.
        receiver: Stores simulated messages.
        destinations: Checks the URLs of media.
        default_rate: Messages per second of a channel without a rate of its own.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        dispatcher: Dispatcher,
        receiver: Receiver,
        destinations: Destinations,
        default_rate: int = DEFAULT_MESSAGES_PER_SECOND,
    ) -> None:
        self._database = database
        self._writer = writer
        self._dispatcher = dispatcher
        self._receiver = receiver
        self._destinations = destinations
        self._default_rate = default_rate
        self._pager = Pager(chat_messages.LISTING)

    async def send(self, account_sid: str, request: SendMessage) -> ChatMessage:
        """
        Send one message; it is durable before the network is asked.

        One that the pace of the channel does not let through now is accepted, and leaves in its turn.

        Raises:
            ValidationFailed: Names every error; also raised when the recipient has opted out, or the
                template is not approved.
            ChannelNotConfigured: The account's channel is not connected.
            SendFailed: The network did not accept it; the message is kept as failed.
            ServiceUnavailable: The database is failing.
        """
        number, content = checked(request, self._destinations.check_url)
        now = utc_now()
        message = ChatMessage(
            message_id=new_id(),
            account_sid=account_sid,
            direction="outbound",
            from_="",
            to=number,
            type=request.type,
            content=content,
            status="queued",
            created_at=now,
            due_at=now,
        )
        # The writer runs the operation in a task of its own, which does not see this request's context.
        claim = CLAIM.get()
        accepted, is_ours = await self._writer.commit(
            partial(self._accept, message, claim),
            # A client that was told 503 sends again: what is committed later must not go out beside it.
            undo=partial(_withdraw, message.message_id, claim),
        )
        if is_ours:
            await self._dispatcher.deliver(accepted)
        else:
            self._dispatcher.wake()
        return accepted

    async def get(self, account_sid: str, message_id: str) -> ChatMessage:
        """
        One message of the account, in either direction.

        Raises:
            NotFound: The message does not exist on the account.
        """
        await self._writer.flush_pending()
        found = await self._database.look_up(partial(chat_messages.get, message_id=message_id))
        if found is None or found.account_sid != account_sid:
            raise NotFound("There is no such message.")
        return found

    async def list(
        self, account_sid: str, query: MessageFilter, page: int = 1, per_page: int = 50
    ) -> Page[ChatMessage]:
        """Messages of the account, newest first."""
        await self._writer.flush_pending()
        conditions = chat_messages.conditions(account_sid, query)
        wanted = ListQuery((account_sid, query), conditions, None, None, _SETTLED)

        return await self._database.read(
            lambda connection: self._pager.page(
                connection, wanted, chat_messages.by_ids, page=page, per_page=per_page
            )
        )

    async def simulate(self, account_sid: str, from_: str, text: str) -> ChatMessage:
        """
        Store a message as if it had been written to the account's channel.

        Raises:
            ValidationFailed: ``from`` is no telephone number.
        """
        number = normalise_number(from_, field="from")
        channel = await self._database.look_up(partial(channels.channel_of, account_sid=account_sid))
        message = InboundMessage(
            f"sandbox-{new_id()}", number, channel.number, "text", {"text": text}, at=utc_now()
        )
        return await self._receiver.inbound(account_sid, message)

    def _accept(
        self, message: ChatMessage, claim: tuple[str, str] | None, connection: Connection
    ) -> tuple[ChatMessage, bool] | DomainError:
        """Write a message if it may be sent, and decide if this process hands it over at once."""
        account_sid = message.account_sid
        channel = channels.channel_of(connection, account_sid, default_rate=self._default_rate)
        if not channel.is_connected:
            return ChannelNotConfigured(
                "The account's channel is not connected; connect it with PATCH /api/v1/channel."
            )
        errors: list[FieldError] = []
        if contacts.is_opted_out(connection, account_sid, message.to):
            errors.append(FieldError("to", "has opted out of messages of this account", OPTED_OUT))
        if message.type == "template":
            wanted = message.content["template"]
            found = templates.usable(connection, account_sid, wanted["name"], wanted["language"])
            errors += template_errors(message.content, found)
        if errors:
            return ValidationFailed(errors)
        now = to_micros(message.due_at)
        rate = channel.messages_per_second
        # It does not overtake those that wait for the pace already.
        is_ours = (
            not chat_queue.is_single_due(connection, account_sid, now)
            and chat_queue.pace(connection, account_sid, now, rate, 1, SINGLE_LEEWAY_MICROS) == 1
        )
        node, lease = self._dispatcher.lease if is_ours else ("", timedelta())
        sent = replace(message, from_=channel.number)
        until = to_micros(message.due_at + lease) if is_ours else 0
        chat_messages.insert_many(connection, [sent], node=node, leased_until=until)
        if claim is not None:
            idempotency.note_effect(connection, claim, _effect(message.message_id))
        return sent, is_ours


def _withdraw(message_id: str, claim: tuple[str, str] | None, connection: Connection) -> None:
    """Undo a message whose commit was answered after its sender was refused, unless it has left since."""
    if chat_messages.withdraw(connection, message_id) and claim is not None:
        idempotency.release_effect(connection, claim, _effect(message_id))


def _effect(message_id: str) -> str:
    return f"message:{message_id}"
