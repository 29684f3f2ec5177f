"""Messages, URIs and addresses written in Python, with which what `sip._wire` writes is compared."""

from sip.message.encoding import to_bytes
from sip.message.fields import NameAddr
from sip.message.grammar import format_params, quote
from sip.message.message import Message, Request
from sip.message.reasons import reason_phrase
from sip.message.uri import SipUri


def uri_text(uri: SipUri) -> str:
    """Return a URI as text."""
    if uri.scheme == "tel":
        return f"tel:{uri.user}{format_params(uri.params)}"
    text = uri.scheme + ":"
    if uri.user is not None:
        text += uri.user if uri.password is None else f"{uri.user}:{uri.password}"
        text += "@"
    text += f"[{uri.host}]" if ":" in uri.host else uri.host
    if uri.port is not None:
        text += f":{uri.port}"
    text += format_params(uri.params)
    return text if uri.headers is None else f"{text}?{uri.headers}"


def address_text(address: NameAddr) -> str:
    """Return an address as text."""
    name = quote(address.display_name) + " " if address.display_name else ""
    return f"{name}<{uri_text(address.uri)}>{format_params(address.params)}"


def message_bytes(message: Message) -> bytes:
    """Return the wire form of a message."""
    if isinstance(message, Request):
        start = f"{message.method} {uri_text(message.uri)} SIP/2.0"
    else:
        start = f"SIP/2.0 {message.status} {message.reason or reason_phrase(message.status)}"
    fields = [entry for entry in message.headers.entries if entry[0] != "content-length"]
    lines = [f"{name}: {value}\r\n" for _, name, value in fields]
    body = message.body
    return to_bytes(f"{start}\r\n{''.join(lines)}Content-Length: {len(body)}\r\n\r\n") + body
