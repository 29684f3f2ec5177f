"""Headers of the request that opens a stream's WebSocket."""

from __future__ import annotations

import hmac
from base64 import b64encode

from media.streams.dialects import dialect_class
from media.streams.model import BasicAuth, StreamAuth, StreamSetup
from media.streams.speech_models import model_headers


def upgrade_headers(setup: StreamSetup, timestamp_s: int) -> list[tuple[str, str]]:
    """Return the headers in addition to those of RFC 6455 4.1; `timestamp_s` is in Unix time."""
    headers = [("User-Agent", setup.user_agent)]
    if setup.model is not None:
        # A vendor learns nothing of the account, and no signature could be checked by it.
        return headers + model_headers(setup.model)
    if setup.auth is not None:
        headers.append(("Authorization", authorization(setup.auth)))
    headers += [
        ("X-Account-Sid", setup.account_sid),
        ("X-Call-Sid", setup.call_sid),
        ("X-Stream-Sid", setup.stream_sid),
        ("X-Service-Timestamp", str(timestamp_s)),
    ]
    if offered := dialect_class(setup.dialect).subprotocols:
        headers.append(("Sec-WebSocket-Protocol", ", ".join(offered)))
    secrets = [secret for secret in (setup.secret, setup.previous_secret) if secret]
    if secrets:
        # Two signatures while the secret changes, so that an agent with either can check.
        signatures = " ".join(sign(secret, timestamp_s, setup.url) for secret in secrets)
        headers.append(("X-Service-Signature", signatures))
        if setup.dialect == "twilio":
            headers.append(("X-Twilio-Signature", sign_as_twilio(secrets[0], setup.url)))
    headers.extend(setup.extra_headers)
    return headers


def sign(secret: str, timestamp_s: int, url: str) -> str:
    """Return the signature over the time and the dialled URL, joined by a full stop."""
    digest = hmac.new(secret.encode(), f"{timestamp_s}.{url}".encode(), "sha256")
    return f"sha256={digest.hexdigest()}"


def sign_as_twilio(key: str, content: str) -> str:
    """Return the signature in Twilio's form; for a stream, the content is the dialled URL."""
    return b64encode(hmac.digest(key.encode(), content.encode(errors="replace"), "sha1")).decode()


def authorization(auth: StreamAuth) -> str:
    """Return the value of the Authorization header (RFC 7617 2, RFC 6750 2.1)."""
    if isinstance(auth, BasicAuth):
        return f"Basic {b64encode(f'{auth.username}:{auth.password}'.encode()).decode()}"
    return f"Bearer {auth.token}"
