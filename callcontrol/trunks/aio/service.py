"""Carriers and gateways, of accounts and of the platform."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database import revisions
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.cached_rows import OwnedRows
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.errors import Conflict, FieldError, Forbidden, NotFound, ValidationFailed
from callcontrol.models import Carrier, Gateway, Page
from callcontrol.trunks import store as trunks
from callcontrol.trunks.validation import (
    TLS_PORT,
    address_of,
    check_carrier,
    check_gateway,
    check_media,
    typed,
)
from media.capabilities import built_codecs, has_srtp

_GIVEN_HERE: Final = {"created_at", "updated_at", "account_sid", "carrier_sid", "gateway_sid"}
_CARRIER_FIELDS: Final = {item.name for item in fields(Carrier) if item.init} - _GIVEN_HERE
_GATEWAY_FIELDS: Final = {item.name for item in fields(Gateway) if item.init} - _GIVEN_HERE
_MAX_CARRIERS: Final = 100
_MAX_GATEWAYS: Final = 50


class TrunkService:
    """
    Carriers and their gateways.

    An account sees its own carriers only; a carrier of another owner is refused with ``Forbidden``, an
    unknown carrier with ``NotFound``.

    ``legs_at`` counts the legs of this process at a carrier or gateway, B-legs included.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        directory: DirectoryLoader,
        legs_at: Callable[[str], int] = lambda _: 0,
    ) -> None:
        self._legs_at = legs_at
        self._database = database
        self._rows = OwnedRows(database, writer, directory, trunks.CARRIERS, trunks.delete_carrier)

    async def create_carrier(self, account_sid: str, values: Mapping[str, Any]) -> Carrier:
        """
        Create a carrier of the account from the given fields.

        Raises:
            ValidationFailed: With every wrong or unknown field.
            Conflict: The account is at its limit of carriers.
        """
        carrier = _carrier(account_sid, values)
        return await self._rows.create(
            account_sid,
            carrier,
            _MAX_CARRIERS,
            lambda connection: check_application(connection, account_sid, carrier.app_sid),
        )

    async def list_carriers(self, account_sid: str, page: int = 1, per_page: int = 20) -> Page[Carrier]:
        """List carriers of the account, oldest first."""
        return await self._rows.list(account_sid, page, per_page)

    async def get_carrier(self, account_sid: str, carrier_sid: str) -> Carrier:
        """
        Get a carrier of the account.

        Raises:
            NotFound: There is no such carrier.
            Forbidden: It is another account's, or the platform's.
        """
        return await self._rows.get(account_sid, carrier_sid)

    async def update_carrier(
        self, account_sid: str | None, carrier_sid: str, values: Mapping[str, Any]
    ) -> Carrier:
        """
        Change the given fields; new calls use them, active calls keep the old values.

        Raises:
            NotFound: There is no such carrier.
            Forbidden: It is another account's, or the platform's.
            ValidationFailed: With every unknown field, and every one that would be wrong.
        """
        _refuse_unknown(values, _CARRIER_FIELDS)
        given = typed(Carrier, values)

        def change(connection: Connection, owned: Carrier) -> Carrier:
            changed = replace(owned, **given, updated_at=utc_now())
            _check(changed, given)
            check_application(connection, account_sid, given.get("app_sid"))
            return changed

        return await self._rows.update(account_sid, carrier_sid, change)

    async def create_gateway(self, account_sid: str, carrier_sid: str, values: Mapping[str, Any]) -> Gateway:
        """
        Create a gateway of the account's carrier from the given fields.

        Raises:
            NotFound: There is no such carrier.
            Forbidden: It is another account's, or the platform's.
            ValidationFailed: With every wrong or unknown field.
            Conflict: The carrier has a gateway at this address, or is at its limit of gateways.
        """
        # Access to the carrier is checked first: others must not learn whether the gateway is valid.
        await self.get_carrier(account_sid, carrier_sid)
        gateway = _gateway(carrier_sid, values)

        def write(connection: Connection) -> None:
            trunks.CARRIERS.owned(connection, account_sid, carrier_sid, lock=True)
            _check_address(connection, gateway)
            if len(trunks.gateways_of(connection, carrier_sid)) >= _MAX_GATEWAYS:
                raise Conflict(f"The carrier has {_MAX_GATEWAYS} gateways; delete one first.")
            trunks.GATEWAYS.insert(connection, gateway)

        await self._rows.change(write)
        return gateway

    async def list_gateways(
        self, account_sid: str, carrier_sid: str, page: int = 1, per_page: int = 20
    ) -> Page[Gateway]:
        """
        List gateways of the account's carrier, preferred first.

        Raises:
            NotFound: There is no such carrier.
            Forbidden: It is another account's, or the platform's.
        """
        await self.get_carrier(account_sid, carrier_sid)
        found = await self.platform_gateways(carrier_sid)
        start = (page - 1) * per_page
        return Page(found[start : start + per_page], len(found), page, per_page)

    async def get_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> Gateway:
        """
        Get a gateway of the account's carrier.

        Raises:
            NotFound: There is no such carrier, or no such gateway of it.
            Forbidden: The carrier is another account's, or the platform's.
        """
        return await self._database.look_up(
            lambda connection: _own_gateway(connection, account_sid, carrier_sid, gateway_sid)
        )

    async def update_gateway(
        self, account_sid: str | None, carrier_sid: str, gateway_sid: str, values: Mapping[str, Any]
    ) -> Gateway:
        """
        Change the given fields; new calls use them.

        Raises:
            NotFound: There is no such carrier, or no such gateway of it.
            Forbidden: The carrier is another account's, or the platform's.
            ValidationFailed: With every unknown field, and every one that would be wrong.
            Conflict: The carrier has another gateway at the new address.
        """
        _refuse_unknown(values, _GATEWAY_FIELDS)
        given = typed(Gateway, values)

        def write(connection: Connection) -> Gateway:
            gateway = _own_gateway(connection, account_sid, carrier_sid, gateway_sid, lock=True)
            changed = replace(gateway, **given, updated_at=utc_now())
            check_gateway(changed)
            _check_protocol(changed)
            if address_of(changed) != address_of(gateway):
                _check_address(connection, changed)
            trunks.GATEWAYS.update(connection, changed)
            return changed

        return await self._rows.change(write)

    async def delete_gateway(self, account_sid: str, carrier_sid: str, gateway_sid: str) -> None:
        """
        Delete a gateway of the account's carrier.

        Raises:
            NotFound: There is no such carrier, or no such gateway of it.
            Forbidden: The carrier is another account's, or the platform's.
            Conflict: The gateway has active calls.
        """
        await self._rows.settle()
        now, legs = utc_now(), self._legs_at(gateway_sid)

        def write(connection: Connection) -> None:
            _own_gateway(connection, account_sid, carrier_sid, gateway_sid)
            up = max(legs, trunks.count_active_calls(connection, gateway_sid=gateway_sid))
            if up:
                raise Conflict(
                    "Calls on this gateway have not ended; wait until they have.", details={"calls": up}
                )
            trunks.GATEWAYS.delete(connection, gateway_sid, now)

        await self._rows.change(write)

    async def add_platform_carrier(  # noqa: PLR0913 - each is an option of the command that calls it.
        self,
        name: str,
        gateways: Sequence[tuple[str, str, int]],
        *,
        inbound: bool = True,
        outbound: bool = True,
        username: str | None = None,
        password: str | None = None,
        prefixes: Sequence[str] = (),
        policy: Mapping[str, Any] | None = None,
        gateway_policy: Mapping[str, Any] | None = None,
    ) -> tuple[Carrier, list[Gateway]]:
        """
        Create a carrier of the platform; its gateways are preferred in the given order.

        Args:
            name: Display name.
            gateways: Protocol, host and port of each.
            inbound: Calls may come from the gateways.
            outbound: Calls may leave through the gateways.
            username: User name for the carrier's digest challenges.
            password: Password for the same.
            prefixes: Prefixes of the numbers it serves, in E.164; all numbers when empty.
            policy: Other fields of the carrier.
            gateway_policy: Other fields of all its gateways.

        Raises:
            ValidationFailed: With every wrong field.
        """
        credentials: dict[str, Any] = {}
        if username or password:
            credentials = {
                "trunk_type": "auth",
                "register_username": username,
                "register_password": password,
            }
        carrier = _carrier(None, {"name": name, "prefixes": tuple(prefixes), **credentials, **(policy or {})})
        if not gateways:
            raise ValidationFailed.of("gateway", "is needed at least once")
        made = [
            _gateway(
                carrier.carrier_sid,
                {
                    "protocol": protocol,
                    "host": host,
                    "port": port,
                    "inbound": inbound,
                    "outbound": outbound,
                    "priority": priority,
                    **(gateway_policy or {}),
                },
            )
            for priority, (protocol, host, port) in enumerate(gateways)
        ]
        if len(set(map(address_of, made))) < len(made):
            raise ValidationFailed.of("gateway", "must not be given twice with one host, port and protocol")

        def write(connection: Connection) -> None:
            revision = revisions.next_revision(connection)
            trunks.CARRIERS.insert(connection, carrier, revision)
            for gateway in made:
                trunks.GATEWAYS.insert(connection, gateway, revision)

        await self._rows.change(write)
        return carrier, made

    async def platform_carriers(self) -> list[Carrier]:
        """List carriers of the platform, oldest first."""
        found, _ = await self._database.read(lambda connection: trunks.CARRIERS.of_account(connection, None))
        return found

    async def platform_gateways(self, carrier_sid: str) -> list[Gateway]:
        """List gateways of a platform carrier, preferred first."""
        return await self._database.read(lambda connection: trunks.gateways_of(connection, carrier_sid))

    async def delete_carrier(self, owner: str | None, carrier_sid: str) -> None:
        """
        Delete a carrier of an account, or of the platform for None, with its gateways.

        Active calls on a carrier of the platform continue.

        Raises:
            NotFound: There is no such carrier.
            Forbidden: It has another owner.
            Conflict: The carrier has attached numbers, or active calls of the account.
        """
        await self._rows.settle()
        legs = self._legs_at(carrier_sid)

        def check(connection: Connection) -> None:
            up = max(legs, trunks.count_active_calls(connection, carrier_sid=carrier_sid)) if owner else 0
            if up:
                raise Conflict(
                    "Calls on this carrier have not ended; wait until they have.", details={"calls": up}
                )
            attached = trunks.count_numbers(connection, carrier_sid)
            if attached:
                raise Conflict(
                    "Numbers are attached to this carrier; remove them or give them another one first.",
                    details={"numbers": attached},
                )

        await self._rows.delete(owner, carrier_sid, check)


