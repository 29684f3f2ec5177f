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
    DIRECTIONS,
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
    checked_address,
    effective_direction,
    intersect,
    offered_encryption,
    offered_rtcp,
    packet_length,
    rtcp_of,
)
from media.types import Direction, OpusSettings, RemoteMedia
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
    """
    The chosen formats of a section, with its payload types.

    Attributes:
        ptime_ms: Length of the packets to send to the section's writer.
        shares_port: True if RTCP may share the port of RTP.
        direction: Direction that the section states.
        receive_type, events_type: Payload types of audio and events that we receive, where they differ.
    """

    codec: Codec
    payload_type: int
    opus: OpusSettings
    dtmf: tuple[int, str] | None = None
    noise: int | None = None
    ptime_ms: int = 20
    shares_port: bool = False
    direction: Direction | None = None
    receive_type: int | None = None
    events_type: int | None = None


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


_Forms = tuple[tuple[str, ...], tuple[Attribute, ...]]
"""
The formats of a section and the attributes of `_FORM_NAMES`, without its address, port and keys.

They are the same for nearly every call of a carrier, so results derived from them are cached.
"""

_FORM_NAMES: Final = frozenset({"rtpmap", "fmtp", "ptime", "maxptime", "rtcp-mux", *DIRECTIONS})


def _forms(media: MediaDescription) -> _Forms:
    """Extract the forms of an RTP section."""
    return media.formats, tuple([item for item in media.attributes if item.name in _FORM_NAMES])


def _section(forms: _Forms) -> MediaDescription:
    """Return a section with these forms."""
    return MediaDescription("audio", 0, "RTP/AVP", forms[0], attributes=forms[1])


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
    connection = chosen.connection or offer.connection
    theirs = effective_direction(choice.direction, offer, connection)
    direction = intersect(local.direction, MIRRORED[theirs])
    shared = local.rtcp_mux and choice.shares_port
    rtcp = answered_rtcp(local.port, shared=shared)
    formats = _answered_formats(choice, local.opus)
    media = _audio_section(local, formats, choice.ptime_ms, direction, encryption, rtcp)
    sections = [
        media if position == index else _refused_section(section)
        for position, section in enumerate(offer.media)
    ]
    address = checked_address(connection, local.address)
    remote = _remote(address, chosen, choice, direction, encryption, shared=shared)
    answer = _session(local, tuple(sections), offer.times)
    return Negotiated(remote, answer, theirs in ("sendonly", "inactive"), numbers, encryption.agreed)


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
    accepted = _accepted(_forms(ours), _forms(theirs))
    if accepted is None:
        raise NegotiationError("The answer has no offered codec")
    choice, offered, numbers = accepted
    connection = theirs.connection or answer.connection
    their_direction = effective_direction(choice.direction, answer, connection)
    direction = intersect(offered.direction or "sendrecv", MIRRORED[their_direction])
    address = checked_address(connection, offer.origin.address)
    shared = offered.shares_port and choice.shares_port
    remote = _remote(address, theirs, choice, direction, encryption, shared=shared)
    return Negotiated(remote, None, their_direction in ("sendonly", "inactive"), numbers, encryption.agreed)


def _session(
    local: LocalMedia, media: tuple[MediaDescription, ...], times: tuple[tuple[int, int], ...] = ((0, 0),)
) -> SessionDescription:
    """Build our description of a session."""
    connection = _connection_to(local.address)
    origin = Origin(local.session_id, local.version, local.address, connection.address_type)
    return SessionDescription(origin, "-", connection, (), times, (), media)


_connection_to = lru_cache(maxsize=16)(Connection.to)
"""The connection line of an address: ours are few."""


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
        "audio", local.port, encryption.protocol, numbers, None, (), (*attributes, *rtcp, *encryption.lines)
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
    for index, media in _secure_first(offer.media) if local.srtp != "off" else enumerate(offer.media):
        if media.kind != "audio" or media.port == 0:
            continue
        try:
            encryption = answered_encryption(media, local.srtp, local.srtp_keys)
        except NegotiationError as error:
            failure = error
            continue
        found = _usable(_forms(media), local.codecs, local.ours_first, local.dtmf, local.opus, local.ptime_ms)
        if found is not None:
            return index, media, found, encryption
        failure = NegotiationError(f"No common codec; supported are {', '.join(local.codecs)}")
    raise failure or NegotiationError("No audio stream is offered", 304)


