"""Numbers of accounts and their wiring; the state changes are those of ``callcontrol.numbers``."""

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from typing import Final, Protocol

from sqlalchemy.engine import Connection

from callcontrol import numbers as rules
from callcontrol.aio.database import Database
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.aio.writer import Writer
from callcontrol.errors import (
    BindFailed,
    Conflict,
    DomainError,
    FieldError,
    NotFound,
    NumberNotOwned,
    ValidationFailed,
)
from callcontrol.interfaces import Destinations
from callcontrol.models import Binding, Carrier, Gateway, Page, PhoneNumber, Wiring
from callcontrol.routing import SipTarget, parse_target
from callcontrol.store.repositories import accounts, numbers, trunks
from callcontrol.store.repositories import directory as revisions

Change = Callable[[PhoneNumber, bool, datetime], PhoneNumber]

DEFAULT_COUNTRIES: Final = ("IN",)


class NumberDirectory(Protocol):
    """The in-memory directory, as far as numbers need it."""

    def number(self, e164: str) -> tuple[PhoneNumber, Binding | None] | None:
        """The number and where its inbound calls go."""

    def gateway_for_host(
        self, account_sid: str, host: str, port: int | None = None
    ) -> tuple[Carrier, Gateway] | None:
        """The outbound gateway with a host, of the account's own or the platform's."""

    async def refresh(self) -> None:
        """Take in what changed, now."""

    async def refresh_after_miss(self) -> None:
        """Take in what changed, with others who wait for it."""


