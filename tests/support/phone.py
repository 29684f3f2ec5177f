"""A telephone for tests: a real SIP user agent and a real RTP stream at the far end of the server."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from media.aio import AgentTap, MediaEngine, RtpStream, make_srtp_keys
from media.audio import tone
from media.sdp import LocalMedia, SessionDescription, accept_answer, answer_offer, make_offer
from media.types import Direction, DtmfReceived, EngineSettings, MediaEvent, RemoteMedia, SrtpKey, SrtpUse
from sip import (
    Answered,
    Cancelled,
    Confirmed,
    Destination,
    Ended,
    Failed,
    NameAddr,
    OfferAnswered,
    OfferReceived,
    OutboundInvite,
    Progress,
    Request,
    SessionEvent,
    SipUri,
)
from sip.aio import InboundSession, Listen, Session, TlsSettings, UserAgent, UserAgentSettings
from tests.support.levels import tone_level_dbfs
from tests.support.ports import port_range

PATIENCE_S = 40.0
_BYTES_PER_MS = 16


async def eventually(condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> bool:
    """Return True if a condition comes true in time."""
    deadline = asyncio.get_running_loop().time() + timeout_s
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


class PhoneCall:
    """One call of a telephone: its signalling as events, what it hears as samples."""

    def __init__(self, phone: "Phone", session: Session | None = None) -> None:
        self.phone = phone
        self.events: list[SessionEvent] = []
        self.digits = ""
        self.heard = bytearray()
        self.srtp_keys: tuple[SrtpKey, ...] = ()
        self.kept_ms = 2000
        """Length of received audio that is kept."""
        self.stream: RtpStream | None = None
        self.tap: AgentTap | None = None
        self.offer: SessionDescription | None = None
        self.session: Session
        if session is not None:
            self.attach(session)

    def attach(self, session: Session) -> None:
        self.session = session
        session.on_event = self.on_event

    @property
    def request(self) -> Request:
        """The INVITE that came."""
        assert isinstance(self.session, InboundSession)
        return self.session.request

    def on_event(self, event: SessionEvent) -> None:
        self.events.append(event)
        body: bytes = getattr(event, "body", b"")
        if isinstance(event, Answered | Progress | OfferAnswered) and body and self.offer is not None:
            self._connect(accept_answer(self.offer, SessionDescription.parse(body)).remote)
        elif isinstance(event, Confirmed) and body and self.offer is not None:
            self._connect(accept_answer(self.offer, SessionDescription.parse(body)).remote)
        elif isinstance(event, OfferReceived):
            self.session.accept_offer(self._answer_to(body))
        if isinstance(event, Ended | Failed | Cancelled):
            self.close()

    # What it does.

    def describe(self, codecs: Sequence[str] = ("PCMU", "PCMA"), direction: Direction = "sendrecv") -> bytes:
        """Our offer."""
        self.offer = make_offer(self._local(codecs, direction))
        return self.offer.to_bytes()

    def ring(self) -> None:
        assert isinstance(self.session, InboundSession)
        self.session.progress(180)

    def ring_early(self) -> None:
        """183 with early media."""
        assert isinstance(self.session, InboundSession)
        self.session.progress(183, self._answer_to(self.request.body))

    def answer(self) -> None:
        assert isinstance(self.session, InboundSession)
        self.session.answer(self._answer_to(self.request.body))

    def reject(self, status: int, headers: Sequence[tuple[str, str]] = ()) -> None:
        assert isinstance(self.session, InboundSession)
        self.session.reject(status, headers=headers)

    def hold(self, direction: Direction = "sendonly") -> None:
        self.session.reinvite(self.describe(direction=direction))

    def hold_by_address(self) -> None:
        """Hold as RFC 2543 had it: with the address 0.0.0.0."""
        body = self.describe().replace(b"c=IN IP4 127.0.0.1", b"c=IN IP4 0.0.0.0")
        self.session.reinvite(body)

    def resume(self) -> None:
        self.session.reinvite(self.describe())

    def hang_up(self) -> None:
        self.session.hangup()

    def speak(self, freq_hz: float) -> None:
        """Send a tone until something else is said."""
        self.open().play(tone(freq_hz, 1000), loop=True)

    def close(self) -> None:
        if self.stream is not None:
            self.stream.close()

    # What it waits for and hears.

    async def wait(self, kind: type[SessionEvent], timeout_s: float = PATIENCE_S) -> SessionEvent:
        """The first event of a kind, once it is there."""

        def found() -> SessionEvent | None:
            return next((event for event in self.events if isinstance(event, kind)), None)

        await self.until(lambda: found() is not None, timeout_s)
        event = found()
        assert event is not None
        return event

    async def until(self, condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        if not await eventually(condition, timeout_s):
            raise AssertionError(f"waited in vain; events: {self.events}")

    async def hears(self, freq_hz: float, timeout_s: float = PATIENCE_S) -> None:
        """Wait until 400 ms of a tone are heard, and little else."""
        self.heard.clear()
        await self.until(lambda: self.hears_now(freq_hz), timeout_s)

    def hears_now(self, freq_hz: float) -> bool:
        recent = bytes(self.heard[-400 * _BYTES_PER_MS :])
        return len(recent) == 400 * _BYTES_PER_MS and tone_level_dbfs(recent, freq_hz) > -16.0

    def heard_beep(self, freq_hz: float) -> bool:
        """Return True if the latest audio holds 60 ms of a tone."""
        heard, size = bytes(self.heard), 60 * _BYTES_PER_MS
        starts = range(0, len(heard) - size + 1, 20 * _BYTES_PER_MS)
        return any(tone_level_dbfs(heard[at : at + size], freq_hz) > -26.0 for at in starts)

    async def hears_silence(self, timeout_s: float = PATIENCE_S) -> None:
        self.heard.clear()
        await self.until(
            lambda: len(self.heard) >= 400 * _BYTES_PER_MS and not any(self.heard[-200 * _BYTES_PER_MS :]),
            timeout_s,
        )

    def open(self) -> RtpStream:
        """The stream, opened when it is first needed."""
        if self.stream is None:
            self.stream = self.phone.engine.open_stream(self._on_media)
            self.tap = self.stream.open_tap(on_frames=self._on_frames)
        return self.stream

    def _local(
        self, codecs: Sequence[str] = ("PCMU", "PCMA"), direction: Direction = "sendrecv"
    ) -> LocalMedia:
        address, port = self.open().local
        if not self.srtp_keys and self.phone.srtp != "off":
            self.srtp_keys = make_srtp_keys()
        return LocalMedia(
            address,
            port,
            tuple(codecs),
            direction=direction,
            dtmf=self.phone.events,
            srtp=self.phone.srtp,
            srtp_keys=self.srtp_keys,
            session_id=1,
        )

    def _answer_to(self, body: bytes) -> bytes:
        if not body:
            return self.describe()
        negotiated = answer_offer(SessionDescription.parse(body), self._local(self.phone.codecs))
        self._connect(negotiated.remote)
        assert negotiated.answer is not None
        return negotiated.answer.to_bytes()

    def _connect(self, remote: RemoteMedia) -> None:
        self.open().connect(remote)

    def _on_media(self, event: MediaEvent) -> None:
        if isinstance(event, DtmfReceived):
            self.digits += event.digit

    def _on_frames(self, frames: bytes) -> None:
        self.heard += frames
        del self.heard[: -self.kept_ms * _BYTES_PER_MS]


class Phone:
    """A SIP user agent with an RTP engine; ``on_call`` decides about calls that come in."""

    def __init__(
        self,
        engine: MediaEngine,
        *,
        codecs: Sequence[str] = ("PCMU", "PCMA"),
        tls: TlsSettings | None = None,
    ) -> None:
        self.engine = engine
        self.codecs = tuple(codecs)
        self.srtp: SrtpUse = "off"
        self.events = True
        """True if it offers telephone events."""
        self.calls: list[PhoneCall] = []
        self.on_call: Callable[[PhoneCall], None] = PhoneCall.answer
        self.user_agent = UserAgent(
            [Listen("udp" if tls is None else "tls", "127.0.0.1", 0)],
            UserAgentSettings(tls=tls),
            on_invite=self._on_invite,
        )

    async def start(self) -> None:
        await self.user_agent.start()

    async def close(self) -> None:
        for call in self.calls:
            call.close()
        await self.user_agent.close()

    @property
    def port(self) -> int:
        return self.user_agent.addresses[0].port

    def call(
        self,
        to: str,
        server_port: int,
        *,
        from_user: str = "+919811111111",
        body: bytes | None = None,
        codecs: Sequence[str] = ("PCMU", "PCMA"),
        headers: Sequence[tuple[str, str]] = (),
        max_forwards: int = 70,
    ) -> PhoneCall:
        """Call a number of the server."""
        made = PhoneCall(self)
        invite = OutboundInvite(
            uri=SipUri("sip", user=to, host="127.0.0.1", port=server_port),
            from_=NameAddr(None, SipUri("sip", user=from_user, host="127.0.0.1")),
            to=NameAddr(None, SipUri("sip", user=to, host="127.0.0.1")),
            destination=Destination("udp", "127.0.0.1", server_port),
            headers=list(headers),
            max_forwards=max_forwards,
            body=made.describe(codecs) if body is None else body,
        )
        made.attach(self.user_agent.invite(invite, made.on_event))
        self.calls.append(made)
        return made

    async def next_call(self, number: int = 1, timeout_s: float = PATIENCE_S) -> PhoneCall:
        """The ``number``-th call of this telephone, once it is there."""
        assert await eventually(lambda: len(self.calls) >= number, timeout_s), "no call came"
        return self.calls[number - 1]

    def _on_invite(self, session: InboundSession) -> None:
        call = PhoneCall(self, session)
        self.calls.append(call)
        self.on_call(call)


def engine_settings(ports: int = 400, **settings: Any) -> EngineSettings:
    """An engine with so many ports of its own, which need not rest."""
    first, last = port_range(ports)
    return EngineSettings(**{"port_min": first, "port_max": last, "quarantine_s": 0.0, **settings})
