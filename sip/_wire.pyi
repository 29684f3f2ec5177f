"""
Reading and writing of plain SIP messages: the native part of `sip.message.parser` and `sip.message.message`.

Nothing here knows errors: what is not plain is left to Python.
"""

from collections.abc import Callable, Set

from sip.message.message import Entry, Message
from sip.message.parser import Limits

class Reader:
    """Makes messages of bytes."""

    def __init__(
        self,
        classes: dict[str, type],
        names: dict[str, tuple[str, str]],
        single: Set[str],
        split: Set[str],
        readers: dict[str, Callable[..., object]],
    ) -> None:
        """
        Take the classes of messages and fields and what reads a value that is not plain.

        `names` is `sip.message.message.KNOWN_NAMES`; `single` and `split` are the keys of fields that may
        stand once, and that are kept one element to an entry.
        """

    def read(self, data: bytes, limits: Limits) -> Message | None:
        """The message; None when it is not plain, or not acceptable, and is to be read in Python."""

def write(start: str, entries: list[Entry], body: bytes) -> bytes:
    """
    A message of its start line, its header lines (but Content-Length, which is made here) and its body.

    Raises:
        UnicodeEncodeError: The text keeps bytes that are not UTF-8; `write_in_python` writes those.
    """

def receive_datagrams(socket: int, most: int) -> list[tuple[bytes, tuple[str, int]]]:
    """
    Up to 32 datagrams that a socket has, with where they came from; none when it has none.

    Raises:
        OSError: What the system says of an earlier datagram.
    """

def send_datagram(socket: int, data: bytes, host: str, port: int) -> int:
    """Send one datagram to an address without waiting; 0, or the errno of the refusal."""
