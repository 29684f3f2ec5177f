"""Keys that match messages to transactions."""

from sip.message.message import Request, Response

MAGIC_COOKIE = "z9hG4bK"
"""Prefix of every branch since RFC 3261; marks the branch as globally unique."""

Key = tuple[object, ...]


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