def _secure_first(sections: Iterable[MediaDescription]) -> list[tuple[int, MediaDescription]]:
    """Return the sections with their indexes, those with keys first."""
    return sorted(enumerate(sections), key=lambda item: item[1].attribute("crypto") is None)


@lru_cache(maxsize=256)
def _usable(
    forms: _Forms, names: tuple[str, ...], ours_first: bool, dtmf: bool, opus: OpusSettings, ptime_ms: int
) -> _Chosen | None:
    """Return the chosen formats of an offered section, or None if it has none of our codecs."""
    media = _section(forms)
    common = common_codec(media, offered_codecs(names), ours_first=ours_first)
    if common is None:
        return None
    choice = _chosen(media, common, opus, ptime_ms)
    return choice if dtmf else choice._replace(dtmf=None), merge_numbers((), media.codecs())


def _chosen(
    media: MediaDescription, common: tuple[Codec, RtpMap], opus: OpusSettings, ptime_ms: int
) -> _Choice:
    """Return the choice of a codec; packets of `ptime_ms` are sent unless the section wants others."""
    codec, entry = common
    noise = COMFORT_NOISE.get(codec.clock_rate)
    silence = find(media, noise) if noise is not None else None
    return _Choice(
        codec=codec,
        payload_type=entry.payload_type,
        opus=read_opus(media.fmtp(entry.payload_type), opus) if codec.name == "OPUS" else OpusSettings(),
        dtmf=telephone_event(media, codec.clock_rate),
        noise=silence.payload_type if silence is not None else None,
        ptime_ms=packet_length(media.ptime_ms, media.maxptime_ms, ptime_ms),
        shares_port=media.attribute("rtcp-mux") is not None,
        direction=media.direction,
    )


@lru_cache(maxsize=256)
def _accepted(our_forms: _Forms, their_forms: _Forms) -> tuple[_Choice, _Choice, tuple[RtpMap, ...]] | None:
    """Return an answer's formats, with its payload types and with ours; None without an offered codec."""
    ours, theirs = _section(our_forms), _section(their_forms)
    offered = [codec for clocks in CODECS.values() for codec in clocks if find(ours, codec) is not None]
    common = common_codec(theirs, offered)
    entry = find(ours, common[0]) if common is not None else None
    if common is None or entry is None:
        return None
    sent = _chosen(ours, (common[0], entry), OpusSettings(), 20)
    choice = _chosen(theirs, common, sent.opus, ours.ptime_ms or 20)
    # Formats that were not offered are ignored.
    dtmf = choice.dtmf if sent.dtmf is not None else None
    # If the payload types differ, each side sends those that the other named (RFC 3264 5.1).
    choice = choice._replace(
        dtmf=dtmf,
        noise=choice.noise if sent.noise is not None else None,
        receive_type=_other(sent.payload_type, choice.payload_type),
        events_type=_other(sent.dtmf[0], dtmf[0]) if sent.dtmf is not None and dtmf is not None else None,
    )
    return choice, sent, merge_numbers((), ours.codecs(), theirs.codecs())


def _other(ours: int, theirs: int) -> int | None:
    return ours if ours != theirs else None


def _remote(
    address: str,
    media: MediaDescription,
    choice: _Choice,
    direction: Direction,
    encryption: Encryption,
    *,
    shared: bool,
) -> RemoteMedia:
    """Return the parameters for sending to a section's writer."""
    rtcp_port, rtcp_address = (None, None) if shared else rtcp_of(media, address)
    # By position: a call makes two, and so many names cost as much as the rest of this function.
    return RemoteMedia(
        address,
        media.port,
        choice.codec.name,
        choice.payload_type,
        choice.ptime_ms,
        choice.dtmf[0] if choice.dtmf else None,
        direction,
        choice.events_type,
        choice.receive_type,
        choice.codec.clock_rate,
        False,  # Digits as tones are the trunk's decision.
        choice.noise,
        rtcp_port,
        rtcp_address,
        choice.opus,
        encryption.send,
        encryption.receive,
    )