class NumberService:
    """Numbers of accounts; see ``interfaces.Numbers``."""

    def __init__(
        self,
        database: Database,
        writer: Writer,
        directory: NumberDirectory,
        destinations: Destinations,
        allowed_countries: Collection[str] = DEFAULT_COUNTRIES,
    ) -> None:
        self._database = database
        self._writer = writer
        self._directory = directory
        self._destinations = destinations
        self._allowed_countries = allowed_countries

    async def add(
        self, account_sid: str, number: str, friendly_name: str | None = None, *, number_type: str = "local"
    ) -> PhoneNumber:
        """
        Give a number of the platform to an account, not wired yet.

        Raises:
            ValidationFailed: It is not in E.164.
            NotFound: There is no such account.
            Conflict: The number belongs to an account already.
        """
        now = utc_now()
        added = PhoneNumber(
            phone_number_id=new_id(),
            account_sid=account_sid,
            number=rules.check_number(number),
            created_at=now,
            updated_at=now,
            friendly_name=friendly_name,
            number_type=number_type,
        )

        def write(connection: Connection) -> DomainError | None:
            if accounts.get(connection, account_sid) is None:
                return NotFound("There is no such account.")
            if numbers.by_number(connection, number) is not None:
                return Conflict("The number belongs to an account already.")
            numbers.insert(connection, added, revisions.next_revision(connection))
            return None

        await self._writer.commit(write)
        await self._directory.refresh()
        return added

    async def list(
        self,
        account_sid: str,
        page: int = 1,
        per_page: int = 20,
        *,
        status: str | None = None,
        number_type: str | None = None,
        region: str | None = None,
    ) -> Page[PhoneNumber]:
        """
        Numbers of the account, newest first.

        ``region`` narrows the list to numbers that begin with it, a country or area code such as ``+9180``,
        or that were bought in the region of that name. Numbers that were released are listed only with
        ``status`` released.
        """
        filters = {"status": status, "number_type": number_type}
        wanted = {name: value for name, value in filters.items() if value is not None}
        found, total = await self._database.read(
            lambda connection: numbers.page(
                connection,
                account_sid,
                wanted,
                region=region,
                offset=(page - 1) * per_page,
                limit=per_page,
            )
        )
        return Page(found, total, page, per_page)

    async def get(self, account_sid: str, phone_number_id: str) -> PhoneNumber:
        """
        One number of the account.

        Raises:
            NotFound: It does not exist or is not the account's.
        """
        found = await self._database.look_up(lambda connection: numbers.get(connection, phone_number_id))
        if found is None or found.account_sid != account_sid:
            raise NotFound("The number does not exist or is not on the account.")
        return found

    async def wiring(self, account_sid: str, phone_number_id: str) -> Wiring:
        """
        The wiring state of a number.

        Raises:
            NotFound: It does not exist or is not the account's.
        """
        return Wiring.of(await self.get(account_sid, phone_number_id))

    async def register(self, account_sid: str, phone_number_id: str) -> Wiring:
        """
        Register a number on the carrier; repeating it is safe.

        Raises:
            NotFound: It does not exist or is not the account's.
            NotConfigured: There is no platform carrier.
        """
        return await self._change(
            account_sid,
            phone_number_id,
            lambda number, configured, now: rules.register(number, configured=configured, now=now),
        )

    async def deregister(self, account_sid: str, phone_number_id: str, *, force: bool = False) -> Wiring:
        """
        Deregister a number; with ``force`` its inbound binding goes with it.

        Raises:
            NotFound: It does not exist or is not the account's.
            NotConfigured: There is no platform carrier.
            InboundBound: Inbound calls are still bound, and ``force`` was not given.
        """
        return await self._change(
            account_sid,
            phone_number_id,
            lambda number, configured, now: rules.deregister(
                number, configured=configured, force=force, now=now
            ),
        )

    async def bind(
        self, account_sid: str, phone_number_id: str, binding: Binding, *, force: bool = False
    ) -> Wiring:
        """
        Send inbound calls of a number to a target, registering the number when it is not.

        Raises:
            BindFailed: Fields of the target are wrong; all of them are named.
            NotFound: The number does not exist or is not the account's.
            NotConfigured: There is no platform carrier.
            InboundConflict: It is bound elsewhere, and ``force`` was not given.
        """
        filled = rules.check_binding(binding)
        await self._check_reach(account_sid, phone_number_id, filled)
        return await self._change(
            account_sid,
            phone_number_id,
            lambda number, configured, now: rules.bind(
                number, filled, configured=configured, force=force, now=now
            ),
        )

    async def unbind(self, account_sid: str, phone_number_id: str) -> Wiring:
        """
        Send inbound calls of a number nowhere; it stays registered.

        Raises:
            NotFound: It does not exist or is not the account's.
        """
        return await self._change(
            account_sid, phone_number_id, lambda number, _, now: rules.unbind(number, now=now)
        )

    async def owned(self, account_sid: str, number: str) -> PhoneNumber:
        """
        The account's number, if it may be used as caller-ID.

        Raises:
            NumberNotOwned: It is not on the account, not active, or not registered on the carrier.
        """
        known = self._directory.number(number)
        if known is None or known[0].account_sid != account_sid or not known[0].registered:
            # Another process may have given it to the account, or registered it, a moment ago.
            await self._directory.refresh_after_miss()
            known = self._directory.number(number)
        if known is None or known[0].account_sid != account_sid or known[0].status != "active":
            raise NumberNotOwned("The caller-ID is not a number of the account; use one that is.")
        if not known[0].registered:
            raise NumberNotOwned("The caller-ID is not registered; register the number on the carrier first.")
        return known[0]

    async def _check_reach(self, account_sid: str, phone_number_id: str, binding: Binding) -> None:
        """
        Refuse a target that its calls could not reach.

        It is judged again whenever a call comes in; what can be seen now is said now.
        """
        errors: list[FieldError] = []
        if binding.stream_url is not None:
            errors += self._url_errors("stream_url", binding.stream_url, ("ws", "wss"))
        if binding.status_webhook_url is not None:
            errors += self._url_errors("status_webhook_url", binding.status_webhook_url, ("http", "https"))
        if binding.target == "forward":
            unreachable = self._forward_errors(account_sid, phone_number_id, binding)
            if unreachable:
                # Another process may have added the number or the gateway a moment ago.
                await self._directory.refresh_after_miss()
                unreachable = self._forward_errors(account_sid, phone_number_id, binding)
            errors += unreachable
        if errors:
            raise BindFailed(errors)

    def _url_errors(self, field: str, url: str, schemes: tuple[str, ...]) -> Sequence[FieldError]:
        try:
            self._destinations.check_url(url, schemes=schemes)
        except ValidationFailed as refusal:
            return [FieldError(field, error.message) for error in refusal.errors]
        except DomainError as refusal:
            return [FieldError(field, refusal.message)]
        return []

    def _forward_errors(
        self, account_sid: str, phone_number_id: str, binding: Binding
    ) -> Sequence[FieldError]:
        errors: list[FieldError] = []
        caller_id = binding.caller_id
        if caller_id not in (None, "passthrough") and not self._may_show(
            account_sid, phone_number_id, caller_id
        ):
            errors.append(
                FieldError("caller_id", "must be passthrough or a registered number of the account")
            )
        try:
            target = parse_target(binding.forward_to or "", self._allowed_countries, field="forward_to")
        except ValidationFailed as refusal:
            return [*errors, *refusal.errors]
        except DomainError as refusal:
            return [*errors, FieldError("forward_to", refusal.message)]
        if not isinstance(target, SipTarget):
            return errors
        if self._directory.gateway_for_host(account_sid, target.host, target.port) is None:
            message = f"{target.host} is not a gateway of your carriers; add it as a gateway first"
            errors.append(FieldError("forward_to", message))
        return errors

    def _may_show(self, account_sid: str, phone_number_id: str, caller_id: str) -> bool:
        known = self._directory.number(caller_id)
        if known is None or known[0].account_sid != account_sid:
            return False
        # Binding a number registers it.
        return known[0].registered or known[0].phone_number_id == phone_number_id

    async def _change(self, account_sid: str, phone_number_id: str, change: Change) -> Wiring:
        now = utc_now()

        def write(connection: Connection) -> PhoneNumber | DomainError:
            number = numbers.get(connection, phone_number_id, lock=True)
            if number is None or number.account_sid != account_sid:
                return NotFound("The number does not exist or is not on the account.")
            try:
                changed = change(number, trunks.platform_carrier_exists(connection), now)
            except DomainError as refusal:
                return refusal
            if changed is not number:
                numbers.update(connection, changed, revisions.next_revision(connection))
            return changed

        changed = await self._writer.commit(write)
        await self._directory.refresh()
        return Wiring.of(changed)
