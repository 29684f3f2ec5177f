"""Messages of verbs by the account's tool, with its checks, and on its channel."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from callcontrol.aio.tokens import utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.aio.context import ActiveCall
from callcontrol.calls.steps.send_message import MAX_MESSAGES, MessageHandled, SendChatMessage
from callcontrol.instructions.verbs import MAX_MESSAGE_CHARS
from callcontrol.messaging.aio.channels import ChannelService
from callcontrol.messaging.messages import MAX_TEXT
from callcontrol.messaging.models import SANDBOX_NUMBER
from callcontrol.messaging.network import NetworkRefused
from callcontrol.messaging.store import contacts
from callcontrol.messaging.store.messages import MessageFilter
from callcontrol.models import Account
from callcontrol.tools.aio.builtin import messaging_tools
from callcontrol.tools.aio.call_messages import CallMessages
from callcontrol.tools.aio.service import Toolbox
from tests.support.messaging import MessagingStage, ScriptedNetwork, messaging

TO = "+919800100000"
MESSAGE = SendChatMessage(1, TO, "Your order is on its way.")


class Mailbox:
    """Takes the events of a call, and runs its helpers."""

    log = logging.getLogger("call")

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.events: list[Any] = []

    def spawn_helper(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.tasks.append(asyncio.create_task(work))
        return self.tasks[-1]

    def post(self, event: Any) -> None:
        self.events.append(event)


class Stage:
    """The messages of one call of the account."""

    def __init__(self, stage: MessagingStage, account: Account) -> None:
        storage = stage.storage
        tools = messaging_tools(stage.messages, storage.contacts)
        self.account = account
        self.messages = stage.messages
        self.channels = ChannelService(storage.database, storage.writer)
        self.box = Toolbox(storage.database, storage.writer, storage.destinations, storage.keys, tools)
        self.mailbox = Mailbox()
        self.call = cast(ActiveCall, SimpleNamespace(account=account, mailbox=self.mailbox, messages_sent=0))
        self.sender = CallMessages(lambda: self.box.service, self._number)

    async def _number(self, account_sid: str) -> str:
        return (await self.channels.of(account_sid)).number

    async def send(self, effect: SendChatMessage = MESSAGE) -> MessageHandled:
        """Send a message; returns what the call is told."""
        self.sender.perform(self.call, effect)
        await self.mailbox.tasks.pop()
        (event,) = self.mailbox.events
        self.mailbox.events.clear()
        assert isinstance(event, MessageHandled) and event.number == effect.number
        return event


@pytest.fixture
def network() -> ScriptedNetwork:
    return ScriptedNetwork()


@pytest.fixture
async def stage(storage: Storage, account: Account, network: ScriptedNetwork) -> AsyncIterator[Stage]:
    async with messaging(storage, network) as running:
        made = Stage(running, account)
        yield made
        await made.box.close()


async def test_a_message_leaves_on_the_channel_of_the_account(stage: Stage, network: ScriptedNetwork) -> None:
    told = await stage.send(replace(MESSAGE, from_=SANDBOX_NUMBER))
    assert (told.status, told.error_code) == ("accepted", None)
    assert network.sent == [told.message_id]
    (sent,) = (await stage.messages.list(stage.account.account_sid, MessageFilter())).items
    assert (sent.message_id, sent.to, sent.from_) == (told.message_id, TO, SANDBOX_NUMBER)
    assert sent.content == {"text": MESSAGE.text}


async def test_what_the_tool_refuses_is_told(
    stage: Stage, network: ScriptedNetwork, storage: Storage
) -> None:
    sid = stage.account.account_sid
    told = await stage.send(replace(MESSAGE, from_="+918047000001"))
    assert (told.error_code, told.error) == (
        "VALIDATION_ERROR",
        "from: must be the number of the account's channel",
    )
    network.answers[TO] = [NetworkRefused("NOT_ON_NETWORK", "There is nobody.")]
    told = await stage.send()
    assert told.error_code == "NOT_ON_NETWORK" and told.message_id == network.sent[0]
    await storage.writer.commit(lambda rows: contacts.set_opted_out(rows, sid, TO, True, utc_now()))
    told = await stage.send()
    assert told.error_code == "OPTED_OUT" and (told.error or "").startswith("to: ")
    await stage.channels.update(sid, {"is_connected": False})
    assert (await stage.send()).error_code == "CHANNEL_NOT_CONFIGURED"
    await stage.box.registry.set_enabled(sid, "send_message", enabled=False)
    told = await stage.send()
    assert (told.status, told.error_code, told.message_id) == ("failed", "CONFLICT", None)
    assert len(network.sent) == 1


async def test_a_call_does_not_flood_people(stage: Stage, network: ScriptedNetwork) -> None:
    stage.call.messages_sent = MAX_MESSAGES - 1
    assert (await stage.send()).status == "accepted"
    assert (await stage.send()).error_code == "RATE_LIMITED"
    assert len(network.sent) == 1


def test_a_verb_takes_as_long_a_text_as_the_network() -> None:
    assert MAX_MESSAGE_CHARS == MAX_TEXT
