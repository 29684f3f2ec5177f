"""Applications of accounts, and the binding that they give to calls."""

from dataclasses import replace
from datetime import datetime

from callcontrol.models.numbers import Binding
from sip.values import frozen


@frozen
class Application:
    """Instructions for calls; ``record_all_calls`` records them regardless of other settings."""

    app_sid: str
    account_sid: str
    name: str
    binding: Binding
    created_at: datetime
    updated_at: datetime
    record_all_calls: bool = False

    @property
    def call_binding(self) -> Binding:
        """The binding that applies to calls."""
        return replace(self.binding, record=True) if self.record_all_calls else self.binding


@frozen
class InboundBinding:
    """The binding for calls to a number; ``app_sid`` is the application that it comes from, if any."""

    binding: Binding | None
    app_sid: str | None = None
