"""
The offer/answer model for one audio stream (RFC 3264).

One audio section is used, the first that fits; every other section of an offer is refused with port 0, as
RFC 3264 6 has it. An answer names one codec, so that what will be sent is never in doubt.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from media.sdp.encryption import (
    AgreedSrtp,
    Encryption,
    accepted_encryption,
    answered_encryption,
    offered_encryption,
    secure_first,
)
from media.sdp.errors import NegotiationError
from media.sdp.events import telephone_event
from media.sdp.formats import (
    CODECS,
    COMFORT_NOISE,
    TELEPHONE_EVENTS,
    Codec,
    Format,
    common_codec,
    find,
    merge_numbers,
    offered_codecs,
)
from media.sdp.model import MediaDescription, RtpMap, SessionDescription
from media.sdp.opus import read_opus
from media.sdp.rtcp import answered_rtcp, offered_rtcp, shares_port, with_rtcp
from media.sdp.sections import (
    LocalMedia,
    audio_section,
    fmtp_of,
    offered_formats,
    refused_section,
    session,
)
from media.sdp.transport import (
    MIRRORED,
    check_family,
    checked_address,
    effective_direction,
    intersect,
    packet_length,
)
from media.types import OpusSettings, RemoteMedia

__all__ = [
    "Negotiated",
    "accept_answer",
    "answer_offer",
    "is_unchanged",
    "make_offer",
    "remember",
    "revise",
]


@dataclass(frozen=True, slots=True)
class Negotiated:
    """
    Outcome of an offer and its answer.

    Attributes:
        remote: Where and how to send, as the media engine takes it; its direction is ours.
        answer: What to answer with; None when the answer was theirs.
        held: Whether the peer has put us on hold: it wants no audio from us (RFC 3264 8.4).
        numbers: The dynamic payload types of the offer and the answer; see `remember`.
        srtp: Profile and suite when the stream is encrypted; see `remember`.
    """

    remote: RemoteMedia
    answer: SessionDescription | None
    held: bool
    numbers: tuple[RtpMap, ...] = ()
    srtp: AgreedSrtp | None = None

    @property
    def codec(self) -> str:
        """Name of the agreed codec."""
        return self.remote.codec


@dataclass(frozen=True, slots=True)
class _Choice:
    """What is used of a section of theirs: payload types are those that they gave."""

    codec: Codec
    payload_type: int
    opus: OpusSettings
    dtmf: tuple[int, str] | None = None
    noise: int | None = None

    def formats(self, wanted: OpusSettings) -> tuple[Format, ...]:
        """The formats of an answer."""
        entries = [self.codec.rtpmap(self.payload_type)]
        if self.noise is not None:
            entries.append(COMFORT_NOISE[self.codec.clock_rate].rtpmap(self.noise))
        formats = [Format(entry, fmtp_of(entry, wanted)) for entry in entries]
        if self.dtmf is not None:
            payload_type, events = self.dtmf
            formats.append(Format(TELEPHONE_EVENTS[self.codec.clock_rate].rtpmap(payload_type), events))
        return tuple(formats)


def make_offer(local: LocalMedia) -> SessionDescription:
    """
    Offer one audio stream with all codecs of `local`, preferred first.

    Raises:
        ValueError: `local` names an unknown codec.
    """
    encryption = offered_encryption(local.srtp, local.srtp_keys, local.srtp_agreed)
    rtcp = offered_rtcp(local.port, mux=local.rtcp_mux)
    formats = offered_formats(local)
    media = audio_section(local, formats, local.ptime_ms, local.direction, encryption, rtcp)
    return session(local, (media,))


def answer_offer(offer: SessionDescription, local: LocalMedia) -> Negotiated:
    """
    Answer an offer with the first codec of it that `local` has (RFC 3264 6).

    Raises:
        NegotiationError: No audio section that can be used; refuse the offer with its status.
    """
    index, chosen, choice, encryption = _choose(offer, local)
    ptime_ms = packet_length(chosen, local.ptime_ms)
    theirs = effective_direction(offer, chosen)
    direction = intersect(local.direction, MIRRORED[theirs])
    shared = local.rtcp_mux and shares_port(chosen)
    rtcp = answered_rtcp(local.port, shared=shared)
    media = audio_section(local, choice.formats(local.opus), ptime_ms, direction, encryption, rtcp)
    sections = tuple(
        media if position == index else refused_section(section)
        for position, section in enumerate(offer.media)
    )
    answer = session(local, sections, offer.times)
    remote = replace(
        _remote(offer, chosen, choice),
        ptime_ms=ptime_ms,
        direction=direction,
        srtp_send=encryption.send,
        srtp_receive=encryption.receive,
    )
    if not shared:
        remote = with_rtcp(remote, chosen)
    check_family(remote.address, local.address)
    return Negotiated(
        remote,
        answer,
        held=theirs in ("sendonly", "inactive"),
        numbers=merge_numbers((), chosen.codecs()),
        srtp=encryption.agreed,
    )


def accept_answer(offer: SessionDescription, answer: SessionDescription) -> Negotiated:
    """
    Take the answer to an offer that `make_offer` made (RFC 3264 7).

    Of several codecs the first is used, which the answer prefers.

    Raises:
        NegotiationError: The stream was refused, or the answer does not fit the offer.
    """
    if not offer.media or not answer.media or answer.media[0].kind != offer.media[0].kind:
        raise NegotiationError("The answer lacks the offered stream", 304)
    ours, theirs = offer.media[0], answer.media[0]
    if theirs.port == 0:
        raise NegotiationError("The offered stream was refused", 304)
    encryption = accepted_encryption(ours, theirs)
    choice, offered = _accepted(ours, theirs)
    their_direction = effective_direction(answer, theirs)
    remote = replace(
        _receiving(_remote(answer, theirs, choice), offered),
        ptime_ms=packet_length(theirs, ours.ptime_ms or 20),
        direction=intersect(offer.direction_of(ours), MIRRORED[their_direction]),
        srtp_send=encryption.send,
        srtp_receive=encryption.receive,
    )
    if not (shares_port(ours) and shares_port(theirs)):
        remote = with_rtcp(remote, theirs)
    connection = offer.connection_of(ours)
    if connection is not None:
        check_family(remote.address, connection.address)
    return Negotiated(
        remote,
        None,
        held=their_direction in ("sendonly", "inactive"),
        numbers=merge_numbers((), ours.codecs(), theirs.codecs()),
        srtp=encryption.agreed,
    )


def remember(local: LocalMedia, negotiated: Negotiated) -> LocalMedia:
    """
    Keep what payload types stand for and how media is encrypted, so that later offers agree with it.

    Source: RFC 3264 8.3.2.
    """
    numbers = merge_numbers(local.numbers, negotiated.numbers)
    return replace(local, numbers=numbers, srtp_agreed=negotiated.srtp)


def is_unchanged(previous: SessionDescription, current: SessionDescription) -> bool:
    """
    Whether a description asks for nothing new, so that the session goes on as it is (RFC 3264 8).

    The version itself does not count: there are peers that raise it without a change, and peers that
    change without raising it. Session timer refreshes are the usual case of no change.
    """
    if previous is current:
        return True
    return replace(current, origin=previous.origin) == previous and _same_owner(previous, current)


def revise(previous: SessionDescription, current: SessionDescription) -> SessionDescription:
    """
    Give our next description the version that it must have after `previous` (RFC 3264 8).

    The same version when nothing changed, otherwise one higher; session id and user name stay.
    """
    version = previous.origin.version
    origin = replace(
        previous.origin, address=current.origin.address, address_type=current.origin.address_type
    )
    if is_unchanged(previous, replace(current, origin=origin)):
        return replace(current, origin=previous.origin)
    return replace(current, origin=replace(origin, version=version + 1))


def _same_owner(previous: SessionDescription, current: SessionDescription) -> bool:
    return replace(current.origin, version=previous.origin.version) == previous.origin


def _choose(
    offer: SessionDescription, local: LocalMedia
) -> tuple[int, MediaDescription, _Choice, Encryption]:
    """Find the first audio section that can be answered, its codec and keys; say why there is none."""
    failure = NegotiationError("No audio stream is offered", 304)
    codecs = offered_codecs(local.codecs)
    for index, media in secure_first(offer.media, local.srtp):
        if media.kind != "audio" or media.port == 0:
            continue
        try:
            encryption = answered_encryption(media, local.srtp, local.srtp_keys)
        except NegotiationError as error:
            failure = error
            continue
        common = common_codec(media, codecs, ours_first=local.ours_first)
        if common is not None:
            choice = _chosen(media, common, local.opus)
            return index, media, choice if local.dtmf else replace(choice, dtmf=None), encryption
        failure = NegotiationError(f"No common codec; supported are {', '.join(local.codecs)}")
    raise failure


def _chosen(media: MediaDescription, common: tuple[Codec, RtpMap], opus: OpusSettings) -> _Choice:
    codec, entry = common
    noise = COMFORT_NOISE.get(codec.clock_rate)
    silence = find(media, noise) if noise is not None else None
    return _Choice(
        codec=codec,
        payload_type=entry.payload_type,
        opus=read_opus(media.fmtp(entry.payload_type), opus) if codec.name == "OPUS" else OpusSettings(),
        dtmf=telephone_event(media, codec.clock_rate),
        noise=silence.payload_type if silence is not None else None,
    )


def _accepted(ours: MediaDescription, theirs: MediaDescription) -> tuple[_Choice, _Choice]:
    """What an answer uses of our offer, with its payload types and with ours."""
    offered = [codec for clocks in CODECS.values() for codec in clocks if find(ours, codec) is not None]
    common = common_codec(theirs, offered)
    entry = find(ours, common[0]) if common is not None else None
    if common is None or entry is None:
        raise NegotiationError("The answer has no offered codec")
    sent = _chosen(ours, (common[0], entry), OpusSettings())
    choice = _chosen(theirs, common, sent.opus)
    # What was not offered is not taken.
    dtmf = choice.dtmf if sent.dtmf is not None else None
    noise = choice.noise if sent.noise is not None else None
    return replace(choice, dtmf=dtmf, noise=noise), sent


def _remote(description: SessionDescription, media: MediaDescription, choice: _Choice) -> RemoteMedia:
    return RemoteMedia(
        address=checked_address(description.connection_of(media)),
        port=media.port,
        codec=choice.codec.name,
        payload_type=choice.payload_type,
        clock_rate=choice.codec.clock_rate,
        dtmf_payload_type=choice.dtmf[0] if choice.dtmf else None,
        comfort_noise_payload_type=choice.noise,
        opus=choice.opus,
    )


def _receiving(remote: RemoteMedia, ours: _Choice) -> RemoteMedia:
    """Note where our payload types are not theirs: each side sends what the other named (RFC 3264 5.1)."""
    if ours.payload_type != remote.payload_type:
        remote = replace(remote, receive_payload_type=ours.payload_type)
    events = remote.dtmf_payload_type
    if events is not None and ours.dtmf is not None and ours.dtmf[0] != events:
        remote = replace(remote, dtmf_receive_payload_type=ours.dtmf[0])
    return remote
