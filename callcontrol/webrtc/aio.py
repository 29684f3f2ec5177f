"""
Calls of browsers to numbers of their account.

The gateway between WebRTC and SIP: once a browser has agreed on keys, its call enters by an on-net INVITE
whose description has these keys. To everything above it is an inbound call of any carrier.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, Literal

from callcontrol.accounts.aio.keys import KeyService
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.own_numbers import owner_of
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.hangup_cause import NORMAL_CLEARING, NORMAL_TEMPORARY_FAILURE
from callcontrol.database.encryption import Cipher
from callcontrol.directory.directory import Directory
from callcontrol.errors import (
    CallEnded,
    Forbidden,
    NodeUnreachable,
    NotFound,
    ServiceUnavailable,
    Unauthorized,
    ValidationFailed,
)
from callcontrol.models import Carrier, Principal
from callcontrol.routing.on_net import ON_NET
from callcontrol.routing.targets import normalise_number
from callcontrol.webrtc.tokens import DEFAULT_IDENTITY, IDENTITY, PhonePrincipal, PhoneToken
from media.capabilities import built_codecs, has_srtp
from media.webrtc.aio import BrowserLeg, BrowserSocket, LegEnd
from media.webrtc.descriptions import CODECS, BrowserOffer, OfferRefused, engine_port, parse_offer
from media.webrtc.dtls import SrtpKeys
from sip import (
    Answered,
    Destination,
    Ended,
    Failed,
    NameAddr,
    OfferReceived,
    OutboundInvite,
    Progress,
    SessionEvent,
    SipUri,
)
from sip.aio import OutboundSession

log = logging.getLogger(__name__)

State = Literal["connecting", "ringing", "active", "ended"]

MAX_WAIT_S: Final = 4.0
"""Longest wait for another state."""

_KEPT_S: Final = 60.0
_SCOPES: Final = frozenset({"calls.read", "calls.write"})
# Cut short by us: nothing says that the browser wanted to hang up.
_LOST: Final = frozenset({LegEnd.SILENT, LegEnd.NO_KEYS})


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserCallRequest:
    """
    Request of a browser to call a number of its account.

    ``from_`` is the caller to show: a name, or a number of the account; ``parameters`` become ``X-`` header
    fields of the INVITE.
    """

    sdp: str
    to: str
    from_: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True, eq=False)
class BrowserCall:
    """
    A browser's call, from the offer until a minute after its end.

    Attributes:
        identity: Name of the telephone.
        from_: Caller that the called side sees: its name, or a number of the account.
        answer: Our answer to the browser's offer.
        reason: Reason of the end; None before.
        sip_status: Status of a call that was refused; None for any other.
    """

    call_sid: str
    account_sid: str
    identity: str
    from_: str
    to: str
    answer: str = field(default="", repr=False)
    state: State = "connecting"
    reason: str | None = None
    sip_status: int | None = None
    ended_at: datetime | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def turn(self, state: State) -> None:
        """Change the state, and wake up who waits for that."""
        if state != self.state and self.state != "ended":
            self.state = state
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    async def differs(self, state: State | None) -> None:
        """Wait for another state than this one, for ``MAX_WAIT_S`` at most."""
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                while self.state == state and state != "ended":
                    await self._changed.wait()
        except TimeoutError:
            pass  # the state is the same


class _Gateway:
    """Joins a browser's leg and the INVITE of its call; ``on_over`` is called once, at the end."""

    def __init__(
        self,
        calls: CallControl,
        call: BrowserCall,
        carrier: Carrier,
        parameters: Mapping[str, str],
        on_over: Callable[["_Gateway"], None],
    ) -> None:
        self.call = call
        self._calls = calls
        self._carrier = carrier
        self._headers = [(f"X-{name}", value) for name, value in parameters.items()]
        self._on_over = on_over
        self._session: OutboundSession | None = None
        self.leg: BrowserLeg | None = None

    def on_keys(self, keys: SrtpKeys) -> None:
        """Send the INVITE: the browser has agreed on keys."""
        on_net = self._calls.on_net
        gateway, source, leg = on_net.gateway, on_net.source, self.leg
        if gateway is None or source is None or leg is None:
            self.end("the server takes no calls now", 503)
            return
        call = self.call
        to = SipUri("sip", call.to, None, gateway.host, gateway.port)
        invite = OutboundInvite(
            uri=to,
            from_=NameAddr(None, SipUri("sip", call.from_, None, *source)),
            to=NameAddr(None, to),
            destination=Destination("udp", gateway.host, gateway.port),
            headers=self._headers,
            body=leg.engine_offer(keys),
        )
        self._session = on_net.enter(invite, self._on_event, self._carrier, call.call_sid, (keys.ours,))

    def on_leg_end(self, end: LegEnd) -> None:
        """Hang up: the browser's leg has ended by itself."""
        log.info("a browser's leg has ended: %s", end.value, extra={"call_sid": self.call.call_sid})
        cause = NORMAL_TEMPORARY_FAILURE if end in _LOST else NORMAL_CLEARING
        self.end(end.value, cause_header=cause.reason_header())

    def end(self, reason: str, sip_status: int | None = None, cause_header: str | None = None) -> None:
        """End both sides. Idempotent."""
        session, self._session = self._session, None
        if session is not None:
            session.on_event = None
            session.hangup(reason=cause_header or NORMAL_CLEARING.reason_header())
        leg, self.leg = self.leg, None
        if leg is not None:
            leg.close()
        if self.call.state != "ended":
            self.call.reason, self.call.sip_status = reason, sip_status
            self.call.ended_at = utc_now()
            self.call.turn("ended")
            self._on_over(self)

    def _on_event(self, event: SessionEvent) -> None:
        match event:
            case Progress(body=body):
                self._connect(body)
                self.call.turn("ringing")
            case Answered(body=body):
                self._connect(body)
                self.call.turn("active")
            case OfferReceived() if self._session is not None:
                # The browser's side is settled, and our own engine sends no other offers.
                self._session.reject_offer(488)
            case Failed(status=status, reason=reason):
                self._session = None
                self.end(reason or "refused", status)
            case Ended():
                self._session = None
                self.end("hung up")

    def _connect(self, answer: bytes) -> None:
        port = engine_port(answer) if answer else None
        if port is not None and self.leg is not None:
            self.leg.connect_engine(port)