def check_application(connection: Connection, account_sid: str | None, app_sid: str | None) -> None:
    """
    Reject an application that cannot be attached; None is no application.

    Raises:
        ValidationFailed: There is no such application.
        Forbidden: It belongs to another account.
    """
    if app_sid is None or account_sid is None:
        return
    owner = trunks.lock_application(connection, app_sid)
    if owner is None:
        raise ValidationFailed.of("app_sid", "there is no such application")
    if owner != account_sid:
        raise Forbidden("The application belongs to another account.")


def _own_gateway(
    connection: Connection, owner: str | None, carrier_sid: str, gateway_sid: str, *, lock: bool = False
) -> Gateway:
    """Gateway of an owner's carrier; ``lock`` keeps other writers from the carrier meanwhile."""
    trunks.CARRIERS.owned(connection, owner, carrier_sid, lock=lock)
    gateway = trunks.GATEWAYS.get(connection, gateway_sid)
    if gateway is None or gateway.carrier_sid != carrier_sid:
        raise NotFound("There is no such gateway of this carrier.")
    return gateway


def _check_address(connection: Connection, gateway: Gateway) -> None:
    """
    Reject the address of another gateway of the carrier, which the transaction must have locked.

    Calls would be sent to the same host twice, and its share of the calls would double.

    Raises:
        Conflict: The details have the ``gateway_sid`` of the other one.
    """
    for other in trunks.gateways_of(connection, gateway.carrier_sid):
        if other.gateway_sid != gateway.gateway_sid and address_of(other) == address_of(gateway):
            raise Conflict(
                "The carrier has a gateway with this host, port and protocol; change that one instead, or"
                " delete it first.",
                details={"gateway_sid": other.gateway_sid},
            )


