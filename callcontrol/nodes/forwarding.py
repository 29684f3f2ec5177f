"""Address of the node that must answer a request, or the reason why it cannot be asked."""

from collections.abc import Sequence
from dataclasses import replace
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


class KnownNodes:
    """
    Nodes as they were read with the last renewal of this one, so that a request to another costs no query.

    Only that a node lives is concluded from them: what is not here, or not living, may have changed since.

    Attributes:
        nodes: All nodes as they were read, this one included.
    """

    def __init__(self) -> None:
        self.nodes: Sequence[Node] = ()
        self._living: dict[str, Node] = {}
        self._asked_s = 0.0

    def update(self, nodes: Sequence[Node], asked_s: float) -> None:
        """Replace the nodes by those of a query that was sent at ``asked_s``."""
        self.nodes = nodes
        self._living = {node.node: node for node in nodes if node.is_living}
        self._asked_s = asked_s

    def living(self, name: str, now_s: float) -> Node | None:
        """Return a node whose lease was not over when it was read, and is not since; None if unknown."""
        node = self._living.get(name)
        if node is None:
            return None
        # The lease was measured after the query was sent, so it ends here first.
        left_s = node.lease_left_s - (now_s - self._asked_s)
        return replace(node, lease_left_s=left_s) if left_s > 0 else None

    def forget(self, name: str) -> None:
        """Look a node up in the database until the next renewal: it does not accept connections."""
        self._living.pop(name, None)


def way_to(owner: Node | None, own: Node) -> str | NoWay:
    """
    Return the URL at which a node answers other nodes, or the reason why there is none.

    An address that is this node's own as well leads back here: of two nodes behind one address, or of two
    that listen on the loopback of different machines.
    """
    if owner is None or not owner.is_living:
        return NoWay.DEAD
    if not owner.url or owner.url == own.url or not _is_on_the_way(owner, own):
        return NoWay.NO_ADDRESS
    return owner.url


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
