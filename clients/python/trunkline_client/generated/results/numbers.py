# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class Deregistered(Result):
    """
    The wiring state after a deregistration.
    """

    phone_number_id: str
    number: str
    carrier_registered: bool
    outbound_capable: Annotated[
        bool, Field(description='Same value as carrier_registered.')
    ]
    inbound_bound: bool
    inbound_target: Literal['voice_agent', 'webhook', 'media_stream', 'model', 'forward', 'browser', 'masking', 'missed_call'] | None
    agent_id: str | None = None
    workspace_id: str | None = None
    status: Literal['deregistered']


class Listing(Result):
    """
    A number that is for sale.
    """

    live_ref: Annotated[
        str, Field(description='Opaque reference for POST /v1/dids/purchase-live.')
    ]
    number: Annotated[str, Field(description='E.164.')]
    region: str
    number_type: Literal['mobile', 'local', 'toll_free', '140_series', '160_series']
    monthly_cost: Annotated[float, Field(description='INR per calendar month.')]
    setup_cost: Annotated[
        float, Field(description='INR, charged once with the purchase.')
    ]
    currency: Literal['INR']
    voice_enabled: bool
    sms_enabled: bool


class PhoneNumber(Result):
    """
    A number of the account.
    """

    id: str
    number: Annotated[str, Field(description='E.164.')]
    friendly_name: str | None
    status: Literal['active', 'suspended', 'released']
    number_type: Literal['mobile', 'local', 'toll_free', '140_series', '160_series']
    region: Annotated[
        str | None, Field(description='Where it was bought; null for other numbers.')
    ]
    voice_enabled: bool
    sms_enabled: bool
    monthly_cost: Annotated[float, Field(description='INR.')]
    next_billing_at: Annotated[
        datetime | None,
        Field(description='When the next month is charged; null if none ever is.'),
    ]
    payment_deadline_at: Annotated[
        datetime | None,
        Field(
            description='While a renewal is unpaid: when the number is suspended, or then released.'
        ),
    ]
    inbound_target_type: Literal['none', 'voice_agent', 'webhook', 'media_stream', 'model', 'forward', 'browser', 'masking', 'missed_call']
    created_at: datetime
    updated_at: datetime


class Purchase(Result):
    """
    A purchased number and its cost.
    """

    phone_number_id: str
    number: Annotated[str, Field(description='E.164.')]
    total_charged: Annotated[float, Field(description='INR.')]
    currency: Literal['INR']
    new_wallet_balance: Annotated[float, Field(description='INR.')]
    next_billing_at: datetime


class Wiring(Result):
    """
    The wiring state of a number.
    """

    phone_number_id: str
    number: str
    carrier_registered: bool
    outbound_capable: Annotated[
        bool, Field(description='Same value as carrier_registered.')
    ]
    inbound_bound: bool
    inbound_target: Literal['voice_agent', 'webhook', 'media_stream', 'model', 'forward', 'browser', 'masking', 'missed_call'] | None
    agent_id: str | None = None
    workspace_id: str | None = None