def _carrier(account_sid: str | None, values: Mapping[str, Any]) -> Carrier:
    _refuse_unknown(values, _CARRIER_FIELDS, needed="name")
    now, given = utc_now(), typed(Carrier, values)
    carrier = Carrier(carrier_sid=new_id(), account_sid=account_sid, created_at=now, updated_at=now, **given)
    _check(carrier, given)
    return carrier


def _check(carrier: Carrier, given: Mapping[str, Any]) -> None:
    """Check the carrier; media settings only when given, so those of another engine build stay valid."""
    check_carrier(carrier, given)
    if carrier.account_sid is None and carrier.app_sid is not None:
        raise ValidationFailed.of("app_sid", "only a carrier of an account's own has an application")
    if not given.keys().isdisjoint(("codecs", "srtp")):
        check_media(carrier, built_codecs(), srtp=has_srtp())


def _gateway(carrier_sid: str, values: Mapping[str, Any]) -> Gateway:
    _refuse_unknown(values, _GATEWAY_FIELDS, needed="host")
    now = utc_now()
    given = typed(Gateway, values)
    if "port" not in given and str(given.get("protocol", "")).startswith("tls"):
        given["port"] = TLS_PORT
    gateway = Gateway(gateway_sid=new_id(), carrier_sid=carrier_sid, created_at=now, updated_at=now, **given)
    check_gateway(gateway)
    _check_protocol(gateway)
    return gateway


def _check_protocol(gateway: Gateway) -> None:
    if gateway.encrypts and not has_srtp():
        raise ValidationFailed.of(
            "protocol", "tls/srtp: the media engine of this server was built without SRTP"
        )


def _refuse_unknown(values: Mapping[str, Any], known: set[str], *, needed: str | None = None) -> None:
    errors = [FieldError(name, "is not a field") for name in values if name not in known]
    if needed is not None and needed not in values:
        errors.append(FieldError(needed, "is needed"))
    if errors:
        raise ValidationFailed(errors)
