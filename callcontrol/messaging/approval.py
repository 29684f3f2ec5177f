"""
Interface to the approval of templates by a messaging network, required before messages may use them.

The server stores every template, and identifies it by its ``reference``. A real network and the simulated one
implement ``TemplateReview``.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from callcontrol.messaging.models import Template


class Verdict(Enum):
    """A network's verdict on a template that it has."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    PAUSED = "paused"


@dataclass(frozen=True, slots=True)
class VerdictGiven:
    """The network's current verdict; ``reason`` explains a rejection or a pause."""

    verdict: Verdict
    reason: str | None = None


class ReviewFailure(Exception):
    """The network cannot be asked now; the request may be repeated."""


class SubmissionRefused(Exception):
    """The network does not accept the submission, and will not: ``reason`` is for the customer to read."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class TemplateReview(Protocol):
    """Requests to a messaging network about templates."""

    async def submit(self, template: Template, number: str) -> str:
        """
        Submit a template of the channel with a number; return the network's name of it.

        The network answers a known reference with the name it gave the first time, so that a submission with
        a lost answer can be repeated without harm.

        Raises:
            SubmissionRefused: It does not accept this template.
            ReviewFailure: It cannot be asked now.
        """

    async def verdict(self, network_ref: str) -> VerdictGiven:
        """
        The network's current verdict on a template.

        Raises:
            ReviewFailure: It cannot be asked now.
        """

    async def withdraw(self, reference: str, network_ref: str | None) -> None:
        """
        Forget a template, if it has it; ``network_ref`` is None when that is unknown.

        Raises:
            ReviewFailure: It cannot be asked now.
        """
