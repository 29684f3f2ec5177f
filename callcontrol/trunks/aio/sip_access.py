"""SIP source filter: the user agent's guard with the known and trusted sources."""

from collections.abc import Callable, Collection
from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network

from callcontrol.directory.directory import Directory, plain_address
from sip.aio import Guard
from sip.protection.rate_limits import ProtectionSettings


def make_guard(
    settings: ProtectionSettings,
    routes: Directory,
    trusted: Collection[IPv4Network | IPv6Network],
    *,
    silent: bool,
) -> Guard:
    """Guard that accepts the gateways of every carrier and the trusted networks."""
    trusts = _membership(trusted)

    def is_trusted(host: str) -> bool:
        return routes.knows_host(host) or trusts(host)

    return Guard(
        replace(settings, answer_unknown_sources=settings.answer_unknown_sources and not silent), is_trusted
    )


def _membership(networks: Collection[IPv4Network | IPv6Network]) -> Callable[[str], bool]:
    listed = tuple(networks)

    def contains(host: str) -> bool:
        address = plain_address(host)
        if address is None:
            return False
        return any(address.version == network.version and address in network for network in listed)

    return contains
