"""
The native part of SIP: plain messages, their transactions, and datagrams.

Nothing here knows errors of messages: what is not plain is left to Python.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any, Self, TypeVar

from sip.message.fields import CSeq, NameAddr, Via
from sip.message.message import Entry, Message
from sip.message.parser import Limits
from sip.protection.rate_limits import ProtectionSettings
from sip.timers import Timers

T = TypeVar("T")

class Reader:
    """Makes messages of bytes."""

    def __init__(
        self,
        classes: dict[str, type],
        names: dict[str, tuple[str, str]],
        split: Set[str],
        readers: dict[str, Callable[..., object]],
    ) -> None:
        """
        Take the classes of messages and fields and what reads a value that is not plain.

        `names` is `sip.message.message.KNOWN_NAMES`; `split` are the keys of fields that are kept one element
        to an entry.
        """

    def read(self, data: bytes, limits: Limits) -> Message | None:
        """The message; None when it is not plain, or not acceptable, and is to be read in Python."""

UNREAD: int
"""The message is not plain: `sip.message.parser` has to read it."""
IGNORED: int
"""A response that matches nothing."""
REPEATED: int
"""A repeated request, or an ACK of a refusal."""
ABSORBED: int
"""A response that its user need not see."""
REQUEST: int
"""A new request, with the number of the transaction that was opened for it, if any."""
CANCEL: int
"""A CANCEL, with the number of its INVITE's transaction, if any."""
ACK: int
"""An ACK of a 2xx, or of a response without a transaction."""
RESPONSE: int
"""A response to a request of ours."""
STRAY: int
"""A 2xx of an INVITE without a transaction."""
SEND: int
"""Bytes to be sent on the flow of a transaction."""
TIMED_OUT: int
"""A client transaction ended: no final response came in time."""
UNSENT: int
"""A client transaction ended: its request could not be sent."""
ENDED: int
"""A transaction ended."""

KEPT_DATAGRAM: int
"""A datagram that has to be received again, from its beginning."""
KEPT_ADMITTED: int
"""A datagram of an unknown source that the guard has let pass."""
KEPT_MESSAGE: int
"""A message that was matched."""
KEPT_OUTPUT: int
"""Something that came with time."""
KEPT_SENT: int
"""Bytes that the thread has sent, for a trace."""

Found = tuple[int, int, Message | None, bytes | None, int]
"""
What became of a message: kind, number of its transaction or 0, the message, what is to be sent on the
transaction's flow, and the port to which responses to a request go.

The top Via of a request has the source. A message that is repeated over UDP or absorbed is None.
"""
RequestFields = tuple[bytes, bytes | None, bytes, int | None, bytes, int, bytes]
"""What a request is matched by: method, branch, host and port of sent-by, Call-ID, CSeq and From tag."""
ResponseFields = tuple[int, int, bytes, bytes, bytes]
"""What a response is matched by: status, number of its Vias, branch, method of the CSeq, and its To."""
PeerFlow = tuple[int, str, int, bool]
"""Flow to a peer: number of a socket of the thread's or -1, host, port, and whether it is reliable."""
Kept = tuple[int, Found, bytes, int, tuple[str, int], float]
"""
Something that the thread has kept.

Its sort (`KEPT_*`), what was found, the bytes, number of the socket, source or target, and the time.
"""
Outputs = list[tuple[int, int, bytes | None]]
"""What came with time or a command: kind, number of the transaction, and bytes to be sent."""

SOURCE_DROP: int
"""The message is not to be parsed."""
SOURCE_UNKNOWN: int
"""The message is of an unknown source, and may be parsed."""
SOURCE_KNOWN: int
"""The message is of a known source."""
SOURCE_ASK: int
"""Nothing has happened yet: the application is to be asked about the host."""
TRUST_UNASKED: int
"""The application was not asked about a host."""
TRUST_NO: int
TRUST_YES: int
"""The application trusts a host."""

