"""A gateway with its telephones: it is called and calls over SIP and UDP, and has RTP of its own."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from tests.acceptance.clients.rtp import Rtp
from tests.acceptance.clients.sip_message import (
    SipMessage,
    described,
    description,
    digest_answer,
    parameter,
    user_of,
)
from tests.acceptance.clients.waiting import PATIENCE_S, appears
from tests.support.ports import free_port

__all__ = ["Manner", "Phone", "PhoneCall"]

_T1_S: Final = 0.5
_SENDS: Final = 6
_hosts = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Manner:
    """
    Behaviour of a called telephone.

    Attributes:
        status: Final response to the call.
        rings_s: Time between 180 and the final response; None rings until the caller gives up.
        speaks: False sends no RTP at all.
        headers: Header fields of the final response.
        hangs_up_after_s: Time from the answer to its own BYE.
    """

    status: int = 200
    rings_s: float | None = 0.05
    speaks: bool = True
    headers: tuple[tuple[str, str], ...] = ()
    hangs_up_after_s: float | None = None


@dataclass(eq=False)
class PhoneCall:
    """
    One call of a telephone.

    Attributes:
        number: The called number, as it was written in the request.
        invite: The INVITE, received or sent.
        status: Final response; 0 before.
        answered_at_s, ended_at_s: Times by the system's clock.
        requests: Requests of the other side within the call, by their arrival.
    """

    phone: Phone
    invite: SipMessage
    local: str
    remote: str
    remote_uri: str
    rtp: Rtp
    number: str
    source: tuple[str, int]
    is_caller: bool
    status: int = 0
    answered_at_s: float = 0.0
    ended_at_s: float = 0.0
    cseq: int = 0
    provisional: list[int] = field(default_factory=list)
    refusal: SipMessage | None = None
    requests: list[SipMessage] = field(default_factory=list)
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    acknowledged: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def call_id(self) -> str:
        """The SIP Call-ID."""
        return self.invite.get("call-id")

    @property
    def shown(self) -> str:
        """Number of the caller that the telephone shows."""
        return user_of(self.invite.get("from"))

    async def until_answered(self) -> Self:
        """Wait for the answer."""
        return await self._until(self.answered, "an answer")

    async def until_ended(self, timeout_s: float = PATIENCE_S) -> Self:
        """Wait for the end of the call, or its refusal."""
        return await self._until(self.ended, "the end", timeout_s)

    async def hang_up(self) -> None:
        """End the call by BYE; before the answer by CANCEL, or by a refusal of the one who is called."""
        if self.ended.is_set():
            return
        if self.answered.is_set():
            self.end()
            await self.phone.transact(self.request("BYE"))
        elif self.is_caller:
            await self.phone.cancel(self)
            await self.until_ended()
        else:
            self.phone.refuse(self, 480)

    def end(self) -> None:
        """Note the end of the call."""
        if not self.ended.is_set():
            self.ended_at_s = time.time()
            self.ended.set()
            self.rtp.close()

    def answer(self) -> None:
        """Note the answer of the call."""
        if not self.answered.is_set():
            self.answered_at_s = time.time()
            self.answered.set()

    def request(self, method: str, body: str = "") -> SipMessage:
        """Make the next request of this side within the call."""
        self.cseq += 1
        return SipMessage.request(
            method,
            self.remote_uri,
            [
                ("via", self.phone.via()),
                ("max-forwards", "70"),
                ("from", self.local),
                ("to", self.remote),
                ("call-id", self.call_id),
                ("cseq", f"{self.cseq} {method}"),
                ("contact", self.phone.contact),
            ],
            body,
        )

    def hears_from(self, body: str) -> None:
        """Speak to the address of a session description."""
        found = described(body)
        if found is not None:
            self.rtp.target = (found.host, found.port)
            self.rtp.events = found.events if found.events is not None else self.rtp.events

    async def _until(self, event: asyncio.Event, wanted: str, timeout_s: float = PATIENCE_S) -> Self:
        await appears(event.is_set, f"{wanted} of the call to {self.number}", timeout_s)
        return self


class Phone(asyncio.DatagramProtocol):
    """
    Telephones of all numbers behind one address of 127.0.0.0/8.

    Attributes:
        calls: All calls in both directions, in their order.
        manners: Behaviour by number; others behave as `manner` says.
        registrations: REGISTER requests, which are granted for as long as they ask.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        number = next(_hosts)
        self.host = f"127.77.{number // 250}.{number % 250 + 1}"
        self.port = free_port()
        self.calls: list[PhoneCall] = []
        self.manner = Manner()
        self.manners: dict[str, Manner] = {}
        self.registrations: list[SipMessage] = []
        self._server = server
        self._shown: set[str] = set()
        self._waiting: dict[str, asyncio.Queue[SipMessage]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.create_datagram_endpoint(
            lambda: self, local_addr=(self.host, self.port)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                for call in self.calls:
                    await call.hang_up()
        finally:
            for task in self._tasks:
                task.cancel()
            for call in self.calls:
                call.rtp.close()
            self._transport.close()

    @property
    def contact(self) -> str:
        """Address of this side for requests."""
        return f"<sip:phone@{self.host}:{self.port}>"

    def via(self) -> str:
        """Make the Via of a new transaction."""
        return f"SIP/2.0/UDP {self.host}:{self.port};branch=z9hG4bK{secrets.token_hex(8)}"

    async def rings(self, number: str | None = None, timeout_s: float = PATIENCE_S) -> PhoneCall:
        """Wait for the next call to a number, or to any; each call is returned once."""

        def look() -> PhoneCall | None:
            for call in self.calls:
                if not call.is_caller and call.call_id not in self._shown and number in (None, call.number):
                    self._shown.add(call.call_id)
                    return call
            return None

        return await appears(look, f"a call to {number or 'the telephone'}", timeout_s)

    def dial(
        self, to: str, caller: str, *, username: str = "", password: str = "", speaks: bool = True
    ) -> PhoneCall:
        """Begin a call; with a password a challenge is answered."""
        host, port = self._server
        rtp = Rtp(self.host)
        uri = f"sip:{to}@{host}:{port}"
        local = f"<sip:{caller}@{self.host}:{self.port}>;tag={secrets.token_hex(6)}"
        headers = [
            *(("via", self.via()), ("max-forwards", "70"), ("from", local), ("to", f"<{uri}>")),
            *(("call-id", f"{secrets.token_hex(10)}@{self.host}"), ("cseq", "1 INVITE")),
            *(("contact", self.contact), ("allow", "INVITE, ACK, CANCEL, BYE, INFO")),
        ]
        invite = SipMessage.request("INVITE", uri, headers, description(rtp.address))
        call = PhoneCall(self, invite, local, f"<{uri}>", uri, rtp, to, self._server, is_caller=True, cseq=1)
        self.calls.append(call)
        self._start(self._call(call, (username, password), speaks))
        return call

    def refuse(self, call: PhoneCall, status: int) -> None:
        """Refuse a call to this side, once."""
        call.status = status
        call.refusal = call.invite.response(status, to_tag=parameter(call.local, "tag"))
        call.end()
        self._send(call.refusal, call.source)

    async def cancel(self, call: PhoneCall) -> None:
        """Cancel a call of this side that is not answered."""
        await appears(lambda: call.provisional or call.ended.is_set(), "a response to cancel after")
        kept = [(name, value) for name, value in call.invite.headers if name in _OF_CANCEL]
        cancel = SipMessage.request("CANCEL", call.invite.uri, [*kept, ("cseq", f"{call.cseq} CANCEL")])
        await self.transact(cancel)

    async def transact(
        self,
        request: SipMessage,
        heed: Callable[[SipMessage], None] | None = None,
    ) -> SipMessage:
        """Send a request until there is a response, and return the final one; `heed` gets those before it."""
        # A CANCEL has the branch of its INVITE.
        key = parameter(request.get("via"), "branch") + request.method
        queue = self._waiting[key] = asyncio.Queue()
        waits_s, sends = _T1_S, 0
        try:
            while True:
                if sends < _SENDS:
                    self._send(request, self._server)
                    sends += 1
                try:
                    response = await asyncio.wait_for(queue.get(), waits_s)
                except TimeoutError:
                    assert sends < _SENDS, f"no response to {request.start}"
                    waits_s *= 2
                    continue
                if response.status >= 200:
                    return response
                # The other side has the request: it is not sent again.
                sends, waits_s = _SENDS, 600.0
                if heed is not None:
                    heed(response)
        finally:
            # A caller's INVITE may be answered again until its ACK has come.
            if request.method != "INVITE":
                del self._waiting[key]

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Dispatch a message."""
        if not data.strip(b"\r\n\0"):
            return
        message = SipMessage.parse(data)
        if message.status:
            queue = self._waiting.get(parameter(message.get("via"), "branch") + message.method)
            if queue is not None:
                queue.put_nowait(message)
            return
        call = next((call for call in self.calls if call.call_id == message.get("call-id")), None)
        handler = getattr(self, f"_on_{message.method.lower()}", self._on_other)
        handler(message, addr, call)

    # Requests of the other side

    def _on_invite(self, request: SipMessage, source: tuple[str, int], call: PhoneCall | None) -> None:
        if call is None:
            rtp = Rtp(self.host)
            tag = secrets.token_hex(6)
            contact = re.search(r"<([^>]+)>", request.get("contact"))
            call = PhoneCall(
                self,
                request,
                f"{request.get('to')};tag={tag}",
                request.get("from"),
                contact[1] if contact else request.uri,
                rtp,
                user_of(request.uri),
                source,
                is_caller=False,
            )
            call.hears_from(request.body)
            self.calls.append(call)
            self._start(self._serve(call, tag))
        elif parameter(request.get("to"), "tag"):
            call.requests.append(request)
            call.hears_from(request.body)
            self._send(self._accepted(request, call), source)

    def _on_ack(self, request: SipMessage, source: tuple[str, int], call: PhoneCall | None) -> None:
        if call is not None:
            if request.body:
                call.hears_from(request.body)
            call.acknowledged.set()

    def _on_bye(self, request: SipMessage, source: tuple[str, int], call: PhoneCall | None) -> None:
        if call is not None:
            call.requests.append(request)
            call.end()
        self._send(request.response(200 if call is not None else 481), source)

    def _on_cancel(self, request: SipMessage, source: tuple[str, int], call: PhoneCall | None) -> None:
        self._send(request.response(200 if call is not None else 481), source)
        if call is not None and not call.status:
            call.status = 487
            call.end()
            self._send(call.invite.response(487, to_tag=parameter(call.local, "tag")), source)

    def _on_register(self, request: SipMessage, source: tuple[str, int], call: PhoneCall | None) -> None:
        self.registrations.append(request)
        expires = request.get("expires") or parameter(request.get("contact"), "expires") or "3600"
        granted = [("contact", f"{request.get('contact')};expires={expires}"), ("expires", expires)]
        self._send(request.response(200, granted, to_tag=secrets.token_hex(6)), source)

    def _on_other(self, request: SipMessage, source: tuple[str, int], call: PhoneCall | None) -> None:
        if call is not None:
            call.requests.append(request)
            if request.method == "UPDATE" and request.body:
                call.hears_from(request.body)
                self._send(self._accepted(request, call), source)
                return
        self._send(request.response(200, to_tag=secrets.token_hex(6)), source)

    def _accepted(self, request: SipMessage, call: PhoneCall) -> SipMessage:
        """Answer an offer with the one stream there is, or make the offer."""
        offer = described(request.body)
        mirrored = {"sendonly": "recvonly", "recvonly": "sendonly", "inactive": "inactive"}
        direction = mirrored.get(offer.direction, "sendrecv") if offer is not None else "sendrecv"
        body = description(call.rtp.address, offer.events if offer is not None else 101, direction)
        return request.response(200, [("contact", self.contact)], body, parameter(call.local, "tag"))

    # The two roles

    async def _serve(self, call: PhoneCall, tag: str) -> None:
        manner = self.manners.get(call.number, self.manner)
        contact = [("contact", self.contact)]
        self._send(call.invite.response(180, contact, to_tag=tag), call.source)
        call.provisional.append(180)
        if manner.rings_s is None:
            return
        await asyncio.sleep(manner.rings_s)
        if call.ended.is_set():
            return
        call.status = manner.status
        if manner.status != 200:
            call.refusal = call.invite.response(manner.status, [*contact, *manner.headers], to_tag=tag)
            call.end()
            await self._repeat(call.refusal, call)
            return
        if manner.speaks:
            call.rtp.speak()
        call.answer()
        await self._repeat(self._accepted(call.invite, call), call)
        if manner.hangs_up_after_s is not None:
            await asyncio.sleep(manner.hangs_up_after_s)
            await call.hang_up()

    async def _repeat(self, response: SipMessage, call: PhoneCall) -> None:
        """Send a final response until it is acknowledged."""
        wait_s = _T1_S
        for _ in range(_SENDS):
            self._send(response, call.source)
            try:
                await asyncio.wait_for(call.acknowledged.wait(), wait_s)
            except TimeoutError:
                wait_s *= 2
                continue
            return

    async def _call(self, call: PhoneCall, credentials: tuple[str, str], speaks: bool) -> None:
        def heed(response: SipMessage) -> None:
            call.provisional.append(response.status)
            call.hears_from(response.body)

        response = await self.transact(call.invite, heed)
        if response.status in (401, 407) and credentials[0]:
            self._acknowledge(call, response)
            self._answer_challenge(call, response, credentials)
            response = await self.transact(call.invite, heed)
        call.status = response.status
        call.remote = response.get("to")
        if response.status >= 300:
            call.refusal = response
            self._acknowledge(call, response)
            call.end()
            return
        contact = re.search(r"<([^>]+)>", response.get("contact"))
        call.remote_uri = contact[1] if contact else call.remote_uri
        call.hears_from(response.body)
        if speaks:
            call.rtp.speak()
        call.answer()
        queue = self._waiting[parameter(call.invite.get("via"), "branch") + "INVITE"]
        while True:
            self._acknowledge(call, response)
            await queue.get()

    def _acknowledge(self, call: PhoneCall, response: SipMessage) -> None:
        """Send the ACK of a final response: within its transaction, or of a 2xx in one of its own."""
        accepted = response.status < 300
        headers = [
            ("via", self.via() if accepted else call.invite.get("via")),
            *(("max-forwards", "70"), ("from", call.local), ("to", response.get("to"))),
            *(("call-id", call.call_id), ("cseq", f"{call.invite.get('cseq').split()[0]} ACK")),
        ]
        uri = call.remote_uri if accepted else call.invite.uri
        self._send(SipMessage.request("ACK", uri, headers), self._server)

    def _answer_challenge(self, call: PhoneCall, response: SipMessage, credentials: tuple[str, str]) -> None:
        name, answer = ("www-authenticate", "authorization")
        if response.status == 407:
            name, answer = ("proxy-authenticate", "proxy-authorization")
        challenge = next(
            value for value in response.all(name) if (parameter(value, "algorithm") or "MD5").upper() == "MD5"
        )
        call.cseq += 1
        renewed = {"via": self.via(), "cseq": f"{call.cseq} INVITE"}
        headers = [(found, renewed.get(found, value)) for found, value in call.invite.headers]
        headers.append((answer, digest_answer(challenge, "INVITE", call.invite.uri, *credentials)))
        call.invite = SipMessage.request("INVITE", call.invite.uri, headers, call.invite.body)

    def _send(self, message: SipMessage, address: tuple[str, int]) -> None:
        if not self._transport.is_closing():
            self._transport.sendto(bytes(message), address)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


_OF_CANCEL: Final = {"via", "max-forwards", "from", "to", "call-id"}
