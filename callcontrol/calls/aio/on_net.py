"""
Calls from this server to itself, to numbers that accounts here hold and to browsers.

See ``callcontrol.routing.on_net``.

They leave from a loopback socket of their own and come in at the first UDP address that the server listens
on, as calls of any carrier do. An INVITE is accepted as on net if it comes from that very socket, and names a
dialog that was begun there and has not come in yet: no other process of this machine can send from the
socket's port, and no other machine from a loopback address.

Legs to browsers leave from the same socket and come in at another loopback socket, by the same rule: there
the gateway between SIP and WebRTC takes them.
"""

import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from callcontrol.models import Carrier, Gateway
from callcontrol.models.parties import Party, RouteAttempt
from callcontrol.routing.on_net import BrowserLine, OnNetCall, gateway_at
from media.types import SrtpKey
from sip import OutboundInvite, Request, SessionEvent
from sip.aio import (
    InboundSession,
    Listen,
    OnMessage,
    OutboundSession,
    ScreenVerdict,
    Source,
    UserAgent,
    UserAgentSettings,
)
from sip.aio.transport import Address, Flow, Receive
from sip.aio.udp import UdpTransport

T = TypeVar("T")

log = logging.getLogger(__name__)

_MAX_EXPECTED: Final = 4096
"""INVITEs on their way; each usually arrives within a millisecond."""