class SourceGuard:
    """
    Judges messages by their sources before they are parsed; bounded memory, no clock.

    `trust` is one of `TRUST_*`: a caller who gets `SOURCE_ASK` asks the application and calls again. All text
    that is no address is one source.
    """

    def __init__(self, settings: ProtectionSettings) -> None:
        """Set the limits."""

    def origin_of(self, data: bytes, host: str, port: int, /) -> tuple[str, int]:
        """Address and port that a message comes from: what a front names; ("", 0) if it names none."""

    def judge(self, data: bytes, host: str, port: int, is_datagram: bool, now_s: float, trust: int, /) -> int:
        """Judge a message; one of `SOURCE_*`."""

    def judge_connection(self, host: str, now_s: float, trust: int, /) -> int:
        """Judge a new connection: only a banned source gets none."""

    def judge_host(self, host: str, now_s: float, trust: int, /) -> int:
        """Judge a host: `SOURCE_KNOWN`, `SOURCE_UNKNOWN` or `SOURCE_ASK`."""

    def knows(self, host: str, /) -> bool:
        """True for a host that was found to be known, until `refresh`."""

    def may_answer(self, host: str, now_s: float, /) -> bool:
        """Score the request of an unknown source; True when it gets its refusal."""

    def on_malformed(self, host: str, now_s: float, /) -> None:
        """Score a malformed message."""

    def trust(self, host: str, now_s: float, /) -> None:
        """Make a host known for some hours, and lift its ban."""

    def on_auth_failure(self, host: str, is_trusted: bool, now_s: float, /) -> None:
        """Count wrong credentials; one that the application trusts is neither slowed nor banned."""

    def on_auth_success(self, host: str, now_s: float, /) -> None:
        """Forget wrong credentials, and make the host known."""

    def set_own(self, own: tuple[str, int] | None) -> None:
        """Admit this address and port, without trust in its host."""

    def set_severe(self, severe: bool, /) -> None:
        """Drop INVITEs of unknown sources over UDP."""

    def refresh(self, now_s: float, /) -> None:
        """Forget what the application has said, and drop expired trust."""

    def banned(self, now_s: float, /) -> dict[str, float]:
        """Banned sources, each with the seconds left."""

    def known(self) -> list[str]:
        """Hosts that were found to be known since the last `refresh`."""

    def rejected(self) -> dict[str, int]:
        """Messages that were not served, by reason."""

    def take_bans(self) -> tuple[list[tuple[str, str, float, int]], int]:
        """
        Return the bans since the last call, once: source, reason, seconds, and how many it had.

        The second value is the number of those that are left out, because there were too many.
        """

    @property
    def largest(self) -> int:
        """Entries of the largest table."""

class TimerQueue:
    """
    Running timers of what Python owns; no clock. `now_s` must never go back.

    To arm, to disarm and to fire take constant time, whatever the number of timers; different delays are few.
    An exception of a callback costs no other timer, since the caller calls it.
    """

    def __init__(self) -> None: ...
    def arm(self, now_s: float, delay_s: float, callback: Callable[[int], object], event: int, /) -> int:
        """Keep a callback with an event of 0 to 255 for the time after a delay; returns its number, not 0."""

    def disarm(self, timer: int, /) -> None:
        """Drop a timer by its number; no-op when it has fired or was disarmed before."""

    def take_due(self, now_s: float, /) -> tuple[Callable[[int], object], int] | None:
        """Take callback and event of the timer that is due first; None when none is due."""

    def __len__(self) -> int: ...
    @property
    def due_s(self) -> float:
        """When a timer is due; infinite when none runs."""

class DatagramReader:
    """
    Reads a UDP socket, and hands over the datagrams that its guard lets pass.

    They are judged one by one, each after what was done with those before. Keep-alives are passed over.
    """

    def __init__(self, guard: SourceGuard | None) -> None:
        """Read with a guard; without one every source is known."""

    def receive(self, socket: int, most: int, /) -> int:
        """
        Read up to 32 datagrams that a socket has; returns their number.

        It is 0 as well when the system reports an error of an earlier datagram; what waits is read next.
        """

    def next(
        self, is_trusted: Callable[[str], bool] | None, now_s: float
    ) -> tuple[bytes, tuple[str, int], bool] | None:
        """
        Return the next datagram that passes, its source, and whether that is known; None when all are done.

        `is_trusted` asks the application about a host; what it raises costs that datagram.
        """

    @property
    def dropped(self) -> int:
        """Number of those read last that the guard has dropped."""

    @property
    def arrived_at_s(self) -> float | None:
        """Wall-clock time at which the system got the first of those read last, if it stamps them."""

