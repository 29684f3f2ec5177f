"""
The offer/answer model for one audio stream (RFC 3264).

The first usable audio section is used; every other section of an offer is refused with port 0 (RFC 3264 6).
An answer names one codec, so that the codec in use is unambiguous.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

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
    read_opus,
    telephone_event,
)
from media.sdp.local_media import LocalMedia, described, fmtp_of, offered_formats
from media.sdp.model import (
    Attribute,
    Connection,
    MediaDescription,
    NegotiationError,
    Origin,
    RtpMap,
    SessionDescription,
)
from media.sdp.transport import (
    MIRRORED,
    AgreedSrtp,
    Encryption,
    accepted_encryption,
    answered_encryption,
    answered_rtcp,
    check_family,
    checked_address,
    effective_direction,
    intersect,
    offered_encryption,
    offered_rtcp,
    packet_length,
    rtcp_of,
)
from media.types import Direction, OpusSettings, RemoteMedia, SrtpUse
from media.values import frozen


@frozen
class Negotiated:
    """
    Outcome of an offer and its answer.

    Attributes:
        remote: Parameters for sending, in the media engine's form; its direction is ours.
        answer: Our answer; None when the answer was theirs.
        held: True if the peer has put us on hold: it wants no audio from us (RFC 3264 8.4).
        numbers: Dynamic payload types of the offer and the answer; see `remember`.
        srtp: Profile and suite if the stream is encrypted; see `remember`.
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


class _Choice(NamedTuple):
    """The chosen formats of their section, with their payload types, packet lengths, and use of one port."""

    codec: Codec
    payload_type: int
    opus: OpusSettings
    dtmf: tuple[int, str] | None = None
    noise: int | None = None
    ptime_ms: int | None = None
    maxptime_ms: int | None = None
    shares_port: bool = False


@lru_cache(maxsize=256)
def _answered_formats(choice: _Choice, wanted: OpusSettings) -> tuple[Format, ...]:
    """Return the formats of an answer."""
    clock_rate = choice.codec.clock_rate
    entries = [choice.codec.rtpmap(choice.payload_type)]
    if choice.noise is not None:
        entries.append(COMFORT_NOISE[clock_rate].rtpmap(choice.noise))
    formats = [Format(entry, fmtp_of(entry, wanted)) for entry in entries]
    if choice.dtmf is not None:
        payload_type, events = choice.dtmf
        formats.append(Format(TELEPHONE_EVENTS[clock_rate].rtpmap(payload_type), events))
    return tuple(formats)


class _Forms(NamedTuple):
    """
    The formats of a section, without its address, port and keys.

    They are the same for nearly every call of a carrier, so results derived from them are cached.
    """

    formats: tuple[str, ...]
    attributes: tuple[Attribute, ...]

    @classmethod
    def of(cls, media: MediaDescription) -> _Forms:
        """Extract the forms of an RTP section."""
        return cls(media.formats, tuple([item for item in media.attributes if item.name in _FORM_NAMES]))

    @property
    def section(self) -> MediaDescription:
        """A section with these forms."""
        return MediaDescription("audio", 0, "RTP/AVP", self.formats, attributes=self.attributes)


_FORM_NAMES: Final = frozenset({"rtpmap", "fmtp", "ptime", "maxptime", "rtcp-mux"})


def make_offer(local: LocalMedia) -> SessionDescription:
    """
    Offer one audio stream with all codecs of `local`, preferred first.

    Raises:
        ValueError: `local` names an unknown codec.
    """
    encryption = offered_encryption(local.srtp, local.srtp_keys, local.srtp_agreed)
    rtcp = offered_rtcp(local.port, mux=local.rtcp_mux)
    formats = offered_formats(local.codecs, local.dtmf, local.comfort_noise, local.opus, local.numbers)
    media = _audio_section(local, formats, local.ptime_ms, local.direction, encryption, rtcp)
    return _session(local, (media,))


