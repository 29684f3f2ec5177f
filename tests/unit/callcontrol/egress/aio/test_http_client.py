"""Texts that customers read about requests to their servers."""

from __future__ import annotations

import errno
import socket
import ssl
from typing import Any

import aiohttp
import pytest

from callcontrol.egress.aio.http_client import problem_of

KEY: Any = None
"""Host and port to connect to; no text may show them."""


def untrusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    error.verify_message = "certificate has expired"
    return error


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (
            aiohttp.ClientConnectorError(
                KEY, OSError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 18591)")
            ),
            "the host refuses connections at this port",
        ),
        (
            aiohttp.ClientConnectorError(
                KEY, OSError(errno.EACCES, "Connect call failed ('192.0.2.1', 443)")
            ),
            "the host cannot be reached",
        ),
        (
            aiohttp.ClientConnectorError(
                KEY, OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 1, 0, 0)")
            ),
            "the host cannot be reached",
        ),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.EACCES, "127.0.0.1 is a loopback address.")),
            "127.0.0.1 is a loopback address.",
        ),
        (
            aiohttp.ClientConnectorDNSError(KEY, socket.gaierror(socket.EAI_NONAME, "Name not known")),
            "the host name does not resolve",
        ),
        (
            aiohttp.ClientConnectorDNSError(
                KEY, OSError(errno.ETIMEDOUT, "a.example did not resolve in 5 s")
            ),
            "a.example did not resolve in 5 s",
        ),
        (
            aiohttp.ClientConnectorCertificateError(KEY, untrusted()),
            "the certificate of the host is not valid: certificate has expired",
        ),
        (
            aiohttp.ClientConnectorSSLError(KEY, ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]")),
            "TLS cannot be negotiated with the host",
        ),
        (
            aiohttp.ClientOSError(errno.ECONNRESET, "Connection reset by peer"),
            "the host closed the connection",
        ),
        (aiohttp.ServerDisconnectedError(), "Server disconnected"),
        (aiohttp.InvalidURL("https://x/?key=secret"), "the address cannot be asked"),
        (ValueError("first\nsecond"), "first"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value[:30],
)
def test_a_problem_is_a_plain_sentence_without_the_address(error: Exception, problem: str) -> None:
    assert problem_of(error) == problem