class Engine:
    """
    The transactions of a user agent: matches messages to them, runs their machines and timers.

    Times are seconds of one clock that never goes back. The caller sends what it hands over itself; what the
    engine repeats, or says by itself, comes out of it. A command for a transaction that has ended does
    nothing.
    """

    def __init__(self, reader: Reader, limits: Limits, timers: Timers, most_servers: int) -> None:
        """Make messages with `reader`; beyond `most_servers` transactions a request of a peer opens none."""

    def receive(
        self, data: bytes, host: str, port: int, socket: int, reliable: bool, opens: bool, now_s: float, /
    ) -> Found:
        """
        Match a message of a source; with `opens`, a new request opens a transaction.

        `opens` also says that the source is known, for the thread.
        """

    def take_request(
        self, fields: RequestFields, trying: bytes, flow: PeerFlow, opens: bool, now_s: float, /
    ) -> tuple[int, int, bytes | None]:
        """Match a request that was not plain; `trying` is the 100 of an INVITE, else empty."""

    def take_response(self, fields: ResponseFields, now_s: float, /) -> tuple[int, int, bytes | None]:
        """Match a response that was not plain."""

    def open_server(self, fields: RequestFields, trying: bytes, flow: PeerFlow, now_s: float, /) -> int:
        """Open the transaction of a request, whatever their number; an older one of the same key ends."""

    def start_client(self, wire: bytes, method: str, branch: str, flow: PeerFlow, now_s: float, /) -> int:
        """Start the transaction of a request of ours."""

    def resume_invite(self, wire: bytes, branch: str, flow: PeerFlow, /) -> int:
        """Resume the transaction of an INVITE that another process sent."""

    def respond(self, number: int, status: int, wire: bytes, now_s: float, /) -> bool:
        """Take a response of ours; True if it is to be sent."""

    def cancel(self, number: int, reason: bytes, now_s: float, /) -> tuple[int, bytes]:
        """
        Start the CANCEL of an INVITE; `reason` is the value of its Reason field, if not empty.

        Returns its number and bytes; the number is 0 when there is nothing to cancel.
        """

    def abandon(self, number: int, now_s: float, /) -> None:
        """Stop repeating an INVITE that has no response."""

    def give_up(self, number: int, now_s: float, /) -> Outputs:
        """Drop an INVITE that has no final response."""

    def expire(self, number: int, now_s: float, /) -> None:
        """Let an INVITE end after the timeout if it has no final response by then."""

    def fail_transport(self, number: int, now_s: float, /) -> Outputs:
        """Take note that the flow of a transaction has broken."""

    def release(self, number: int, /) -> None:
        """Forget a transaction at once."""

    def clear(self) -> None:
        """Forget everything."""

    def advance(self, now_s: float, /) -> Outputs:
        """Do all that is due."""

    def add_socket(self, descriptor: int, /) -> int:
        """
        Serve a UDP socket by a thread while the loop stands still; returns the socket's number.

        The loop stands still when datagrams or timers have waited for 50 to 100 ms and none was taken.
        """

    def set_reading(self, socket: int, reading: bool, /) -> None:
        """Read a socket in the thread, or leave it alone; it is sent on in either case."""

    def remove_socket(self, socket: int, /) -> None:
        """Serve a socket no more."""

    def note_served(self, now_s: float, /) -> bool:
        """
        Note that the loop reads its sockets, though nothing in them is for the engine.

        True if the thread has kept something, which came before what is read now.
        """

    def set_guard(self, guard: SourceGuard, /) -> None:
        """Use a guard for what comes while the loop stands still, and have it trust who answers requests."""

    def set_opening(self, opening: bool, /) -> None:
        """Allow the thread to open transactions; False leaves all to the loop."""

    def set_tracing(self, tracing: bool, /) -> None:
        """Keep also what was answered without Python, for a trace."""

    def take_kept(self, most: int, /) -> list[Kept]:
        """Take what the thread has kept first, up to `most`, in its order."""

    @property
    def wake_descriptor(self) -> int:
        """Descriptor that is readable while something is kept."""

    def stop(self) -> None:
        """End the thread."""

    def is_wanted(self, number: int, /) -> bool:
        """True while no response has come to a request and nobody has abandoned it."""

    def find_wanted(self, method: bytes, branch: bytes, /) -> int:
        """Return the number of the request with that method and branch while it is wanted; 0 otherwise."""

    def state_of(self, number: int, /) -> int | None:
        """Number of the state of a transaction, in the order of passing; None once it has ended."""

    @property
    def due_s(self) -> float:
        """When something is due; infinite when no timer runs."""

    @property
    def transactions(self) -> int:
        """Number of transactions."""

    @property
    def timers(self) -> int:
        """Number of running timers."""

