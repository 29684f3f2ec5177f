"""WebSockets to applications of jambonz: one for each call that has such an application."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import aiohttp

from callcontrol.aio.tokens import new_id, unix_time_s
from callcontrol.calls.aio.context import ActiveCall
from callcontrol.calls.effects.instructions import AskWebhook
from callcontrol.calls.events import Event
from callcontrol.calls.events.commands import DubRequested, RedirectRequested, StepsRequested
from callcontrol.calls.plan import Dub, Step
from callcontrol.calls.records.call_info import call_info
from callcontrol.egress.aio.http_client import NotAnswered, customer_session, problem_of, reason_of
from callcontrol.egress.requests import signed_headers
from callcontrol.egress.url_policy import HOOK_SCHEMES, SOCKET_SCHEMES, Destinations, url_errors
from callcontrol.errors import DomainError, ValidationFailed
from callcontrol.ids import CallSid
from callcontrol.instructions.jambonz.messages import (
    SUBPROTOCOL,
    Ack,
    DubOrder,
    MessageType,
    Redirect,
    Redirection,
    hook_of,
    read_message,
    written,
)
from callcontrol.instructions.verbs.values import hook_url
from callcontrol.models import WebhookEvent

MAX_MESSAGES: Final = 1000
"""Limit of messages of one application in one connection: what it could change in a call is less."""

_MAX_ERROR_CHARS: Final = 1000
_TOO_MANY: Final = 1008
_CLOSE_S: Final = 1.0

ReadVerbs = Callable[[ActiveCall, bytes, str], Sequence[Step]]
"""Reads verbs in JSON that an application sent from an address into steps; raises ``DomainError``."""


@dataclass(slots=True)
class _Connection:
    """
    A WebSocket, and the messages that wait for its answers.

    ``first`` is the message that the application has not answered yet, None once it has.
    """

    address: str
    socket: aiohttp.ClientWebSocketResponse
    first: MessageType | None
    waiting: dict[str, asyncio.Future[object]] = field(default_factory=dict)

    def lost(self) -> None:
        """Fail what waits for an answer."""
        for answer in self.waiting.values():
            if not answer.done():
                answer.set_exception(NotAnswered("protocol", "the application closed the connection"))


class JambonzSessions:
    """
    Asks applications over WebSockets, and passes their commands to the calls.

    ``timeout_s`` covers the connection and the answer; a message of an application has at most
    ``max_bytes``. The end of a call closes its connection.
    """

    def __init__(
        self, destinations: Destinations, read: ReadVerbs, *, timeout_s: float, max_bytes: int
    ) -> None:
        self._destinations = destinations
        self._read = read
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._client: aiohttp.ClientSession | None = None
        self._connections: dict[CallSid, _Connection] = {}

    async def ask(
        self, call: ActiveCall, effect: AskWebhook, event: WebhookEvent, secrets: Sequence[str]
    ) -> bytes:
        """
        Send the information of an event to the application of a call; returns its verbs in JSON.

        Raises:
            NotAnswered: There is no answer.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._ask(call, effect, event, secrets)
        except NotAnswered:
            raise
        except DomainError as refusal:
            raise NotAnswered("connect", refusal.message) from None
        except TimeoutError:
            raise NotAnswered("timeout", f"no answer within {self._timeout_s:g} s") from None
        except aiohttp.WSServerHandshakeError as refusal:
            raise NotAnswered("http_status", f"answered {refusal.status}", refusal.status) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotAnswered(reason_of(error), problem_of(error)) from None

    def report(self, call: ActiveCall, message: str) -> None:
        """Tell the application of a call, if it is connected, why its verbs have no effect."""
        found = self._connections.get(call.record.call_sid)
        if found is not None and not found.socket.closed:
            call.mailbox.spawn_helper(self._tell(call, found, message))

    async def close(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _ask(
        self, call: ActiveCall, effect: AskWebhook, event: WebhookEvent, secrets: Sequence[str]
    ) -> bytes:
        address, hook = hook_of(effect.url)
        call_sid = call.record.call_sid
        found = self._connections.get(call_sid)
        kind = _kind(found, address)
        if found is None or kind != "verb:hook" or found.socket.closed:
            found = await self._connect(call, address, event, secrets, kind)
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        msgid = new_id()
        found.waiting[msgid] = answer
        try:
            data = json.loads(event.body)
            named = (hook or address) if kind == "verb:hook" else None
            await found.socket.send_str(written(kind, msgid, call_sid, data, named))
            verbs = await answer
            found.first = None
        finally:
            del found.waiting[msgid]
        return b"" if verbs is None else _json(verbs)

    async def _connect(
        self,
        call: ActiveCall,
        address: str,
        event: WebhookEvent,
        secrets: Sequence[str],
        kind: MessageType,
    ) -> _Connection:
        """Connect for a message; an application that was lost is told which call the connection is for."""
        self._destinations.check_url(address, schemes=SOCKET_SCHEMES)
        if self._client is None:
            self._client = customer_session(self._destinations, "application/json")
        socket = await self._client.ws_connect(
            address,
            protocols=(SUBPROTOCOL,),
            # The message follows the handshake, which has no body to sign.
            headers=signed_headers(replace(event, method="GET", body=b""), secrets, unix_time_s()),
            max_msg_size=self._max_bytes,
            # An application that does not answer the closing frame is not waited for.
            timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
            compress=0,
        )
        call_sid = call.record.call_sid
        former = self._connections.get(call_sid)
        first = None if kind == "verb:hook" else kind
        found = self._connections[call_sid] = _Connection(address, socket, first)
        call.mailbox.spawn_helper(self._listen(call, found))
        if former is None:
            call.mailbox.spawn_helper(self._keep(call_sid))
        else:
            await former.socket.close()
        if kind == "verb:hook":
            info = call_info(call.record)
            await socket.send_str(written("session:reconnect", new_id(), call_sid, info))
        return found

    async def _keep(self, call_sid: CallSid) -> None:
        """Keep the connections of a call until its end, which cancels this."""
        try:
            await asyncio.Event().wait()
        finally:
            self._connections.pop(call_sid, None)

    async def _listen(self, call: ActiveCall, found: _Connection) -> None:
        """Handle the messages of an application until either side closes."""
        count = 0
        try:
            async for message in found.socket:
                count += 1
                if count > MAX_MESSAGES or message.type is not aiohttp.WSMsgType.TEXT:
                    await found.socket.close(code=_TOO_MANY)
                    return
                try:
                    self._handle(call, found, str(message.data))
                except DomainError as refusal:
                    await self._tell(call, found, refusal.message)
        finally:
            found.lost()
            await found.socket.close()

    def _handle(self, call: ActiveCall, found: _Connection, text: str) -> None:
        match read_message(text):
            case Ack(msgid, verbs):
                answer = found.waiting.get(msgid)
                if answer is not None and not answer.done():
                    answer.set_result(verbs)
            case Redirect(verbs):
                call.mailbox.post(StepsRequested(self._read(call, _json(verbs), found.address)))
            case DubOrder(fields):
                for step in self._read(call, _json([{**fields, "verb": "dub"}]), found.address):
                    if isinstance(step, Dub):
                        call.mailbox.post(DubRequested("a", step))
            case Redirection(hook, method):
                url = hook if "://" in hook else hook_url(found.address, hook)
                call.mailbox.post(self._redirection(url, method))
            case command:
                call.mailbox.post(command)

    def _redirection(self, url: str, method: str) -> Event:
        check_url, schemes = self._destinations.check_url, HOOK_SCHEMES
        errors = url_errors(check_url, "call_hook", url, schemes=schemes)
        if errors:
            raise ValidationFailed(errors)
        return RedirectRequested(url, "GET" if method == "GET" else "POST", "jambonz")

    async def _tell(self, call: ActiveCall, found: _Connection, message: str) -> None:
        told = {"error": message[:_MAX_ERROR_CHARS]}
        # It may have left meanwhile.
        with contextlib.suppress(ConnectionError):
            await found.socket.send_str(written("jambonz:error", new_id(), call.record.call_sid, told))


def _json(verbs: object) -> bytes:
    try:
        return json.dumps(verbs).encode()
    except RecursionError:
        raise ValidationFailed.of("data", "must not nest so deep") from None


def _kind(known: _Connection | None, address: str) -> MessageType:
    """The type of the next message to an application at an address."""
    if known is None:
        return "session:new"
    if known.address != address:
        return "session:redirect"
    return "verb:hook" if known.first is None else known.first
