"""Early dialogs of an outbound INVITE: one for each fork that responded (RFC 3261 12.1.2, 13.2.2.1)."""

from enum import Enum

from sip.message.message import Request, Response
from sip.session.dialog import Dialog

__all__ = ["EarlyDialog", "Heard"]


class Heard(Enum):
    """Order of a reliable provisional response relative to the ones before it."""

    NEXT = 0
    REPEATED = 1
    OUT_OF_ORDER = 2


class EarlyDialog:
    """
    One ringing fork of our INVITE.

    `settled` is True once the offer of the INVITE, or that of the fork, has its final answer; until then a
    session description is only a preview of the answer. `description` is the fork's latest one. The dialog is
    built on first use: most forks only ring and answer.
    """

    __slots__ = (
        "_dialog",
        "_request",
        "_response",
        "acknowledged",
        "answer",
        "description",
        "pracking",
        "rack",
        "rseq",
        "settled",
        "tag",
    )

    def __init__(self, request: Request, response: Response, tag: str) -> None:
        self._request = request
        self._response = response
        self._dialog: Dialog | None = None
        self.tag = tag
        self.settled = False
        self.description = b""
        self.rseq: int | None = None
        self.rack = ""
        """The RAck of the latest PRACK, or of the one to send next."""
        self.answer = b""
        """The body of the latest PRACK."""
        self.pracking = False
        """True while a PRACK is under way."""
        self.acknowledged = False
        """True when the latest PRACK was accepted."""

    @property
    def dialog(self) -> Dialog:
        """The early dialog."""
        if self._dialog is None:
            self._dialog = Dialog.from_response(self._request, self._response)
        return self._dialog

    def hear(self, response: Response) -> None:
        """Update the dialog from a further provisional response."""
        if self._dialog is None:
            self._response = response
        else:
            self._dialog.refresh_target(response)

    def receive(self, rseq: int) -> Heard:
        """
        Classify a reliable response by its RSeq; store the RSeq of the next one in order.

        Source: RFC 3262 4.
        """
        if self.rseq is not None:
            if rseq <= self.rseq:
                return Heard.REPEATED
            if rseq > self.rseq + 1:
                return Heard.OUT_OF_ORDER
        self.rseq = rseq
        self.acknowledged = False
        return Heard.NEXT

    def confirm(self, response: Response) -> tuple[Dialog, bytes]:
        """
        Confirm the dialog; returns it with the description in force.

        After a final answer the description of the 2xx is ignored (RFC 3261 13.2.1).
        """
        dialog = self._dialog
        if dialog is None:
            dialog = Dialog.from_response(self._request, response)
        else:
            dialog.confirm(response)
        if self.settled:
            return dialog, dialog.description or self.description
        return dialog, response.body or self.description