def construct_natively(cls: type, /) -> None:
    """
    Let a data class with slots be constructed without a call of its `__init__`.

    A class whose `__init__` does more than to set its fields, and to call `__post_init__`, stays as it is.
    Arguments that do not fit are left to `__init__`, which raises the error.
    """

class HeaderFields:
    """
    Header fields in order; the base of `sip.message.message.Headers`, which says what they are.

    The top Via, From, To, Call-ID and CSeq are attributes, read when they are first asked for.
    """

    via: Via
    from_: NameAddr
    to: NameAddr
    call_id: str
    cseq: CSeq

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None: ...
    @classmethod
    def from_entries(cls, entries: list[Entry], /) -> Self:
        """Build from checked entries."""

    @property
    def entries(self) -> list[Entry]:
        """Key, name as written and value of each; changing the list bypasses checks and cached views."""

    @property
    def views(self) -> dict[str, Any]:
        """Cached typed views by key; written by this class only."""

    def get(self, name: str, /) -> str | None:
        """Return the value of the first field of a name, as written."""

    def get_all(self, name: str, /) -> list[str]:
        """Return all values of a name in order, with comma-separated lists split."""

    def first(self, key: str, /) -> str | None:
        """As `get`, for a key: a name in lower-case long form."""

    def all_of(self, key: str, /) -> list[str]:
        """Return all values of a key, as written."""

    def items(self) -> list[tuple[str, str]]:
        """Return name as written and value of each, in order."""

    def typed(self, key: str, parse: Callable[[Self, str], T], /) -> T:
        """
        Return ``parse(self, key)``, cached until the field changes.

        A field has one typed view: always pass the same ``parse`` for a key.
        """

    def __contains__(self, name: str) -> bool: ...
    def add(self, name: str, value: str, /) -> None:
        """
        Append a field.

        Raises:
            InvalidValue: The name is not a token, or the value holds a line
                end or cannot be encoded.
        """

    def extend(self, fields: Iterable[tuple[str, str]], /) -> None:
        """Append fields in order; raises as `add`."""

    def add_custom(self, fields: Iterable[tuple[str, str]], /) -> None:
        """
        Add the header fields of an application; its Allow, Content-Type, Server and User-Agent replace ours.

        Raises:
            InvalidValue: A field is malformed, or set by the session only.
        """

    def set(self, name: str, value: str, /) -> None:
        """Replace all fields of a name by one, in the place of the first; raises as `add`."""

    def push_via(self, value: str, /) -> None:
        """Insert our Via before all other fields; its value is not checked."""

    def remove(self, name: str, /) -> None:
        """Remove all fields of a name, if any."""

    def copy_keys(self, other: HeaderFields, keys: Set[str], /) -> None:
        """Append the fields of these keys from another message, in its order."""

    def copy(self) -> Self:
        """Return an independent copy."""

def set_header_rules(
    names: dict[str, tuple[str, str]],
    keys: Mapping[str, Set[str]],
    helpers: dict[str, Callable[..., object]],
    attributes: dict[str, tuple[str, Callable[[Any, str], object]]],
    /,
) -> None:
    """
    Tell `HeaderFields` what `sip.message.message` knows, once.

    `names` is its `KNOWN_NAMES`; `keys` are those of fields whose value is a list ("list"), that only the
    session sets ("owned") and that an application may replace ("replaceable"). `helpers` splits a list
    ("list"), refuses text that has no bytes ("encodable") and is the error of malformed fields
    ("error"). `attributes` has the key of each field that is an attribute, and what reads it.
    """

class UriText:
    """Base of `SipUri`, whose ``str`` is what is written."""

class AddressText:
    """Base of `NameAddr`, whose ``str`` is what is written."""

def set_address_classes(uri: type, address: type, /) -> None:
    """Tell what `SipUri` and `NameAddr` are, once."""

def set_message_classes(request: type, response: type, helpers: dict[str, Callable[..., object]], /) -> None:
    """
    Tell what `Request` and `Response` are, once.

    `helpers` has the default phrase of a status ("reason"), refuses text that has no bytes ("encodable") and
    is the error of malformed parts ("error").
    """

def write(message: Message, /) -> bytes:
    """
    A message of its start line, its header lines (but Content-Length, which is made here) and its body.

    Raises:
        InvalidValue: The method is not a token, or status or reason does not fit a status line.
        UnicodeEncodeError: A part has a surrogate that stands for no byte.
    """

def send_datagram(socket: int, data: bytes, host: str, port: int) -> int:
    """Send one datagram to an address without waiting; 0, or the errno of the refusal."""
