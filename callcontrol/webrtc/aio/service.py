"""
Calls of browsers and to browsers, and the tokens of telephones in web pages.

To everything above it a browser's call is an inbound call of any carrier, and a browser that is called is a
leg as any other: see ``callcontrol.webrtc.aio.gateways``.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from typing import Final

from callcontrol.accounts.aio.keys import KeyService
from callcontrol.aio.page_events import PageEvents
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.own_numbers import owner_of
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.hangup_cause import SUBSCRIBER_ABSENT
from callcontrol.database.encryption import Cipher
from callcontrol.directory.directory import Directory
from callcontrol.errors import (
    DomainError,
    Forbidden,
    NodeUnreachable,
    NotFound,
    NumberNotOwned,
    ServiceUnavailable,
    Unauthorized,
    WrongCallState,
)
from callcontrol.models import Account, Principal
from callcontrol.models.parties import IDENTITY, BrowserTarget, Party, PhoneTarget, Target
from callcontrol.routing.on_net import ON_NET, BrowserLine
from callcontrol.routing.targets import normalise_number, parse_address
from callcontrol.webrtc.aio.gateways import BrowserCall, CalledGateway, CallingGateway, Gateway, read_offer
from callcontrol.webrtc.aio.pages import OpenPages, Telephone, event_of
from callcontrol.webrtc.ice_servers import IceServers
from callcontrol.webrtc.tokens import (
    DEFAULT_IDENTITY,
    PhonePrincipal,
    PhoneToken,
    normalise_callee,
)
from media.capabilities import has_srtp
from media.webrtc.aio import BrowserSocket
from media.webrtc.descriptions import parse_engine_offer
from sip.aio import InboundSession

log = logging.getLogger(__name__)

_KEPT_S: Final = 60.0
_SCOPES: Final = frozenset({"calls.read", "calls.write"})
# A page that is loaded anew is open again within a moment.
_ABSENT_S: Final = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserCallRequest:
    """
    Request of a browser to call: a number, or a ``browser:`` or ``sip:`` address.

    ``from_`` is the caller to show: a name, or a number of the account; ``parameters`` become ``X-`` header
    fields of the INVITE.
    """

    sdp: str
    to: str
    from_: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrowserCallSettings:
    """
    Settings of browsers' calls.

    They use the UDP ``port`` of the address of RTP, 0 for any; ``ice`` are the servers that their pages get.
    """

    node: str
    port: int
    ice: IceServers


class BrowserCalls:
    """
    Makes tokens of telephones, places calls of browsers, and rings browsers that are called.

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
        settings: BrowserCallSettings,
    ) -> None:
        self._calls = calls
        self._node = settings.node
        self._routes = routes
        self._refresh = refresh
        self._other_nodes = other_nodes
        self._keys = keys
        self._cipher = cipher
        self.ice = settings.ice
        self.socket = BrowserSocket(calls.engine, settings.port)
        self.pages = OpenPages()
        self._gateways: dict[str, Gateway] = {}
        self._forgetting: dict[str, asyncio.TimerHandle] = {}
        calls.on_net.on_browser = self._ring

    # --- tokens ---------------------------------------------------------------------------------------------

    def make_token(
        self,
        principal: Principal,
        identity: str,
        from_: str | None,
        may_call: Sequence[str],
        valid_s: int,
        *,
        receives_calls: bool = False,
    ) -> tuple[PhoneToken, str]:
        """
        Make a token of the principal's account, and its text.

        The numbers are checked when it is used.

        Raises:
            ValidationFailed: A number or an address is none.
        """
        expires_at = utc_now() + timedelta(seconds=valid_s)
        token = PhoneToken(
            account_sid=principal.account_sid,
            key_id=principal.key_id,
            identity=identity,
            from_=None if from_ is None else normalise_number(from_, field="from"),
            may_call=[
                normalise_callee(callee, field=f"may_call[{place}]") for place, callee in enumerate(may_call)
            ],
            expires_at_s=expires_at.timestamp(),
            receives_calls=receives_calls,
        )
        return token, token.seal(self._cipher)

    async def authenticate(self, text: str) -> PhonePrincipal:
        """
        Return the principal of a token.

        Raises:
            Unauthorized: The token is not valid, or its key or account is not valid any more.
        """
        token = PhoneToken.open(self._cipher, text, utc_now().timestamp())
        account = await self._check_key(token.account_sid, token.key_id)
        return PhonePrincipal(
            token.account_sid,
            # Its requests are counted apart: a page must not use up the limit of the key.
            f"{token.key_id}:{token.identity}",
            "platform",
            _SCOPES,
            account.requests_per_minute,
            token=token,
        )

    async def is_admitted(self, principal: Principal) -> bool:
        """Return True while a principal's key, and its token if it has one, is valid."""
        token = principal.token if isinstance(principal, PhonePrincipal) else None
        if token is not None and token.expires_at <= utc_now():
            return False
        try:
            await self._check_key(principal.account_sid, token.key_id if token else principal.key_id)
        except Unauthorized:
            return False
        except DomainError:
            return True  # a database that does not answer ends no stream
        return True

    async def _check_key(self, account_sid: str, key_id: str) -> Account:
        try:
            key = await self._keys.get(account_sid, key_id)
        except NotFound:
            raise Unauthorized("The key that made the token is gone.") from None
        account = self._routes.account(account_sid)
        if key.is_revoked(utc_now()) or account is None or not account.is_active:
            raise Unauthorized("The key that made the token is revoked, or its account is closed.")
        return account

    # --- calls ----------------------------------------------------------------------------------------------

    async def place(
        self, account_sid: str, request: BrowserCallRequest, token: PhoneToken | None = None
    ) -> BrowserCall:
        """
        Answer a browser's offer; its call begins once the browser has connected.

        Raises:
            ValidationFailed: The offer or a number is wrong, or nothing leads there.
            Forbidden: The token may not call the number, or not as this caller.
            NumberNotOwned: The number to show is no active number of the account, or it is a name and ``to``
                is no number of the account.
            RateLimited: The account's calls begin too fast.
            ServiceUnavailable: There is no capacity.
        """
        target = parse_address(request.to)
        identity, from_ = _caller(request.from_, token)
        if token is not None:
            token.check(str(target))
        if self._calls.on_net.gateway is None or not has_srtp():
            raise ServiceUnavailable(
                "This server takes no calls of browsers: it needs a udp: address in TRUNKLINE_SIP_LISTEN, and"
                " an engine with SRTP."
            )
        if from_ != identity:
            await owner_of(self._routes, self._refresh, account_sid, from_)
        account, party = await self._party(
            account_sid, target, None if from_ == identity else from_, identity
        )
        if party is not None:
            if token is not None:
                token.check(str(target), own=False)
            await self._calls.check_route(account_sid, party, "to")
        self._calls.check_capacity(account)
        offer = read_offer(request.sdp)
        call = BrowserCall(
            call_sid=self._new_sid(), account_sid=account_sid, identity=identity, from_=from_, to=str(target)
        )
        carrier = replace(
            ON_NET,
            # A number was found to be the account's; a name is what the account claims.
            account_sid=account_sid if from_ == identity else None,
            name="Browser",
            codecs=(offer.formats.codec.name,),
            srtp="require",
        )
        gateway = CallingGateway(self._calls.on_net, call, self._over, carrier, request.parameters, party)
        try:
            gateway.open(self.socket, offer)
        except OSError as error:
            raise _full(error) from None
        self._gateways[call.call_sid] = gateway
        return call

    async def _party(
        self, account_sid: str, target: Target, number: str | None, identity: str
    ) -> tuple[Account, Party | None]:
        """Return the account, and whom to connect with; no party for a number with a binding of its own."""
        if isinstance(target, PhoneTarget):
            try:
                return await owner_of(self._routes, self._refresh, account_sid, target.number), None
            except NumberNotOwned:
                if number is None:
                    raise
        account = self._routes.account(account_sid)
        if account is None:
            raise NotFound("There is no such account.")
        if number is not None:
            return account, Party(target, number)
        if not isinstance(target, BrowserTarget):
            raise NumberNotOwned("A sip: address is called as a number of the account; name it in from.")
        return account, Party(target, identity, passthrough=True)

    def answer(
        self, account_sid: str, call_sid: str, sdp: str, token: PhoneToken | None = None
    ) -> BrowserCall:
        """
        Answer a call to a browser with the offer of its page; the call has the answer to it.

        Raises:
            ValidationFailed: The offer is wrong.
            WrongCallState: Another page has answered, or the browser is the one that calls.
            CallEnded: The call has ended.
            NotFound: As ``get``.
            NodeUnreachable: As ``get``.
            ServiceUnavailable: There is no capacity.
        """
        gateway = self._called(account_sid, call_sid, token)
        try:
            gateway.answer(self.socket, sdp)
        except OSError as error:
            raise _full(error) from None
        self._tell_over(gateway.call, "answered on another page")
        return gateway.call

    def refuse(self, account_sid: str, call_sid: str, token: PhoneToken | None = None) -> None:
        """Refuse a call to a browser, for all its pages; raises the errors of ``answer``."""
        self._called(account_sid, call_sid, token).refuse()

    def get(self, account_sid: str, call_sid: str, token: PhoneToken | None = None) -> BrowserCall:
        """
        Return a browser's call.

        Raises:
            NotFound: There is none of the account and of the token's identity, or its end was a minute ago.
            NodeUnreachable: It is on another node.
        """
        return self._found(account_sid, call_sid, token).call

    def change(
        self, account_sid: str, call_sid: str, sdp: str, token: PhoneToken | None = None
    ) -> BrowserCall:
        """
        Change the path of a browser (a restart of ICE), or hold or resume the call.

        The call has the answer to the browser's offer.

        Raises:
            ValidationFailed: The offer is wrong, or changes more than the path and the direction.
            CallEnded: The call has ended.
            WrongCallState: It is not answered yet.
            NotFound: As ``get``.
            NodeUnreachable: As ``get``.
        """
        gateway = self._found(account_sid, call_sid, token)
        gateway.change(sdp)
        return gateway.call

    def hang_up(self, account_sid: str, call_sid: str, token: PhoneToken | None = None) -> None:
        """End a browser's call, if it has not ended; raises the errors of ``get``."""
        self._found(account_sid, call_sid, token).end("the browser hung up")

    async def close(self) -> None:
        """End all calls and the events of pages, and free the socket."""
        self.pages.close()
        for gateway in list(self._gateways.values()):
            gateway.end("the server stops")
        for forgetting in self._forgetting.values():
            forgetting.cancel()
        self.socket.close()

    # --- pages that can be called ---------------------------------------------------------------------------

    @contextmanager
    def open_page(self, account_sid: str, identity: str) -> Iterator[PageEvents]:
        """
        Open a page with this telephone to calls until the block ends.

        Raises:
            ServiceUnavailable: Too many pages are open, or the server stops.
        """
        telephone = (account_sid, identity)
        with self.pages.open(telephone) as page:
            page.put(event_of("ready", {"identity": identity}))
            for gateway in self.ringing(telephone):
                page.put(event_of("ringing", _ring_of(gateway.call)))
            yield page
        if not self.pages.of(telephone) and self.ringing(telephone):
            asyncio.get_running_loop().call_later(_ABSENT_S, self._leave, telephone)

    def _leave(self, telephone: Telephone) -> None:
        """End the calls that ring for a telephone whose last page was closed."""
        if not self.pages.of(telephone):
            for gateway in self.ringing(telephone):
                gateway.leave()

    def ringing(self, telephone: Telephone) -> list[CalledGateway]:
        """Return the gateways of the calls that ring for a telephone."""
        return [
            gateway
            for gateway in self._gateways.values()
            if isinstance(gateway, CalledGateway)
            and gateway.call.state == "ringing"
            and (gateway.call.account_sid, gateway.call.identity) == telephone
        ]

    def _ring(self, session: InboundSession, line: BrowserLine) -> None:
        """Ring the pages of a telephone that is called, or refuse the call at once if none is open."""
        telephone = (line.account_sid, line.identity)
        if not self.pages.of(telephone):
            log.info("no page is open with the telephone that is called", extra={"call_sid": line.call_sid})
            session.reject(480, "Browser Offline", [("Reason", SUBSCRIBER_ABSENT.reason_header())])
            return
        engine = parse_engine_offer(session.request.body)
        if engine is None:
            session.reject(488)
            return
        call = BrowserCall(
            call_sid=self._new_sid(),
            account_sid=line.account_sid,
            identity=line.identity,
            from_=session.request.from_.uri.user or "anonymous",
            to=line.identity,
            direction="incoming",
            state="ringing",
        )
        self._gateways[call.call_sid] = CalledGateway(self._calls.on_net, call, self._over, session, engine)
        self.pages.tell(telephone, "ringing", _ring_of(call))

    def _tell_over(self, call: BrowserCall, reason: str) -> None:
        over = {"call_sid": call.call_sid, "reason": reason}
        self.pages.tell((call.account_sid, call.identity), "over", over)

    # --- keeping of calls -----------------------------------------------------------------------------------

    def _called(self, account_sid: str, call_sid: str, token: PhoneToken | None) -> CalledGateway:
        gateway = self._found(account_sid, call_sid, token)
        if not isinstance(gateway, CalledGateway):
            raise WrongCallState("The browser is the one that calls.")
        return gateway

    def _found(self, account_sid: str, call_sid: str, token: PhoneToken | None) -> Gateway:
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

    def _over(self, gateway: Gateway) -> None:
        call_sid = gateway.call.call_sid
        if gateway.call.direction == "incoming":
            self._tell_over(gateway.call, gateway.call.reason or "")
        self._forgetting[call_sid] = asyncio.get_running_loop().call_later(_KEPT_S, self._forget, call_sid)

    def _forget(self, call_sid: str) -> None:
        self._gateways.pop(call_sid, None)
        self._forgetting.pop(call_sid, None)


def _ring_of(call: BrowserCall) -> dict[str, str]:
    return {"call_sid": call.call_sid, "from": call.from_, "to": call.to}


def _full(error: OSError) -> ServiceUnavailable:
    return ServiceUnavailable(f"No more browsers can call now: {error}.")


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
