"""Session descriptions of a call's legs: offers and answers of both sides."""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from callcontrol.calls.aio.media.leg import LegMedia, MediaRefusal
from callcontrol.ids import LegId
from callcontrol.models import Carrier, Gateway
from callcontrol.models.trunks import DtmfType, MediaEncryption, MediaPolicy, preferring
from media.aio import RtpStream, make_srtp_keys, retire_srtp_key
from media.capabilities import built_codecs, has_srtp
from media.errors import InvalidMedia, PortsExhausted
from media.sdp import (
    LocalMedia,
    Negotiated,
    NegotiationError,
    SdpError,
    SessionDescription,
    accept_answer,
    answer_offer,
    is_unchanged,
    make_offer,
    parse_session_description,
    remember,
    revise,
)
from media.types import SrtpKey, SrtpUse

_SRTP: Final[dict[MediaEncryption, SrtpUse]] = {"off": "off", "sdes": "optional", "require": "required"}


def media_policy(carrier: Carrier, gateway: Gateway) -> MediaPolicy:
    """Media policy of a carrier at one of its gateways."""
    return _policy(carrier.codecs, carrier.dtmf_type, "required" if gateway.encrypts else _SRTP[carrier.srtp])


@lru_cache(maxsize=256)
def _policy(codecs: tuple[str, ...], dtmf_type: DtmfType, srtp: SrtpUse) -> MediaPolicy:
    return MediaPolicy(codecs, dtmf_type, srtp, events=dtmf_type == "rfc2833")


