"""Policy for a carrier's redirections (3xx): to its own gateways, and to numbers we may dial."""

from typing import Final

from callcontrol.routing.router import Router
from callcontrol.routing.targets import Attempt
from callcontrol.trunks.outbound_invite import destination_of, request_uri
from sip import InvalidValue, Redirection, Redirects, SipUri

MAX_REDIRECTIONS: Final = 5


def redirects_of(router: Router, account_sid: str, attempt: Attempt) -> Redirects | None:
    """Redirect policy of an attempt; None if its carrier's redirections are not followed."""
    if not attempt.carrier.follows_redirects:
        return None

    def judge(uri: SipUri) -> Redirection | None:
        found = router.redirected(account_sid, attempt, uri)
        if found is None:
            return None
        try:
            target = request_uri(found.gateway, found.user)
        except InvalidValue:
            return None
        return Redirection(target, destination_of(found.carrier, found.gateway))

    return Redirects(judge, MAX_REDIRECTIONS)
