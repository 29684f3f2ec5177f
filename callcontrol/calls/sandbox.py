"""Sandbox parties: their numbers, requests for calls of theirs, and the interface of the sandbox carrier."""

from dataclasses import dataclass
from typing import Final, Literal, Protocol

from callcontrol.ids import CallSid
from callcontrol.models import TEST_PREFIX

LISTENER: Final = "+919800000009"
"""Party that listens and says nothing."""

_TEST_DIGITS: Final = len(TEST_PREFIX) + 3

Behaviour = Literal["digits", "echo", "listen", "speech", "tone"]


def is_test_number(number: str) -> bool:
    """True if a number in E.164 is a test number, regardless of where the sandbox carrier runs."""
    return number.startswith(TEST_PREFIX) and len(number) == _TEST_DIGITS


@dataclass(frozen=True, slots=True, kw_only=True)
class PartyCallRequest:
    """
    Request for a call of the sandbox party ``from_`` to the number ``to``.

    Without a ``behaviour`` the party behaves as when it is called. It hangs up ``hangup_after_s`` after the
    answer and, if it is not answered, ``hangup_after_ringing_s`` after it has first heard ringing (None: it
    waits). ``send_digits`` are sent first after the answer; ``w`` waits half a second, ``W`` a second.
    """

    to: str
    from_: str = LISTENER
    behaviour: Behaviour | None = None
    send_digits: str | None = None
    hangup_after_ringing_s: float | None = None
    hangup_after_s: float = 60.0


@dataclass(frozen=True, slots=True)
class PartyCall:
    """A call of a sandbox party; ``call_sid`` is None when the call has not begun within a second."""

    sip_call_id: str
    call_sid: CallSid | None
    from_: str
    to: str


class PlacedCall(Protocol):
    """The sandbox carrier's side of a call that it has placed."""

    @property
    def call_id(self) -> str:
        """SIP Call-ID."""

    @property
    def over(self) -> bool:
        """True when the call has ended."""

    async def progressed(self) -> None:
        """Wait for the first response above 100, or the end."""


class SandboxParties(Protocol):
    """The sandbox carrier, as the parties that call this server."""

    @property
    def reach_server(self) -> bool:
        """True if the carrier knows an address of this server."""

    def place(self, request: PartyCallRequest) -> PlacedCall:
        """
        Call a number of this server; numbers of the request are in E.164.

        Raises:
            ValueError: The carrier does not know an address of this server.
            PortsExhausted: All its RTP ports are in use.
        """