def answer_offer(offer: SessionDescription, local: LocalMedia) -> Negotiated:
    """
    Answer an offer with the first codec of it that `local` has (RFC 3264 6).

    Raises:
        NegotiationError: No audio section is usable; refuse the offer with its status.
    """
    index, chosen, (choice, numbers), encryption = _choose(offer, local)
    ptime_ms = packet_length(choice.ptime_ms, choice.maxptime_ms, local.ptime_ms)
    theirs = effective_direction(offer, chosen)
    direction = intersect(local.direction, MIRRORED[theirs])
    shared = local.rtcp_mux and choice.shares_port
    rtcp = answered_rtcp(local.port, shared=shared)
    formats = _answered_formats(choice, local.opus)
    media = _audio_section(local, formats, ptime_ms, direction, encryption, rtcp)
    sections = tuple(
        [
            media if position == index else _refused_section(section)
            for position, section in enumerate(offer.media)
        ]
    )
    answer = _session(local, sections, offer.times)
    remote = _remote(
        offer, chosen, choice, ptime_ms=ptime_ms, direction=direction, encryption=encryption, shared=shared
    )
    check_family(remote.address, local.address)
    return Negotiated(
        remote,
        answer,
        held=theirs in ("sendonly", "inactive"),
        numbers=numbers,
        srtp=encryption.agreed,
    )


def accept_answer(offer: SessionDescription, answer: SessionDescription) -> Negotiated:
    """
    Process the answer to an offer of `make_offer` (RFC 3264 7).

    Of several codecs the first is used, the preferred one of the answer.

    Raises:
        NegotiationError: The stream was refused, or the answer does not fit the offer.
    """
    if not offer.media or not answer.media or answer.media[0].kind != offer.media[0].kind:
        raise NegotiationError("The answer lacks the offered stream", 304)
    ours, theirs = offer.media[0], answer.media[0]
    if theirs.port == 0:
        raise NegotiationError("The offered stream was refused", 304)
    encryption = accepted_encryption(ours, theirs)
    accepted = _accepted(_Forms.of(ours), _Forms.of(theirs))
    if accepted is None:
        raise NegotiationError("The answer has no offered codec")
    choice, offered, numbers = accepted
    their_direction = effective_direction(answer, theirs)
    remote = _remote(
        answer,
        theirs,
        choice,
        ptime_ms=packet_length(choice.ptime_ms, choice.maxptime_ms, offered.ptime_ms or 20),
        direction=intersect(offer.direction_of(ours), MIRRORED[their_direction]),
        encryption=encryption,
        shared=offered.shares_port and choice.shares_port,
        offered=offered,
    )
    connection = offer.connection_of(ours)
    if connection is not None:
        check_family(remote.address, connection.address)
    return Negotiated(
        remote,
        None,
        held=their_direction in ("sendonly", "inactive"),
        numbers=numbers,
        srtp=encryption.agreed,
    )


def _session(
    local: LocalMedia, media: tuple[MediaDescription, ...], times: tuple[tuple[int, int], ...] = ((0, 0),)
) -> SessionDescription:
    """Build our description of a session."""
    connection = Connection.to(local.address)
    origin = Origin(local.session_id, local.version, local.address, connection.address_type)
    return SessionDescription(origin=origin, connection=connection, times=times, media=media)


def _audio_section(
    local: LocalMedia,
    formats: tuple[Format, ...],
    ptime_ms: int,
    direction: Direction,
    encryption: Encryption,
    rtcp: tuple[Attribute, ...] = (),
) -> MediaDescription:
    """Build our audio section; `rtcp` are the attributes of our RTCP port."""
    numbers, attributes = described(formats, ptime_ms, direction)
    return MediaDescription(
        kind="audio",
        port=local.port,
        protocol=encryption.protocol,
        formats=numbers,
        attributes=(*attributes, *rtcp, *encryption.lines),
    )


def _refused_section(media: MediaDescription) -> MediaDescription:
    """Refuse a section with port 0; it keeps type, protocol and formats (RFC 3264 6)."""
    return MediaDescription(media.kind, 0, media.protocol, media.formats)


def remember(local: LocalMedia, negotiated: Negotiated) -> LocalMedia:
    """
    Store payload types and SRTP parameters, so that later offers keep them.

    Source: RFC 3264 8.3.2.
    """
    numbers = merge_numbers(local.numbers, negotiated.numbers)
    return replace(local, numbers=numbers, srtp_agreed=negotiated.srtp)


def is_unchanged(previous: SessionDescription, current: SessionDescription) -> bool:
    """
    Return True if a description requests no change of the session (RFC 3264 8).

    The version is ignored: some peers increase it without a change, others change without increasing it.
    Session timer refreshes are the usual case of no change.
    """
    if previous is current:
        return True
    return replace(current, origin=previous.origin) == previous and _same_owner(previous, current)


