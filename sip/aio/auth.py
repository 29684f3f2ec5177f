"""Authorization of new INVITEs: the application's verdict on the source, and digest authentication."""

import logging
from collections.abc import Callable, Hashable

from sip.aio.settings import Screen, Screened, ScreenVerdict, Source
from sip.aio.transport import Flow
from sip.auth.server import DigestServer, Lockout, Outcome, SecretsOf
from sip.message.message import Request, Response, reply
from sip.protection.rate_limits import source_of

logger = logging.getLogger(__name__)


class InboundAuthenticator:
    """
    Admits, challenges or refuses each new INVITE before any state is allocated for it.

    ACK and CANCEL are never challenged, since they cannot be sent again (RFC 3261 22.1). Requests within a
    dialog are not challenged either: they must carry the tags and the Call-ID of an admitted call.

    `on_credentials` is called with the source of each right or wrong password, and True for a right one; not
    for a request without credentials or with a stale nonce.
    """

    def __init__(
        self, screen: Screen | None, digest: DigestServer, on_credentials: Callable[[Source, bool], None]
    ) -> None:
        self._screen = screen
        self._digest = digest
        self._on_credentials = on_credentials
        self._lockout = Lockout()

    def admit(self, request: Request, flow: Flow, now_s: float) -> tuple[Hashable, ...] | Response | None:
        """Return the identities of an admitted caller, the response of a refusal, or None for no response."""
        if self._screen is None:
            return ()
        source = Source(*flow.remote[:2], flow.transport.name, flow.peer_names)
        try:
            screened = self._screen(source, request)
            if isinstance(screened, ScreenVerdict):
                screened = Screened(screened)
            if screened.verdict is ScreenVerdict.CHALLENGE:
                return self._ask(request, source, screened.secrets_of, now_s)
        except Exception:  # A defect of the application must not admit unknown sources or stop us.
            logger.exception("The screen failed; the INVITE is dropped", extra={"call_id": request.call_id})
            return None
        if screened.verdict is ScreenVerdict.FORBID:
            return reply(request, 403)
        return screened.identities if screened.verdict is ScreenVerdict.ACCEPT else None

    def _ask(
        self, request: Request, source: Source, secrets_of: SecretsOf | None, now_s: float
    ) -> tuple[Hashable, ...] | Response:
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
