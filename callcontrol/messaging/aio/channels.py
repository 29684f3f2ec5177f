"""Channels: the numbers that accounts send messages from."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import ValidationFailed
from callcontrol.messaging.models import DEFAULT_MESSAGES_PER_SECOND, SANDBOX_NUMBER, Channel
from callcontrol.messaging.store import channels
from callcontrol.numbers.store import numbers

_CHANGEABLE: Final = frozenset({"number", "display_name", "is_connected", "messages_per_second"})


class ChannelService:
    """Channels; ``default_rate`` is the messages per second of a channel without a rate of its own."""

    def __init__(
        self, database: Database, writer: Writer, default_rate: int = DEFAULT_MESSAGES_PER_SECOND
    ) -> None:
        self._database = database
        self._writer = writer
        self._default_rate = default_rate

    async def of(self, account_sid: str) -> Channel:
        """The channel of an account."""
        return await self._database.look_up(partial(self._of, account_sid))

    async def update(self, account_sid: str, values: Mapping[str, Any]) -> Channel:
        """
        Change the given fields; None resets a field to its default.

        Raises:
            ValidationFailed: The number does not belong to the account.
        """
        assert values.keys() <= _CHANGEABLE, values
        changes = dict(values)
        number = changes.get("number")
        if number == SANDBOX_NUMBER:
            changes["number"] = None
        now = utc_now()

        def write(connection: Connection) -> Channel | ValidationFailed:
            wanted = changes.get("number")
            if wanted is not None:
                owned = numbers.by_number(connection, wanted)
                if owned is None or owned.account_sid != account_sid or owned.status != "active":
                    return ValidationFailed.of(
                        "number", "must be one of the account's active numbers, or null for the sandbox's"
                    )
            if changes:
                channels.change(connection, account_sid, changes, now)
            return self._of(account_sid, connection)

        return await self._writer.commit(write)

    def _of(self, account_sid: str, connection: Connection) -> Channel:
        return channels.channel_of(connection, account_sid, default_rate=self._default_rate)
