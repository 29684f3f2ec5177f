"""Session descriptions and the offer/answer model (RFC 8866, RFC 3264)."""

from media.sdp.local_media import LocalMedia
from media.sdp.model import (
    Attribute,
    Connection,
    MediaDescription,
    NegotiationError,
    Origin,
    RtpMap,
    SdpError,
    SessionDescription,
)
from media.sdp.offer_answer import (
    Negotiated,
    accept_answer,
    answer_offer,
    is_unchanged,
    make_offer,
    remember,
    revise,
)
from media.sdp.parser import parse_session_description

__all__ = [
    "Attribute",
    "Connection",
    "LocalMedia",
    "MediaDescription",
    "Negotiated",
    "NegotiationError",
    "Origin",
    "RtpMap",
    "SdpError",
    "SessionDescription",
    "accept_answer",
    "answer_offer",
    "is_unchanged",
    "make_offer",
    "parse_session_description",
    "remember",
    "revise",
]