def revise(previous: SessionDescription, current: SessionDescription) -> SessionDescription:
    """
    Set the version of our next description after `previous` (RFC 3264 8).

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


_Chosen = tuple[_Choice, tuple[RtpMap, ...]]
"""The chosen formats of a section, and the dynamic payload types of the sections involved."""


def _choose(
    offer: SessionDescription, local: LocalMedia
) -> tuple[int, MediaDescription, _Chosen, Encryption]:
    """Find the first usable audio section, its codec and keys; raises with the reason if there is none."""
    failure: NegotiationError | None = None
    for index, media in _secure_first(offer.media, local.srtp):
        if media.kind != "audio" or media.port == 0:
            continue
        try:
            encryption = answered_encryption(media, local.srtp, local.srtp_keys)
        except NegotiationError as error:
            failure = error
            continue
        found = _usable(_Forms.of(media), local.codecs, local.ours_first, local.dtmf, local.opus)
        if found is not None:
            return index, media, found, encryption
        failure = NegotiationError(f"No common codec; supported are {', '.join(local.codecs)}")
    raise failure or NegotiationError("No audio stream is offered", 304)


def _secure_first(sections: Iterable[MediaDescription], use: SrtpUse) -> list[tuple[int, MediaDescription]]:
    """Return the sections with their indexes, those with keys first unless we do not encrypt."""
    placed = list(enumerate(sections))
    if use != "off":
        placed.sort(key=lambda item: item[1].attribute("crypto") is None)
    return placed


@lru_cache(maxsize=256)
def _usable(
    forms: _Forms, names: tuple[str, ...], ours_first: bool, dtmf: bool, opus: OpusSettings
) -> _Chosen | None:
    """Return the chosen formats of an offered section, or None if it has none of our codecs."""
    media = forms.section
    common = common_codec(media, offered_codecs(names), ours_first=ours_first)
    if common is None:
        return None
    choice = _chosen(media, common, opus)
    return choice if dtmf else choice._replace(dtmf=None), merge_numbers((), media.codecs())


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
        ptime_ms=media.ptime_ms,
        maxptime_ms=media.maxptime_ms,
        shares_port=media.attribute("rtcp-mux") is not None,
    )


@lru_cache(maxsize=256)
def _accepted(our_forms: _Forms, their_forms: _Forms) -> tuple[_Choice, _Choice, tuple[RtpMap, ...]] | None:
    """Return an answer's formats, with its payload types and with ours; None without an offered codec."""
    ours, theirs = our_forms.section, their_forms.section
    offered = [codec for clocks in CODECS.values() for codec in clocks if find(ours, codec) is not None]
    common = common_codec(theirs, offered)
    entry = find(ours, common[0]) if common is not None else None
    if common is None or entry is None:
        return None
    sent = _chosen(ours, (common[0], entry), OpusSettings())
    choice = _chosen(theirs, common, sent.opus)
    # Formats that were not offered are ignored.
    dtmf = choice.dtmf if sent.dtmf is not None else None
    noise = choice.noise if sent.noise is not None else None
    numbers = merge_numbers((), ours.codecs(), theirs.codecs())
    return choice._replace(dtmf=dtmf, noise=noise), sent, numbers


def _remote(
    description: SessionDescription,
    media: MediaDescription,
    choice: _Choice,
    *,
    ptime_ms: int,
    direction: Direction,
    encryption: Encryption,
    shared: bool,
    offered: _Choice | None = None,
) -> RemoteMedia:
    """
    Return the parameters for sending.

    If the payload types that we ``offered`` differ from theirs, each side sends those that the other named
    (RFC 3264 5.1).
    """
    address = checked_address(description.connection_of(media))
    rtcp_port, rtcp_address = (None, None) if shared else rtcp_of(media, address)
    events = choice.dtmf[0] if choice.dtmf else None
    receive_type = events_type = None
    if offered is not None:
        receive_type = _other(offered.payload_type, choice.payload_type)
        if events is not None and offered.dtmf is not None:
            events_type = _other(offered.dtmf[0], events)
    return RemoteMedia(
        address=address,
        port=media.port,
        codec=choice.codec.name,
        payload_type=choice.payload_type,
        ptime_ms=ptime_ms,
        dtmf_payload_type=events,
        direction=direction,
        dtmf_receive_payload_type=events_type,
        receive_payload_type=receive_type,
        clock_rate=choice.codec.clock_rate,
        comfort_noise_payload_type=choice.noise,
        rtcp_port=rtcp_port,
        rtcp_address=rtcp_address,
        opus=choice.opus,
        srtp_send=encryption.send,
        srtp_receive=encryption.receive,
    )


def _other(ours: int, theirs: int) -> int | None:
    return ours if ours != theirs else None
