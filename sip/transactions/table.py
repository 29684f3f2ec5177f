"""Which transaction a message belongs to."""

from typing import Generic, TypeVar

from sip.message.message import Request, Response

__all__ = ["MAGIC_COOKIE", "Key", "TransactionTable", "client_key", "merge_key", "server_key"]

MAGIC_COOKIE = "z9hG4bK"
"""Opens every branch made since RFC 3261, and says that it is unique by itself."""

Key = tuple[object, ...]

RunT = TypeVar("RunT")


def client_key(response: Response) -> Key:
    """
    The key of the client transaction a response is for.

    Source: RFC 3261 17.1.3.
    """
    return (response.via.branch, response.cseq.method)


def server_key(request: Request, method: str | None = None) -> Key:
    """
    The key of the server transaction a request belongs to; `method` stands in for its own.

    An ACK belongs to its INVITE. Branches without the magic cookie, from before RFC 3261, are not
    unique, so the fields that identify a request join them.

    Source: RFC 3261 9.2, 17.2.3.
    """
    if method is None:
        method = "INVITE" if request.method == "ACK" else request.method
    via = request.via
    branch = via.branch
    if branch is not None and branch.startswith(MAGIC_COOKIE):
        return (branch, via.host, via.port, method)
    return (branch, via.host, via.port, method, request.call_id, request.cseq.number, request.from_.tag)


def merge_key(request: Request) -> Key:
    """
    What two copies of one request that came by different paths have in common.

    Source: RFC 3261 8.2.2.2.
    """
    return (request.call_id, request.from_.tag, request.cseq.number)


class TransactionTable(Generic[RunT]):
    """All transactions of an endpoint by key, clients and servers apart."""

    __slots__ = ("_clients", "_servers")

    def __init__(self) -> None:
        self._clients: dict[Key, RunT] = {}
        self._servers: dict[Key, RunT] = {}

    def __len__(self) -> int:
        return len(self._clients) + len(self._servers)

    def add_client(self, branch: str, method: str, run: RunT) -> Key:
        """Enter a client transaction under the branch of its top Via and its method."""
        key: Key = (branch, method)
        self._clients[key] = run
        return key

    def add_server(self, key: Key, run: RunT) -> None:
        """Enter a server transaction under its `server_key`."""
        self._servers[key] = run

    def client(self, response: Response) -> RunT | None:
        """Find the client transaction of a response."""
        return self._clients.get(client_key(response))

    def server(self, key: Key) -> RunT | None:
        """Find the server transaction of a key."""
        return self._servers.get(key)

    def remove_client(self, key: Key) -> None:
        """Forget a client transaction."""
        self._clients.pop(key, None)

    def remove_server(self, key: Key) -> None:
        """Forget a server transaction."""
        self._servers.pop(key, None)