class BrowserCalls:
    """
    Makes tokens of telephones, and places calls of browsers.

    ``refresh`` updates the directory; ``other_nodes`` are the names of the other living nodes.
    """

    def __init__(
        self,
        calls: CallControl,
        routes: Directory,
        refresh: Callable[[], Awaitable[None]],
        other_nodes: Callable[[], Iterable[str]],
        keys: KeyService,
        cipher: Cipher,
        node: str,
        port: int,
    ) -> None:
        self._calls = calls
        self._node = node
        self._routes = routes
        self._refresh = refresh
        self._other_nodes = other_nodes
        self._keys = keys
        self._cipher = cipher
        self.socket = BrowserSocket(calls.engine.settings, port)
        self._gateways: dict[str, _Gateway] = {}
        self._forgetting: dict[str, asyncio.TimerHandle] = {}

    # --- tokens ---------------------------------------------------------------------------------------------

    def make_token(
        self, principal: Principal, identity: str, from_: str | None, may_call: list[str], valid_s: int
    ) -> tuple[PhoneToken, str]:
        """
        Make a token of the principal's account, and its text.

        The numbers are checked when it is used.

        Raises:
            ValidationFailed: A number is none.
        """
        expires_at = utc_now() + timedelta(seconds=valid_s)
        numbers = [
            normalise_number(number, field=f"may_call[{place}]") for place, number in enumerate(may_call)
        ]
        token = PhoneToken(
            account_sid=principal.account_sid,
            key_id=principal.key_id,
            identity=identity,
            from_=None if from_ is None else normalise_number(from_, field="from"),
            may_call=numbers,
            expires_at_s=expires_at.timestamp(),
        )
        return token, token.seal(self._cipher)

    async def authenticate(self, text: str) -> PhonePrincipal:
        """
        Return the principal of a token.

        Raises:
            Unauthorized: The token is not valid, or its key or account is not valid any more.
        """
        now = utc_now()
        token = PhoneToken.open(self._cipher, text, now.timestamp())
        try:
            key = await self._keys.get(token.account_sid, token.key_id)
        except NotFound:
            raise Unauthorized("The key that made the token is gone.") from None
        account = self._routes.account(token.account_sid)
        if key.is_revoked(now) or account is None or not account.is_active:
            raise Unauthorized("The key that made the token is revoked, or its account is closed.")
        return PhonePrincipal(
            token.account_sid,
            # Its requests are counted apart: a page must not use up the limit of the key.
            f"{token.key_id}:{token.identity}",
            "platform",
            _SCOPES,
            account.requests_per_minute,
            token=token,
        )

    # --- calls ----------------------------------------------------------------------------------------------

    async def place(
        self, account_sid: str, request: BrowserCallRequest, token: PhoneToken | None = None
    ) -> BrowserCall:
        """
        Answer a browser's offer; its call begins once the browser has connected.

        Raises:
            ValidationFailed: The offer or a number is wrong.
            Forbidden: The token may not call the number, or not as this caller.
            NumberNotOwned: ``to``, or the number to show, is no active number of the account.
            RateLimited: The account's calls begin too fast.
            ServiceUnavailable: There is no capacity.
        """
        to = normalise_number(request.to)
        identity, from_ = _caller(request.from_, token)
        if token is not None:
            token.check(to)
        if self._calls.on_net.gateway is None or not has_srtp():
            raise ServiceUnavailable(
                "This server takes no calls of browsers: it needs a udp: address in TRUNKLINE_SIP_LISTEN, and"
                " an engine with SRTP."
            )
        account = await owner_of(self._routes, self._refresh, account_sid, to)
        if from_ != identity:
            await owner_of(self._routes, self._refresh, account_sid, from_)
        self._calls.check_capacity(account)
        offer = _offer(request.sdp)
        call = BrowserCall(
            call_sid=self._new_sid(), account_sid=account_sid, identity=identity, from_=from_, to=to
        )
        carrier = replace(
            ON_NET,
            # A number was found to be the account's; a name is what the account claims.
            account_sid=account_sid if from_ == identity else None,
            name="Browser",
            codecs=(offer.formats.codec.name,),
            srtp="require",
        )
        gateway = _Gateway(self._calls, call, carrier, request.parameters, self._over)
        try:
            gateway.leg = self.socket.open_leg(offer, gateway.on_keys, gateway.on_leg_end)
        except OSError as error:
            raise ServiceUnavailable(f"No more browsers can call now: {error}.") from None
        call.answer = gateway.leg.answer()
        self._gateways[call.call_sid] = gateway
        return call

    def get(self, account_sid: str, call_sid: str, token: PhoneToken | None = None) -> BrowserCall:
        """
        Return a browser's call.

        Raises:
            NotFound: There is none of the account and of the token's identity, or its end was a minute ago.
            NodeUnreachable: It is on another node.
        """
        return self._found(account_sid, call_sid, token).call

    def restart(
        self, account_sid: str, call_sid: str, sdp: str, token: PhoneToken | None = None
    ) -> BrowserCall:
        """
        Restart ICE, so that a browser finds another path; the call has the answer to its offer.

        Raises:
            ValidationFailed: The offer is wrong, or changes more than the path.
            CallEnded: The call has ended.
            NotFound: As ``get``.
            NodeUnreachable: As ``get``.
        """
        gateway = self._found(account_sid, call_sid, token)
        offer = _offer(sdp)
        if gateway.leg is None:
            raise CallEnded("The call has already ended.")
        try:
            gateway.call.answer = gateway.leg.restart(offer)
        except OfferRefused as refusal:
            raise ValidationFailed.of("sdp", str(refusal)) from None
        return gateway.call

    def hang_up(self, account_sid: str, call_sid: str, token: PhoneToken | None = None) -> None:
        """End a browser's call, if it has not ended; raises the errors of ``get``."""
        self._found(account_sid, call_sid, token).end("the browser hung up")

    async def close(self) -> None:
        """End all calls, and free the socket."""
        for gateway in list(self._gateways.values()):
            gateway.end("the server stops")
        for forgetting in self._forgetting.values():
            forgetting.cancel()
        self.socket.close()

    def _found(self, account_sid: str, call_sid: str, token: PhoneToken | None) -> _Gateway:
        gateway = self._gateways.get(call_sid)
        if gateway is None:
            for node in self._other_nodes():
                if call_sid.endswith(_mark(node)):
                    raise NodeUnreachable(node)
        elif gateway.call.account_sid == account_sid and (
            token is None or token.identity == gateway.call.identity
        ):
            return gateway
        raise NotFound("There is no such call of a browser, or it ended more than a minute ago.")

    def _new_sid(self) -> str:
        """Return a new sid; its end tells other nodes which one has the call, before any record does."""
        mark = _mark(self._node)
        return new_id()[: -len(mark)] + mark

    def _over(self, gateway: _Gateway) -> None:
        call_sid = gateway.call.call_sid
        self._forgetting[call_sid] = asyncio.get_running_loop().call_later(_KEPT_S, self._forget, call_sid)

    def _forget(self, call_sid: str) -> None:
        self._gateways.pop(call_sid, None)
        self._forgetting.pop(call_sid, None)


def _offer(sdp: str) -> BrowserOffer:
    try:
        return parse_offer(sdp, [codec for codec in CODECS if codec in built_codecs()])
    except OfferRefused as refusal:
        raise ValidationFailed.of("sdp", str(refusal)) from None


def _mark(node: str) -> str:
    return sha256(node.encode()).hexdigest()[:4]


def _caller(from_: str | None, token: PhoneToken | None) -> tuple[str, str]:
    """Return the name of the telephone, and the caller to show: the same name, or a number in E.164."""
    if token is not None:
        if from_ not in (None, token.identity, token.from_):
            raise Forbidden(f"This token calls as {token.from_ or token.identity}; leave out from.")
        return token.identity, token.from_ or token.identity
    if from_ is None or IDENTITY.fullmatch(from_):
        return from_ or DEFAULT_IDENTITY, from_ or DEFAULT_IDENTITY
    return DEFAULT_IDENTITY, normalise_number(from_, field="from")
