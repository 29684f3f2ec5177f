"""Notes of the requests whose answers a call waits for, in its journal."""

from collections.abc import Sequence

from callcontrol.aio.tokens import unix_s
from callcontrol.calls.records.journal import CallJournal
from callcontrol.egress.aio.http_client import NotAnswered
from callcontrol.egress.requests import FormRequest, Reply
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.exchanges import bodies_of, sent_body

__all__ = ["note_exchange"]


def note_exchange(
    journal: CallJournal,
    event: WebhookEvent,
    secrets: Sequence[str],
    outcome: Reply | NotAnswered,
    *,
    attempt: int,
    took_ms: int,
    form: FormRequest | None = None,
) -> None:
    """Note an attempt at a request in the journal of its call: what was sent, and what was answered."""
    reply = outcome if isinstance(outcome, Reply) else outcome.reply
    details: dict[str, str | int] = {"url": event.url, "method": event.method, "attempt": attempt}
    if reply is not None:
        details |= {"status": reply.status, "type": reply.media_type, "bytes": reply.length_bytes}
    if isinstance(outcome, NotAnswered):
        details |= {"problem": outcome.message}
    details["took_ms"] = took_ms
    bodies = bodies_of(sent_body(event, form), reply, secrets)
    journal.note(event.call_sid or "", unix_s(), "webhook", event.event, details, bodies)
