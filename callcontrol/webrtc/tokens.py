"""
Tokens of telephones in web pages: a customer's server makes one with its key, and its page uses it.

A token is sealed with the server's secret key, so nobody else can make, read or change one, and nothing is
stored. It ends by itself, and with the key that made it.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from callcontrol.database.encryption import Cipher
from callcontrol.database.statements import pack_exact, unpack
from callcontrol.errors import Forbidden, SecretsUnreadable, Unauthorized
from callcontrol.models import Principal
from callcontrol.routing.targets import parse_address

TOKEN_PREFIX: Final = "wt_"
MIN_TOKEN_S, DEFAULT_TOKEN_S, MAX_TOKEN_S = 60, 3600, 24 * 3600
MAX_NUMBERS: Final = 50
"""Numbers and addresses that a token may name."""

DEFAULT_IDENTITY: Final = "browser"
ANYBODY: Final = "*"
ANY_BROWSER: Final = "browser:*"

_PURPOSE: Final = "telephone token"
_MAX_TOKEN_CHARS: Final = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class PhoneToken:
    """
    Right of a page to call, and to be called.

    Attributes:
        key_id: API key that made the token, and with which it ends.
        identity: Name of the telephone, and of its caller.
        from_: Number of the account that is shown as the caller in place of the name; None for none.
        may_call: Numbers in E.164 and addresses that it may call; empty for all numbers of the account.
        expires_at_s: Wall-clock time in seconds.
        receives_calls: True if the page may be called.
    """

    account_sid: str
    key_id: str
    identity: str
    from_: str | None
    may_call: Sequence[str]
    expires_at_s: float
    receives_calls: bool = False

    @property
    def expires_at(self) -> datetime:
        """Time at which the token expires."""
        return datetime.fromtimestamp(self.expires_at_s, UTC)

    def seal(self, cipher: Cipher) -> str:
        """Return the token as text."""
        sealed = cipher.seal(_PURPOSE, pack_exact(asdict(self)))
        return TOKEN_PREFIX + base64.urlsafe_b64encode(sealed.encode()).rstrip(b"=").decode()

    @classmethod
    def open(cls, cipher: Cipher, text: str, now_s: float) -> Self:
        """
        Return the token of a text.

        Raises:
            Unauthorized: Nobody here made it, or it has expired.
        """
        packed = text.removeprefix(TOKEN_PREFIX)
        try:
            if len(packed) > _MAX_TOKEN_CHARS:
                raise ValueError
            sealed = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode("ascii")
            values: dict[str, Any] = unpack(cipher.open(_PURPOSE, sealed))
            token = cls(**values)
        except (SecretsUnreadable, binascii.Error, ValueError, TypeError):
            raise Unauthorized("The token is not valid; make one by POST /v1/webrtc/tokens.") from None
        if token.expires_at_s <= now_s:
            raise Unauthorized("The token has expired; make a new one by POST /v1/webrtc/tokens.")
        return token

    def check(self, callee: str, *, own: bool = True) -> None:
        """
        Check that the token may call a number in E.164 or an address; ``own`` is False for another's.

        Raises:
            Forbidden: It may not.
        """
        allowed = self.may_call
        if not allowed and own:
            return
        if (
            callee in allowed
            or ANYBODY in allowed
            or (callee.startswith("browser:") and ANY_BROWSER in allowed)
        ):
            return
        raise Forbidden(f"This token may not call {callee}; name it in may_call of the token.")


def normalise_callee(text: str, *, field: str) -> str:
    """
    Return a number in E.164, an address or a wildcard that a token may call.

    Raises:
        ValidationFailed: It is none of these.
    """
    return text if text in (ANYBODY, ANY_BROWSER) else str(parse_address(text, field=field))


@dataclass(frozen=True, slots=True)
class PhonePrincipal(Principal):
    """Principal of a request with a token instead of a key."""

    token: PhoneToken | None = None


def token_of(principal: Principal) -> PhoneToken | None:
    """Return the token of a request; None for one with a key."""
    return principal.token if isinstance(principal, PhonePrincipal) else None
