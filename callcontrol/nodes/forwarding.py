"""Address of the node that must answer a request, or the reason why it cannot be asked."""

from enum import Enum
from ipaddress import ip_address
from urllib.parse import urlsplit

from callcontrol.nodes.lease import Node


class NoWay(Enum):
    """Reason why a node cannot be asked, in words that follow its name."""

    ALONE = "which this one cannot ask"
    FORWARDED = "and the request was forwarded already, which is done once"
    DEAD = "which does not run"
    NO_ADDRESS = "which has no address for other nodes"
    UNREACHABLE = "which cannot be reached"


def way_to(owner: Node | None, own: Node) -> str | NoWay:
    """
    Return the URL at which a node answers other nodes, or the reason why there is none.

    An address that is this node's own as well leads back here: of two nodes behind one address, or of two
    that listen on the loopback of different machines.
    """
    if not is_living(owner):
        return NoWay.DEAD
    assert owner is not None
    if not owner.url or owner.url == own.url or not _is_on_the_way(owner, own):
        return NoWay.NO_ADDRESS
    return owner.url


def is_living(node: Node | None) -> bool:
    """Return True if a node holds its lease; the lease of an adopted one is its adopter's."""
    return node is not None and node.lease_left_s > 0 and node.adopted_by is None


def _is_on_the_way(owner: Node, own: Node) -> bool:
    """Return False for a loopback address of another machine, where a stranger would get the API key."""
    if not _is_loopback(urlsplit(owner.url).hostname or ""):
        return True
    boot = _boot_of(owner)
    return bool(boot) and boot == _boot_of(own)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _boot_of(node: Node) -> str:
    """Boot of a node's machine, the first part of its place."""
    return node.place.partition(":")[0]
