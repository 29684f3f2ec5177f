"""Matching of messages to transactions."""

from typing import Generic, TypeVar

from sip.message.message import Request, Response

__all__ = ["MAGIC_COOKIE", "Key", "TransactionTable", "client_key", "merge_key", "server_key"]

MAGIC_COOKIE = "z9hG4bK"
"""Prefix of every branch since RFC 3261; marks the branch as globally unique."""

Key = tuple[object, ...]

RunT = TypeVar("RunT")


def client_key(response: Response) -> Key:
    """
    Return the key of the client transaction that a response matches.

    Source: RFC 3261 17.1.3.
    """
    return (response.via.branch, response.cseq.method)


def server_key(request: Request, method: str | None = None) -> Key:
    """
    Return the key of the server transaction that a request matches; `method` replaces its own.

    An ACK matches its INVITE. A branch without the magic cookie, from before RFC 3261, is not unique, so the
    key adds the fields that identify a request.

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
    Return the key that copies of one request share when they arrive by different paths.

    Source: RFC 3261 8.2.2.2.
    """
    return (request.call_id, request.from_.tag, request.cseq.number)


class TransactionTable(Generic[RunT]):
    """Active transactions by key, client and server transactions apart."""

    __slots__ = ("_clients", "_servers")

    def __init__(self) -> None:
        self._clients: dict[Key, RunT] = {}
        self._servers: dict[Key, RunT] = {}

    def __len__(self) -> int:
        return len(self._clients) + len(self._servers)

    def add_client(self, branch: str, method: str, run: RunT) -> Key:
        """Add a client transaction under the branch of its top Via and its method."""
        key: Key = (branch, method)
        self._clients[key] = run
        return key

    def add_server(self, key: Key, run: RunT) -> None:
        """Add a server transaction under its `server_key`."""
        self._servers[key] = run

    def client(self, response: Response) -> RunT | None:
        """Find the client transaction of a response."""
        return self._clients.get(client_key(response))

    def server(self, key: Key) -> RunT | None:
        """Find the server transaction of a key."""
        return self._servers.get(key)

    def remove_client(self, key: Key) -> None:
        """Remove a client transaction."""
        self._clients.pop(key, None)

    def remove_server(self, key: Key) -> None:
        """Remove a server transaction."""
        self._servers.pop(key, None)
