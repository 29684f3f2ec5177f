"""The two ways of an agent's WebSocket into the media engine: plain, and by TLS."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from media import _engine
from media.aio import RtpStream, agent_connection
from tests.support.tls_server import CERTIFICATE, server_context

__all__ = ["PATHS", "Carrier", "agent_url", "on_path", "scheme"]

PATHS = ("plain", "tls")


class Carrier:
    """
    Settings that the agents of the running test share.

    `stream` is one whose engine thread carries their sockets, `tls` what their servers speak TLS with.
    """

    stream: RtpStream | None = None
    tls: ssl.SSLContext | None = None


def agent_url(port: int, path: str = "/") -> str:
    """The URL of an agent on this machine, by the way of the running test."""
    return f"{scheme()}://127.0.0.1:{port}{path}"


def scheme() -> str:
    """The scheme of the URLs of the running test's agents."""
    return "ws" if Carrier.tls is None else "wss"


@contextmanager
def on_path(path: str) -> Iterator[None]:
    """Run the block with agents on a path, and their certificate trusted."""
    if path == "plain":
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        trusting = _engine.TlsContext(CERTIFICATE)
        patch.setattr(agent_connection, "_tls_context", lambda ca_file: trusting)
        patch.setattr(Carrier, "tls", server_context())
        yield
