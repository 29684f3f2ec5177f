"""
Who judges templates: a messaging network, asked to approve them before messages may be made of them.

The server keeps every template of its own, and asks by its ``reference``; a real network and the stand-in
are implementations of ``TemplateReview``.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Protocol

from callcontrol.messaging.models import TemplateCategory

__all__ = ["ReviewFailure", "Submission", "SubmissionRefused", "TemplateReview", "Verdict", "VerdictGiven"]


class Verdict(Enum):
    """What the network says of a template that it has."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class Submission:
    """A template as the network gets it; the same ``reference`` is the same submission, however often."""

    reference: str
    account_sid: str
    number: str
    name: str
    language: str
    category: TemplateCategory
    body: str
    variables: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class VerdictGiven:
    """What the network says now; ``reason`` is why, of one that is rejected or paused."""

    verdict: Verdict
    reason: str | None = None


class ReviewFailure(Exception):
    """The network cannot be asked now; what was asked may be asked again."""


class SubmissionRefused(Exception):
    """The network does not take the submission, and will not: ``reason`` is for the customer to read."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TemplateReview(Protocol):
    """What is asked of a messaging network about templates."""

    async def submit(self, submission: Submission) -> str:
        """
        Hand a template in; the network's name of it.

        A reference that the network has already gets the name that it got the first time, so that a
        submission whose answer was lost is repeated without harm.

        Raises:
            SubmissionRefused: It does not take this template.
            ReviewFailure: It cannot be asked now.
        """

    async def verdict(self, network_ref: str) -> VerdictGiven:
        """
        What it says of a template now.

        Raises:
            ReviewFailure: It cannot be asked now.
        """

    async def withdraw(self, reference: str, network_ref: str | None) -> None:
        """
        Forget a template, if it has it; ``network_ref`` is None when it is not known whether it does.

        Raises:
            ReviewFailure: It cannot be asked now.
        """
