"""Messages, in memory."""

from __future__ import annotations

from callcontrol.errors import NotFound, SendFailed
from callcontrol.messaging.messages import SendMessage, checked
from callcontrol.messaging.models import ChatMessage
from callcontrol.messaging.store.messages import MessageFilter
from callcontrol.models import Page
from tests.support.api_facts import ACCOUNT, MOMENT

MESSAGE_ID = "eeeeeeee-9999-4999-8999-999999999999"
REFUSED = "+919800100004"


class FakeMessages:
    def __init__(self) -> None:
        self.sent: list[SendMessage] = []
        self.queries: list[MessageFilter] = []

    async def send(self, account_sid: str, request: SendMessage) -> ChatMessage:
        number, content = checked(request, lambda url: None)
        if number == REFUSED:
            raise SendFailed("The message was not sent: nobody there", details={"messageId": MESSAGE_ID})
        self.sent.append(request)
        return ChatMessage(
            message_id=MESSAGE_ID,
            account_sid=account_sid,
            direction="outbound",
            from_="+919800000000",
            to=number,
            type=request.type,
            content=content,
            status="queued",
            created_at=MOMENT,
            due_at=MOMENT,
        )

    async def get(self, account_sid: str, message_id: str) -> ChatMessage:
        if message_id != MESSAGE_ID:
            raise NotFound("There is no such message.")
        return await self.send(account_sid, SendMessage("+919800100000", "text", text="Hello"))

    async def list(
        self, account_sid: str, query: MessageFilter, page: int, per_page: int
    ) -> Page[ChatMessage]:
        self.queries.append(query)
        return Page([await self.get(account_sid, MESSAGE_ID)], 1, page, per_page)

    async def simulate(self, account_sid: str, from_: str, text: str) -> ChatMessage:
        return await self.send(ACCOUNT, SendMessage(from_, "text", text=text))