class Descriptions:
    """
    SDP negotiation with each party of a call.

    ``open_stream`` creates a leg's stream, near another one if there is one; ``enter`` is called with a leg's
    media once it exists, ``agreed`` after each agreement with its party.
    """

    def __init__(
        self,
        legs: Mapping[LegId, LegMedia],
        open_stream: Callable[[LegId, RtpStream | None], RtpStream],
        enter: Callable[[LegId, LegMedia], None],
        agreed: Callable[[LegMedia], None],
    ) -> None:
        self._legs = legs
        self._open_stream = open_stream
        self._enter = enter
        self._agreed = agreed

    def take_offer(self, leg: LegId, body: bytes, policy: MediaPolicy) -> None:
        """
        Open the stream of a caller and apply its offer; an empty body makes us offer in our answer.

        The codec of the offer that the trunk prefers is chosen; see ``tell``.

        Raises:
            MediaRefusal: The offer is not acceptable, or no port is free.
        """
        offer = _parse(body) if body else None
        media = self._open(leg, policy, near=next(iter(self._legs.values()), None))
        if offer is None:
            media.ours = media.offer = make_offer(_local(media))
        else:
            self._apply_offer(media, offer)

    def offer(self, leg: LegId, peer_leg: LegId | None, policy: MediaPolicy) -> bytes:
        """
        Open the stream of a leg to be dialled and return its offer, with codecs in the trunk's order.

        The codec of the leg ``peer_leg`` comes first if the trunk allows it, which avoids transcoding.

        Raises:
            MediaRefusal: No port is free, or the engine has no codec or encryption of the trunk.
        """
        other = self._legs.get(peer_leg) if peer_leg is not None else None
        media = self._open(leg, policy, near=other)
        if other is not None:
            media.peer_leg, other.peer_leg = other, media
        media.ours = media.offer = make_offer(_in_company(media))
        media.told = True
        return media.ours.to_bytes()

    def tell(self, leg: LegId) -> bytes:
        """
        Return our description for the leg's party, empty when there is none.

        A caller's offer was answered when it came. Before the answer is sent, the codec that the dialled
        party has chosen since takes precedence over the trunk's order, which avoids transcoding.
        """
        media = self._legs.get(leg)
        if media is None or media.ours is None:
            return b""
        if not media.told and media.offer is None and media.theirs is not None:
            self._judge_anew(media, media.theirs)
        media.told = True
        return media.ours.to_bytes()

    def _judge_anew(self, media: LegMedia, offer: SessionDescription) -> None:
        if _codecs_in_company(media) == media.local.codecs:
            return
        negotiated = answer_offer(offer, _in_company(media))
        if media.remote is not None and negotiated.remote.codec != media.remote.codec:
            self._connect(media, offer, negotiated)
            media.ours = negotiated.answer

    def apply_answer(self, leg: LegId, body: bytes, key: SrtpKey | None = None) -> None:
        """
        Apply the answer to our offer; an answer without a body confirms an earlier one.

        Our side sends with ``key`` in place of the offered one, if there is one: that of a handshake.

        Raises:
            MediaRefusal: The answer does not match the offer.
        """
        media = self._legs.get(leg)
        if media is None:
            return
        if not body:
            if media.remote is None:
                raise MediaRefusal("codec")
            return
        answer = _parse(body)
        if media.theirs is not None and is_unchanged(media.theirs, answer) and media.remote is not None:
            return
        offer = media.offer or media.ours
        assert offer is not None
        if key is not None:
            media.policy = replace(media.policy, srtp_keys=(key,))
        try:
            negotiated = accept_answer(offer, answer)
        except NegotiationError as error:
            raise MediaRefusal("codec", warning=error.warning_header("trunkline")) from None
        self._connect(media, answer, negotiated)

    def answer_offer(self, leg: LegId, body: bytes) -> bytes:
        """
        Apply a party's new offer and return our answer; an empty body requests our offer, which is returned.

        Raises:
            MediaRefusal: The offer is not acceptable; nothing has changed.
        """
        media = self._legs.get(leg)
        if media is None or media.ours is None:
            raise MediaRefusal("codec", status=488)
        if not body:
            media.ours = media.offer = revise(media.ours, make_offer(_local(media)))
            return media.ours.to_bytes()
        offer = _parse(body)
        if media.theirs is None or not is_unchanged(media.theirs, offer):
            self._apply_offer(media, offer)
        return media.ours.to_bytes()

    def _apply_offer(self, media: LegMedia, offer: SessionDescription) -> None:
        try:
            negotiated = answer_offer(offer, _in_company(media))
        except NegotiationError as error:
            raise MediaRefusal(
                "codec", status=error.status, warning=error.warning_header("trunkline")
            ) from None
        assert negotiated.answer is not None
        self._connect(media, offer, negotiated)
        media.ours = revise(media.ours, negotiated.answer) if media.ours else negotiated.answer

    def _connect(self, media: LegMedia, theirs: SessionDescription, negotiated: Negotiated) -> None:
        remote = negotiated.remote
        if media.policy.dtmf_type == "tones":
            remote = replace(remote, dtmf_tones=True)
        if media.policy.srtp_keys:
            remote = replace(remote, srtp_send=media.policy.srtp_keys[0])
        try:
            media.stream.connect(remote)
        except InvalidMedia as error:
            raise MediaRefusal("codec", warning=f'399 trunkline "{error}"') from None
        media.theirs, media.remote, media.holds = theirs, remote, negotiated.held
        if _local(media).srtp == "off":
            media.agreed = negotiated
        else:  # A used key must not be reused, so it is retired at once.
            media.local = retire_srtp_key(media.local, remember(media.local, negotiated))
        self._agreed(media)

    def _open(self, leg: LegId, policy: MediaPolicy, near: LegMedia | None) -> LegMedia:
        """
        Create a leg's stream, with those codecs of the trunk that the engine has.

        A carrier may have been configured on an engine with more codecs.
        """
        codecs = _built(policy.codecs)
        if not codecs:
            raise MediaRefusal("codec", warning='399 trunkline "The engine has no codec of the trunk"')
        if policy.srtp == "required" and not has_srtp():
            raise MediaRefusal("codec", warning='399 trunkline "The engine has no SRTP"')
        try:
            stream = self._open_stream(leg, near.stream if near is not None else None)
        except PortsExhausted:
            raise MediaRefusal("ports", status=503) from None
        address, port = stream.local
        encrypts = policy.srtp != "off" and has_srtp()
        local = LocalMedia(
            address,
            port,
            codecs,
            dtmf=policy.events,
            ours_first=True,
            srtp=policy.srtp if encrypts else "off",
            srtp_keys=(policy.srtp_keys or make_srtp_keys()) if encrypts else (),
            session_id=int.from_bytes(os.urandom(4)) >> 1,
        )
        media = LegMedia(stream, local, policy)
        self._enter(leg, media)
        return media


def _local(media: LegMedia) -> LocalMedia:
    """Return our side of a leg; the last agreement is applied lazily, because most calls agree only once."""
    if media.agreed is not None:
        media.local = retire_srtp_key(media.local, remember(media.local, media.agreed))
        media.agreed = None
    return media.local


def _in_company(media: LegMedia) -> LocalMedia:
    """Return our side of a leg, with the codec of its peer leg first."""
    local, codecs = _local(media), _codecs_in_company(media)
    return local if codecs == local.codecs else replace(local, codecs=codecs)


def _codecs_in_company(media: LegMedia) -> tuple[str, ...]:
    peer_leg = media.other or media.peer_leg
    if peer_leg is None or peer_leg.remote is None:
        return media.local.codecs
    return preferring(media.local.codecs, peer_leg.remote.codec)


@lru_cache(maxsize=256)
def _built(codecs: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of a trunk's codecs that the engine has."""
    return tuple(codec for codec in codecs if codec in built_codecs())


def _parse(body: bytes) -> SessionDescription:
    try:
        return parse_session_description(body)
    except SdpError as error:
        raise MediaRefusal("codec", warning=f'399 trunkline "{error.reason}"') from None