_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class OnNet:
    """
    The calling side of on-net calls.

    Attributes:
        gateway: Address that the calls are sent to; None while there are none, because the server has not
            started or listens on no UDP address.
        source: Address that they are sent from.
        browsers: Address that legs to browsers are sent to; None as ``gateway``.
        on_browser: Takes the legs to browsers; without one they are refused.
    """

    def __init__(self, settings: UserAgentSettings) -> None:
        # All requests fit in datagrams over loopback, and only a datagram has the socket's address.
        self._settings = replace(settings, max_udp_request_bytes=0, tls=None)
        self._user_agent: UserAgent | None = None
        self._expected: OrderedDict[tuple[str, str], OnNetCall] = OrderedDict()
        self._server: Address | None = None
        self._browser_side: UserAgent | None = None
        self._called: OrderedDict[tuple[str, str], BrowserLine] = OrderedDict()
        self._keys: dict[str, SrtpKey] = {}
        self.gateway: Gateway | None = None
        self.source: Address | None = None
        self.browsers: Gateway | None = None
        self.on_browser: Callable[[InboundSession, BrowserLine], None] | None = None

    @property
    def user_agent(self) -> UserAgent:
        """User agent of the calling side; only for routes to ``gateway``."""
        assert self._user_agent is not None
        return self._user_agent

    async def start(self, addresses: Sequence[Listen], on_message: OnMessage) -> None:
        """Bind the socket; ``addresses`` are those that the server listens on."""
        listen = next((address for address in addresses if address.transport == "udp"), None)
        if listen is None:
            log.info("no udp: address is listened on, so calls to numbers held here leave by carriers")
            return
        server: Address = (_LOOPBACK.get(listen.host, listen.host), listen.port)
        own = Listen("udp", "::1" if ":" in listen.host else "127.0.0.1", 0)
        user_agent = UserAgent(
            [own],
            self._settings,
            on_invite=lambda session: session.reject(403),
            on_message=on_message,
            screen=lambda source, request: ScreenVerdict.DROP,
            open_transport=lambda address, receive: _ToServer(
                address, receive, server, self._is_browser_side
            ),
        )
        browser_side = UserAgent(
            [own], self._settings, on_invite=self._on_browser_invite, screen=self._screen_browser
        )
        try:
            await user_agent.start()
            await browser_side.start()
        except OSError as error:
            await user_agent.close()
            log.warning(
                "calls to numbers held here leave by carriers: cannot listen on %s: %s", own.host, error
            )
            return
        self._user_agent, self._browser_side = user_agent, browser_side
        self.source = (own.host, user_agent.addresses[0].port)
        self._server = server
        self.resume()

    def retire(self) -> None:
        """Send no further calls: the server takes no new ones."""
        self.gateway = self.browsers = None

    def resume(self) -> None:
        """Send calls again after `retire`."""
        if self._server is not None:
            self.gateway = gateway_at(*self._server)
        if self._browser_side is not None and self.source is not None:
            self.browsers = gateway_at(self.source[0], self._browser_side.addresses[0].port)

    async def close(self) -> None:
        """Free the socket."""
        self.retire()
        for user_agent in (self._user_agent, self._browser_side):
            if user_agent is not None:
                await user_agent.close()

    def invite(
        self,
        invite: OutboundInvite,
        on_event: Callable[[SessionEvent], None],
        attempt: RouteAttempt,
        numbers: tuple[str, ...],
    ) -> OutboundSession:
        """Send the INVITE of a leg; ``numbers`` are those of ``OnNetCall``."""
        own = OnNetCall(attempt.carrier, self._own_gateway(), numbers)
        return self._send(invite, on_event, self._expected, own)

    def call_browser(
        self, invite: OutboundInvite, on_event: Callable[[SessionEvent], None], line: BrowserLine
    ) -> OutboundSession:
        """Send the INVITE of a leg to a browser's telephone."""
        return self._send(invite, on_event, self._called, line)

    def hand_key(self, call_id: str, key: SrtpKey) -> None:
        """Hand over the key that our side must send with in a leg to a browser, before its answer."""
        self._keys[call_id] = key

    def take_key(self, call_id: str) -> SrtpKey | None:
        """Return the key of a leg to a browser, once; None for any other leg."""
        return self._keys.pop(call_id, None) if self._keys else None

    def _is_browser_side(self, remote: Address) -> bool:
        # By the port alone: its Contact may have another host, which the server advertises.
        side = self._browser_side
        return side is not None and bool(side.addresses) and remote[1] == side.addresses[0].port

    def _screen_browser(self, source: Source, request: Request) -> ScreenVerdict:
        own = (source.host, source.port) == self.source and source.transport == "udp"
        expected = own and (request.call_id, request.from_.tag or "") in self._called
        return ScreenVerdict.ACCEPT if expected else ScreenVerdict.DROP

    def _on_browser_invite(self, session: InboundSession) -> None:
        line = self._called.pop((session.call_id, session.request.from_.tag or ""), None)
        if line is None or self.on_browser is None:
            session.reject(480)
        else:
            self.on_browser(session, line)

    def enter(
        self,
        invite: OutboundInvite,
        on_event: Callable[[SessionEvent], None],
        carrier: Carrier,
        call_sid: str,
        srtp_keys: tuple[SrtpKey, ...],
        connect: tuple[str, Party] | None = None,
    ) -> OutboundSession:
        """Send the INVITE of a browser's call; the parameters are those of ``OnNetCall``."""
        numbers = (invite.uri.user or "",)
        own = OnNetCall(carrier, self._own_gateway(), numbers, call_sid, srtp_keys, connect)
        return self._send(invite, on_event, self._expected, own)

    def _own_gateway(self) -> Gateway:
        assert self.source is not None
        return gateway_at(*self.source)

    def _send(
        self,
        invite: OutboundInvite,
        on_event: Callable[[SessionEvent], None],
        book: OrderedDict[tuple[str, str], T],
        entry: T,
    ) -> OutboundSession:
        """Send an INVITE that is expected with this entry at its other end."""
        session = self.user_agent.invite(invite, on_event)
        book[session.key] = entry
        if len(book) > _MAX_EXPECTED:
            book.popitem(last=False)
        return session

    def take(self, source: Source, request: Request) -> OnNetCall | None:
        """Return the call whose INVITE this is, once; None for the INVITE of anybody else."""
        if self.source is None or (source.host, source.port) != self.source or source.transport != "udp":
            return None
        return self._expected.pop((request.call_id, request.from_.tag or ""), None)


def on_net_call(session: InboundSession) -> OnNetCall | None:
    """Return the on-net call that a session is; None for a call of a carrier."""
    for identity in session.identities:
        if isinstance(identity, OnNetCall):
            return identity
    return None


class _ToServer(UdpTransport):
    """
    Socket that sends to the server, even where that advertises another address in its Contact.

    And to the browsers' side of this process, which ``is_browser_side`` tells.
    """

    def __init__(
        self, listen: Listen, receive: Receive, server: Address, is_browser_side: Callable[[Address], bool]
    ) -> None:
        super().__init__(listen, lambda data, flow, known: receive(data, flow))
        self._server = server
        self._is_browser_side = is_browser_side

    def flow_to(self, remote: Address, name: str | None = None) -> Flow:
        """Return the flow to the server, or to the browsers' side."""
        return super().flow_to(remote if self._is_browser_side(remote) else self._server)
