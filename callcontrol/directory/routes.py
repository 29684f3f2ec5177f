"""Trunks, numbers and bindings as the decisions of a call read them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from callcontrol.agents.agent import VoiceAgent
from callcontrol.applications.application import Application
from callcontrol.models import Account, Binding, Carrier, Gateway, PhoneNumber

__all__ = ["Routes"]


class Routes(Protocol):
    """Trunks and numbers, in memory; see ``callcontrol.directory.directory.Directory``."""

    def account(self, account_sid: str) -> Account | None:
        """The account, with its limits."""

    def gateway_for_source(
        self, host: str, port: int, account_sid: str | None = None
    ) -> tuple[Carrier, Gateway] | None:
        """
        Find the inbound gateway that a request came from; the most specific match wins.

        With ``account_sid`` only the carriers of that account and the platform's count.
        """

    def gateways_at(self, host: str, port: int) -> Iterable[tuple[Carrier, Gateway]]:
        """All inbound gateways that match an address, the most specific match first."""

    @property
    def asks_passwords(self) -> bool:
        """True when some carrier authenticates with a password."""

    def carriers_with_user(self, username: str) -> Sequence[Carrier]:
        """Active carriers that authenticate with this user name."""

    def carriers_with_certificate(self, names: Iterable[str]) -> Sequence[Carrier]:
        """Active carriers that one of these names of a client certificate identifies."""

    def carriers(self) -> Sequence[Carrier]:
        """All carriers."""

    def gateways(self, carrier_sid: str | None = None) -> Sequence[Gateway]:
        """Gateways of a carrier, or all gateways."""

    def watch_trunks(self, tell: Callable[[], None]) -> None:
        """Call ``tell`` whenever carriers or gateways have changed."""

    def knows_host(self, host: str) -> bool:
        """True when an address belongs to a gateway, inbound or outbound."""

    def number(self, e164: str) -> tuple[PhoneNumber, Binding | None] | None:
        """The number and the binding of its inbound calls."""

    def carrier(self, carrier_sid: str) -> Carrier | None:
        """A carrier by its identifier."""

    def application(self, app_sid: str) -> Application | None:
        """An application by its identifier, of any account."""

    def agent(self, agent_id: str) -> VoiceAgent | None:
        """A voice agent by its identifier, of any account."""

    def outbound_gateways(self) -> Sequence[tuple[Carrier, Gateway]]:
        """All gateways for outbound calls."""

    def gateway_for_host(
        self, account_sid: str, host: str, port: int | None = None
    ) -> tuple[Carrier, Gateway] | None:
        """The outbound gateway with a host (and port, when given), the account's own or the platform's."""

    def outbound_route(
        self,
        account_sid: str,
        from_number: str,
        carrier_sid: str | None = None,
        to_number: str | None = None,
    ) -> list[tuple[Carrier, Gateway]]:
        """The gateways to try, best first; empty when the call cannot leave."""
