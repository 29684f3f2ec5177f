# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class CampaignTally(Result):
    """
    Number of messages in each state; the sum is always the total.
    """

    queued: int
    sent: int
    delivered: int
    read: int
    failed: int
    cancelled: int


class CreatedCampaign(Result):
    """
    An accepted campaign, and its duplicate and invalid numbers as given.
    """

    campaignId: int
    campaignName: str
    templateName: str
    language: str
    status: Literal['draft', 'scheduled', 'running', 'completed', 'failed', 'cancelled']
    total: Annotated[int, Field(description='To how many it goes.')]
    counts: CampaignTally
    progress: Annotated[
        float, Field(description='Percent that has left, or will not leave.')
    ]
    createdAt: datetime
    scheduledFor: datetime | None
    startedAt: datetime | None
    completedAt: datetime | None
    cancelledAt: datetime | None
    estimatedCompletionAt: Annotated[
        datetime | None,
        Field(description='When the last message will have left, by the pace so far.'),
    ]
    duplicates: Annotated[
        list[str],
        Field(description='Given more than once; each still gets one message.'),
    ]
    invalid: Annotated[list[str], Field(description='No telephone numbers.')]
    optedOut: Annotated[
        list[str], Field(description='Numbers of contacts who have opted out.')
    ]


class Campaign(Result):
    """
    A campaign and its progress.
    """

    campaignId: int
    campaignName: str
    templateName: str
    language: str
    status: Literal['draft', 'scheduled', 'running', 'completed', 'failed', 'cancelled']
    total: Annotated[int, Field(description='To how many it goes.')]
    counts: CampaignTally
    progress: Annotated[
        float, Field(description='Percent that has left, or will not leave.')
    ]
    createdAt: datetime
    scheduledFor: datetime | None
    startedAt: datetime | None
    completedAt: datetime | None
    cancelledAt: datetime | None
    estimatedCompletionAt: Annotated[
        datetime | None,
        Field(description='When the last message will have left, by the pace so far.'),
    ]
