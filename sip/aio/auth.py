"""Digest authentication of new INVITEs whose sources the application challenges."""

from collections.abc import Callable, Hashable

from sip.aio.settings import Source
from sip.auth.server import DigestServer, Lockout, Outcome, SecretsOf
from sip.message.message import Request, Response, reply
from sip.protection.rate_limits import source_of


class InboundAuthenticator:
    """
    Admits, challenges or refuses a new INVITE by its credentials, before any state is allocated for it.

    ACK and CANCEL are never challenged, since they cannot be sent again (RFC 3261 22.1). Requests within a
    dialog are not challenged either: they must carry the tags and the Call-ID of an admitted call.

    `on_credentials` is called with the source of each right or wrong password, and True for a right one; not
    for a request without credentials or with a stale nonce.
    """

    def __init__(self, digest: DigestServer, on_credentials: Callable[[Source, bool], None]) -> None:
        self._digest = digest
        self._on_credentials = on_credentials
        self._lockout = Lockout()

    def authenticate(
        self, request: Request, source: Source, secrets_of: SecretsOf | None, now_s: float
    ) -> tuple[Hashable, ...] | Response:
        """Return the identities of a caller with a right password, otherwise the challenge or the refusal."""
        origin = source_of(source.host)
        verdict = self._digest.judge(request, origin, secrets_of or (lambda _: ()), now_s)
        if verdict.outcome in (Outcome.ACCEPTED, Outcome.REJECTED):
            if self._lockout.holds(origin, verdict.username, now_s):
                return reply(request, 403)
            right = verdict.outcome is Outcome.ACCEPTED
            self._lockout.note(origin, verdict.username, now_s, right=right)
            self._on_credentials(source, right)
        if verdict.outcome is Outcome.ACCEPTED:
            return verdict.identities
        if verdict.outcome is Outcome.MALFORMED:
            return reply(request, 400, "Malformed Authorization")
        stale = verdict.outcome is Outcome.STALE
        challenges = self._digest.challenge(origin, now_s, stale=stale)
        return reply(request, 401, headers=challenges)
