"""
In-memory read model of accounts, numbers, trunks, applications and agents, used by every call.

The directory mirrors rows of the database; ``callcontrol.directory.aio.loader`` applies changes. Reads need
no query, no I/O and never block.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from itertools import chain
from typing import Final, TypeVar

from callcontrol.models import (
    TEST_PREFIX,
    Account,
    Application,
    Carrier,
    Gateway,
    InboundBinding,
    PhoneNumber,
    VoiceAgent,
)

# Fractional part of the golden ratio: its multiples spread evenly over [0, 1), so gateways get their share
# of the calls without a random number, even over a few calls.
_SPREAD: Final = 0.6180339887498949
_REMEMBERED_SOURCES: Final = 4096
# The longest literal address, with a zone, is shorter.
_MAX_ADDRESS_CHARS: Final = 64

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows that changed up to a revision; each with False when it was deleted."""

    revision: int
    accounts: Sequence[Account] = ()
    numbers: Sequence[tuple[PhoneNumber, bool]] = ()
    carriers: Sequence[tuple[Carrier, bool]] = ()
    gateways: Sequence[tuple[Gateway, bool]] = ()
    applications: Sequence[tuple[Application, bool]] = ()
    agents: Sequence[tuple[VoiceAgent, bool]] = ()


class Directory:
    """
    Mirror of accounts, numbers, trunks, applications and agents.

    A carrier without an outbound proxy has ``outbound_proxy``, unless its calls stay in the sandbox.
    """

    def __init__(self, outbound_proxy: str | None = None) -> None:
        self.revision = 0
        self._outbound_proxy = outbound_proxy
        self._accounts: dict[str, Account] = {}
        self._numbers: dict[str, PhoneNumber] = {}
        self._e164_of: dict[str, str] = {}
        self._carriers: dict[str, Carrier] = {}
        self._gateways: dict[str, Gateway] = {}
        self._applications: dict[str, Application] = {}
        self._agents: dict[str, VoiceAgent] = {}
        self._addresses: dict[str, tuple[str, ...]] = {}
        self._by_source: dict[tuple[str, int], list[Gateway]] = {}
        self._by_host: dict[str, list[Gateway]] = {}
        self._networks: list[tuple[IPv4Network | IPv6Network, Gateway]] = []
        self._by_user: dict[str, list[Carrier]] = {}
        self._by_certificate: dict[str, list[Carrier]] = {}
        self._hosts: frozenset[str] = frozenset()
        self._at: dict[tuple[str, int], tuple[tuple[Carrier, Gateway], ...]] = {}
        self._outbound: dict[str | None, list[tuple[Carrier, Gateway]]] = {}
        self._turn = 0
        self._watchers: list[Callable[[], None]] = []

    def apply(self, changes: Changes) -> None:
        """Apply changes."""
        for account in changes.accounts:
            self._accounts[account.account_sid] = account
        for number, exists in changes.numbers:
            self._apply_number(number, exists)
        _mirror(
            self._carriers,
            ((item.carrier_sid, self._proxied(item), exists) for item, exists in changes.carriers),
        )
        _mirror(self._gateways, ((item.gateway_sid, item, exists) for item, exists in changes.gateways))
        _mirror(self._applications, ((item.app_sid, item, exists) for item, exists in changes.applications))
        _mirror(self._agents, ((item.agent_id, item, exists) for item, exists in changes.agents))
        self.revision = changes.revision
        if changes.carriers or changes.gateways:
            self._index_sources()
            self._index_outbound()
            self._index_proofs()
            for tell in self._watchers:
                tell()

    def _proxied(self, carrier: Carrier) -> Carrier:
        if self._outbound_proxy is None or carrier.outbound_proxy or carrier.prefixes == (TEST_PREFIX,):
            return carrier
        return replace(carrier, outbound_proxy=self._outbound_proxy)

    def watch_trunks(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` whenever carriers or gateways have changed."""
        self._watchers.append(tell)

    def set_addresses(self, addresses: Mapping[str, Iterable[str]]) -> None:
        """Set the addresses that the named hosts of gateways resolve to."""
        self._addresses = {host.lower(): tuple(found) for host, found in addresses.items()}
        self._index_sources()

    def named_hosts(self) -> list[str]:
        """Hosts of inbound gateways that have to be resolved."""
        return sorted({item.host.lower() for item in self._inbound() if plain_address(item.host) is None})

    def account(self, account_sid: str) -> Account | None:
        """Get an account, or None."""
        return self._accounts.get(account_sid)

    def secrets_of(self, account_sid: str, now: datetime) -> tuple[str, ...]:
        """Get the secrets that sign an account's webhooks, the current one first; none without it."""
        account = self._accounts.get(account_sid)
        return () if account is None else account.webhook_secrets(now)

    def carrier(self, carrier_sid: str) -> Carrier | None:
        """Get a carrier by its identifier."""
        return self._carriers.get(carrier_sid)

    def application(self, app_sid: str) -> Application | None:
        """Get an application of any account by its identifier."""
        return self._applications.get(app_sid)

    def agent(self, agent_id: str) -> VoiceAgent | None:
        """Get a voice agent of any account by its identifier."""
        return self._agents.get(agent_id)

    def carriers(self) -> list[Carrier]:
        """All carriers."""
        return list(self._carriers.values())

    def gateways(self, carrier_sid: str | None = None) -> list[Gateway]:
        """Gateways of a carrier, or all."""
        return [item for item in self._gateways.values() if carrier_sid in (None, item.carrier_sid)]

    def outbound_gateways(self) -> list[tuple[Carrier, Gateway]]:
        """All active outbound gateways, with their carriers."""
        return [item for items in self._outbound.values() for item in items]

    def outbound_carriers(self, owner: str | None) -> list[Carrier]:
        """Active carriers with an active outbound gateway, of an account or (None) of the platform."""
        return list({item[0].carrier_sid: item[0] for item in self._outbound.get(owner, ())}.values())

    def gateway_for_source(
        self, host: str, port: int, account_sid: str | None = None
    ) -> tuple[Carrier, Gateway] | None:
        """
        Find the carrier and inbound gateway of a request's source address.

        The exact host and port take precedence over the host alone, and that over the narrowest network. With
        ``account_sid`` only carriers that may call this account's numbers count: its own and the platform's,
        because several accounts may have the same carrier. A carrier with inbound credentials or a
        certificate name is never identified by its address.
        """
        for carrier, gateway in self.gateways_at(host, port):
            if account_sid is None or carrier.account_sid in (None, account_sid):
                if not (carrier.inbound_auth_username or carrier.certificate_name):
                    return carrier, gateway
        return None

    def gateways_at(self, host: str, port: int) -> Iterable[tuple[Carrier, Gateway]]:
        """All inbound gateways of an address, most exact match first; a gateway may appear twice."""
        found = self._at.get((host, port))
        if found is None:
            if len(self._at) >= _REMEMBERED_SOURCES:
                self._at.clear()
            found = self._at[host, port] = tuple(self._find_at(host, port))
        return found

    def _find_at(self, host: str, port: int) -> Iterator[tuple[Carrier, Gateway]]:
        address = plain_address(host)
        if address is not None:
            text = str(address)
            for gateway in chain(
                self._by_source.get((text, port), ()), self._by_host.get(text, ()), self._around(address)
            ):
                yield self._carriers[gateway.carrier_sid], gateway

    def knows_host(self, host: str) -> bool:
        """Return True if an address is of a gateway, inbound or outbound."""
        address = plain_address(host)
        return address is not None and (str(address) in self._hosts or any(self._around(address)))

    def _around(self, address: IPv4Address | IPv6Address) -> Iterator[Gateway]:
        yield from (found for network, found in self._networks if address in network)

    @property
    def asks_passwords(self) -> bool:
        """True if some carrier authenticates by password, so unknown sources may be challenged."""
        return bool(self._by_user)

    def carriers_with_user(self, username: str) -> Sequence[Carrier]:
        """Active carriers that authenticate with this user name."""
        return self._by_user.get(username, ())

    def carriers_with_certificate(self, names: Iterable[str]) -> Sequence[Carrier]:
        """Active carriers with one of these client certificate names."""
        return [found for name in names for found in self._by_certificate.get(name.lower(), ())]

    def number(self, e164: str) -> PhoneNumber | None:
        """Number of any account."""
        return self._numbers.get(e164)

    def inbound_binding(self, number: PhoneNumber) -> InboundBinding:
        """Return a number's own binding, or that of its application or of its carrier's application."""
        if number.binding is not None:
            return InboundBinding(number.binding)
        carrier = self.carrier(number.carrier_sid) if number.carrier_sid is not None else None
        for app_sid in (number.app_sid, carrier.app_sid if carrier is not None else None):
            application = self.application(app_sid) if app_sid is not None else None
            if application is not None and application.account_sid == number.account_sid:
                return InboundBinding(application.call_binding, application.app_sid)
        return InboundBinding(None)

    def gateway_for_host(
        self, account_sid: str, host: str, port: int | None = None
    ) -> tuple[Carrier, Gateway] | None:
        """Outbound gateway with a host, and port if given, of the account or the platform."""
        wanted = host.strip("[]").lower()
        for owner in (account_sid, None):
            for carrier, gateway in self._outbound.get(owner, ()):
                if gateway.host.strip("[]").lower() == wanted and port in (None, gateway.port):
                    return carrier, gateway
        return None

    def has_gateway(self, account_sid: str, host: str, port: int | None) -> bool:
        """Return True if ``gateway_for_host`` finds a gateway."""
        return self.gateway_for_host(account_sid, host, port) is not None

    def outbound_route(
        self,
        account_sid: str,
        from_number: str,
        carrier_sid: str | None = None,
        to_number: str | None = None,
    ) -> list[tuple[Carrier, Gateway]]:
        """
        Gateways to try, best first; empty if there is no route.

        A platform number uses the carriers of the platform; a number on the account's own carrier uses the
        account's carriers, its own first. ``carrier_sid`` forces one carrier, of the account or the platform.
        Carriers with the longest prefix matching ``to_number`` exclude the others; those with only other
        prefixes are left out. The lower priority goes first; among equals the order is drawn by weight for
        every call.
        """
        home = self.own_carrier_of(account_sid, from_number)
        if carrier_sid is None:
            usable = self._outbound.get(account_sid if home else None, [])
            return self._ranked(serving(usable, to_number), home)
        carrier = self._carriers.get(carrier_sid)
        if carrier is None or carrier.account_sid not in (None, account_sid):
            return []
        usable = self._outbound.get(carrier.account_sid, [])
        return self._ranked([item for item in usable if item[0].carrier_sid == carrier_sid], home)

    def own_carrier_of(self, account_sid: str, number: str) -> str | None:
        """Own carrier of an account that one of its numbers is on; None for every other number."""
        found = self._numbers.get(number)
        return found.carrier_sid if found is not None and found.account_sid == account_sid else None

    def _ranked(
        self, usable: list[tuple[Carrier, Gateway]], home: str | None
    ) -> list[tuple[Carrier, Gateway]]:
        self._turn += 1
        ranks: dict[tuple[bool, int], list[tuple[Carrier, Gateway]]] = {}
        for item in usable:
            foreign = home is not None and item[0].carrier_sid != home
            ranks.setdefault((foreign, item[1].priority), []).append(item)
        ordered: list[tuple[Carrier, Gateway]] = []
        for rank in sorted(ranks):
            ordered += draw_by_weight(ranks[rank], (self._turn * _SPREAD) % 1.0)
        return ordered

    def _apply_number(self, number: PhoneNumber, exists: bool) -> None:
        former = self._e164_of.pop(number.phone_number_id, None)
        if former is not None and self._numbers[former].phone_number_id == number.phone_number_id:
            del self._numbers[former]
        if exists:
            self._numbers[number.number] = number
            self._e164_of[number.phone_number_id] = number.number

    def _active(self) -> list[tuple[Carrier, Gateway]]:
        found = [
            (carrier, item)
            for item in self._gateways.values()
            if item.is_active and (carrier := self._carriers.get(item.carrier_sid)) and carrier.is_active
        ]
        # The order decides between equal matches, so it must not depend on the load order.
        return sorted(found, key=lambda pair: (pair[1].priority, pair[1].created_at, pair[1].gateway_sid))

    def _inbound(self) -> list[Gateway]:
        return [gateway for _, gateway in self._active() if gateway.inbound]

    def _index_outbound(self) -> None:
        self._outbound = {}
        for carrier, gateway in self._active():
            if gateway.outbound:
                self._outbound.setdefault(carrier.account_sid, []).append((carrier, gateway))

    def _index_proofs(self) -> None:
        self._by_user, self._by_certificate = {}, {}
        for carrier in sorted(self._carriers.values(), key=lambda item: (item.created_at, item.carrier_sid)):
            if carrier.is_active and carrier.inbound_auth_username and carrier.inbound_auth_password:
                self._by_user.setdefault(carrier.inbound_auth_username, []).append(carrier)
            if carrier.is_active and carrier.certificate_name:
                self._by_certificate.setdefault(carrier.certificate_name.lower(), []).append(carrier)

    def _index_sources(self) -> None:
        self._at.clear()
        self._by_source.clear()
        self._by_host.clear()
        hosts: set[str] = set()
        for _, gateway in self._active():
            hosts.update(self._addresses_of(gateway))
        self._hosts = frozenset(hosts)
        networks: list[tuple[IPv4Network | IPv6Network, Gateway]] = []
        for gateway in self._inbound():
            own = plain_address(gateway.host)
            single = gateway.netmask in (32, own.max_prefixlen if own is not None else 32)
            if own is not None and not single:
                networks.append((ip_network((own, gateway.netmask), strict=False), gateway))
            for host in self._addresses_of(gateway):
                self._by_source.setdefault((host, gateway.port), []).append(gateway)
                if single:
                    self._by_host.setdefault(host, []).append(gateway)
        self._networks = sorted(networks, key=lambda item: -item[0].prefixlen)

    def _addresses_of(self, gateway: Gateway) -> tuple[str, ...]:
        address = plain_address(gateway.host)
        return self._addresses.get(gateway.host.lower(), ()) if address is None else (str(address),)


def _mirror(known: dict[str, RowT], changes: Iterable[tuple[str, RowT, bool]]) -> None:
    for sid, item, exists in changes:
        if exists:
            known[sid] = item
        else:
            known.pop(sid, None)


def plain_address(host: str) -> IPv4Address | IPv6Address | None:
    """Parse a literal IP address; None for a name. IPv4-mapped IPv6 becomes IPv4."""
    # A host may be a peer's, of any length, and what is remembered is bounded.
    return _plain_address(host) if len(host) <= _MAX_ADDRESS_CHARS else None


@lru_cache(maxsize=1024)
def _plain_address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return IPv4Address(host)
    except AddressValueError:
        pass
    try:
        address = IPv6Address(host.strip("[]").partition("%")[0])
    except AddressValueError:
        return None
    return address.ipv4_mapped or address


def serving(
    usable: Sequence[tuple[Carrier, Gateway]], to_number: str | None
) -> list[tuple[Carrier, Gateway]]:
    """Select routes whose carrier serves a number: longest prefix, else carriers without prefixes."""
    lengths = [
        max((len(prefix) for prefix in carrier.prefixes if (to_number or "").startswith(prefix)), default=-1)
        if carrier.prefixes
        else 0
        for carrier, _ in usable
    ]
    longest = max(lengths, default=-1)
    if longest < 0:
        return []
    return [item for item, length in zip(usable, lengths, strict=True) if length == longest]


def draw_by_weight(
    items: Sequence[tuple[Carrier, Gateway]], fraction: float
) -> list[tuple[Carrier, Gateway]]:
    """
    Order gateways of one priority by repeated weighted draws from the remaining ones.

    ``fraction``, in [0, 1), decides each draw. A gateway of weight 0 comes last.
    """
    left = list(items)
    ordered: list[tuple[Carrier, Gateway]] = []
    while left:
        mark = fraction * sum(max(gateway.weight, 0) for _, gateway in left)
        chosen = left[-1]
        for item in left:
            mark -= max(item[1].weight, 0)
            if mark < 0:
                chosen = item
                break
        ordered.append(chosen)
        left.remove(chosen)
    return ordered
